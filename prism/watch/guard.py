"""Access to the page: only this machine's own browser, with the token printed for it."""

from __future__ import annotations

from hmac import compare_digest
from ipaddress import ip_address
from secrets import token_urlsafe
from socket import gethostname
from threading import Lock

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_MEANT = ("same-origin", "none")
_REFUSALS = {
    "host": "This address is not the one that prism watch printed.",
    "origin": "Another page may not ask for this.",
    "token": "This address was already used, or is incomplete. Open the address that prism watch "
    "printed; if you have used it before, start prism watch again.",
}


class Guard:
    """Lets through what comes from the page itself, and refuses everything else.

    The token of the printed address is good for one request. It becomes a cookie that no script
    can read and no other site makes a browser send.

    Args:
        app: What answers.
        host: The host that is listened on.
        port: Its port.

    Attributes:
        token: The token, for the address to open.
    """

    def __init__(self, app: ASGIApp, host: str, port: int) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._secret = token_urlsafe(32)
        self._cookie = f"prism-watch-{port}"
        self._lock = Lock()
        self.token: str | None = token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":  # no page of prism's opens anything else
            return

        request = HTTPConnection(scope)
        refusal = self._refusal(request)
        # only a request that is meant may spend the token
        is_new = refusal is None and self._takes_token(request)
        token = request.cookies.get(self._cookie, "").encode()
        if refusal is None and not is_new and not compare_digest(token, self._secret.encode()):
            refusal = "token"
        if refusal is not None:
            refuse = PlainTextResponse(f"{_REFUSALS[refusal]}\n", 403, _HEADERS)
            await refuse(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if is_new:
                    cookie = f"{self._cookie}={self._secret}; HttpOnly; SameSite=Strict; Path=/"
                    headers["Set-Cookie"] = cookie
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _refusal(self, request: HTTPConnection) -> str | None:
        """Return what is wrong with where a request comes from; None if nothing is."""
        headers = request.headers
        host = headers.get("host", "")
        if not self._is_this_server(host):
            return "host"

        mode = headers.get("sec-fetch-mode", "navigate")
        is_page = request.scope["path"] == "/" and mode == "navigate"
        is_foreign = headers.get("sec-fetch-site", "none") not in _MEANT and not is_page
        if is_foreign or headers.get("origin", f"http://{host}") != f"http://{host}":
            return "origin"

        return None

    def _takes_token(self, request: HTTPConnection) -> bool:
        """Return True for the first request with the token, which is worth nothing afterwards."""
        token = request.query_params.get("token", "")
        with self._lock:
            is_it = self.token is not None and compare_digest(token.encode(), self.token.encode())
            is_meant = is_it and request.scope["path"] == "/"
            self.token = None if is_meant else self.token

        return is_meant

    def _is_this_server(self, host: str) -> bool:
        """Return True for an address that this server listens on, and no name that leads there."""
        name, _, port = host.lower().rpartition(":")
        # browsers leave out the port of http
        if not port.isdecimal():
            name, port = host.lower(), "80"
        if port != str(self._port):
            return False

        if self._host in LOOPBACK or self._host == "::1":
            return name in LOOPBACK

        # a foreign name may be made to lead here, an address is what somebody typed
        return name in (*LOOPBACK, self._host.lower(), gethostname().lower()) or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach a host."""
    return host in LOOPBACK or (_is_address(host) and ip_address(host).is_loopback)
