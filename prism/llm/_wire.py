"""The wire to servers: JSON requests and JSON replies of limited size, all counted."""

from __future__ import annotations

import asyncio
import json
import zlib
from base64 import b64encode
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
)
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

import orjson

from prism.llm._addresses import credentials, secrets_in, shown_address
from prism.llm._bad_replies import (
    BrokenConnectionError,
    EndlessRedirectsError,
    EndlessReplyError,
    NoConnectionError,
    RefusedError,
    UnusableReplyError,
    read_leniently,
)
from prism.reasoner._spending import Cost
from prism.telemetry.loggers import describe

if TYPE_CHECKING:
    import httpx

_MOST_ERROR_BYTES = 65_536
"""Maximum bytes of an error to read."""

_MOST_VALUES = 50_000
"""Maximum number of values in a reply."""

_FEW_BYTES = 65_536
"""A reply of at most this size cannot hold too many values."""

_PIECE_BYTES = 65_536

_MOST_REDIRECTS = 20

_AS_GET = (301, 302, 303)
"""Redirects after which clients ask with GET; 307 and 308 keep the method."""

_CUT_OUT = b"[key]"

_LONG = 8
"""Minimum length of a secret to hide in answers; many servers get the key ``x``."""


class Wire:
    """The connections to one server.

    They are made with the first request, and again in every event loop that uses them. They end
    with their loop, unless they are closed before.

    Args:
        address: The address as it was written.
        base: The prefix of all paths, without a name and password.
        key: The key to send if the address has no name and password; it is never shown.
        limits: The limits of a reply.
    """

    def __init__(self, address: str, base: str, key: str, limits: ReplyLimits) -> None:
        # importing takes a fraction of a second, during which no event loop should be blocked
        import httpx  # noqa: F401

        self._base = base.rstrip("/") + "/"
        self._headers = _headers(credentials(address), key)
        self._limits = limits
        self._secrets = [secret.encode() for secret in secrets_in(address, key)]
        self._keeps = True
        self._connections: _Connections | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(
        self, path: str, body: Mapping[str, Any] | None, cost: Cost, seconds: float
    ) -> Any:
        """Send a request, and return the reply as plain data.

        Args:
            path: The path after the prefix.
            body: The JSON to POST; None to GET.
            cost: Records all traffic.
            seconds: The time limit.

        Raises:
            ValueError: If the body cannot be JSON, or the reply is not.
            RefusedError: If the status is not a success.
            UnusableReplyError: If the reply is too long, a web page, or badly encoded.
            TimeoutError: If it does not arrive in time.
        """
        content = None if body is None else _as_json(body)
        # slow the first time, for which the server is not responsible
        connections = await self._connected()
        connections.calls += 1
        try:
            async with asyncio.timeout(seconds):
                return await self._sent(connections, path, content, cost)
        except asyncio.CancelledError:
            connections.close_when_idle = True
            cost.request_cancelled()
            raise
        except TimeoutError:
            connections.close_when_idle = True
            raise
        finally:
            connections.calls -= 1
            if connections.close_when_idle and not connections.calls:
                # httpcore 1.0 never closes a new connection whose call was cancelled
                await self._end(connections)

    async def _sent(
        self, connections: _Connections, path: str, content: bytes | None, cost: Cost
    ) -> Any:
        is_recorded = cost.trail is not None
        cost.request_began(self.shown(content or b"") if is_recorded else None)
        answer = await self._asked(connections, urljoin(self._base, path), content, cost)
        reply = self._without_secrets(answer.content, _LONG if answer.is_success else 0)
        if is_recorded:
            cost.request_replied(self.shown(reply))
        if not answer.is_success:
            raise RefusedError(answer.status, reply.decode("utf-8", "replace"), answer.headers)

        return self._parsed(reply)

    def _parsed(self, content: bytes) -> Any:
        """Return a reply as plain data.

        Raises:
            ValueError: If it is not JSON, or has too many values.
        """
        try:
            reply = orjson.loads(content)
        except ValueError:
            reply = read_leniently(content, self.shown)

        if len(content) > _FEW_BYTES and _has_too_many(reply):
            raise UnusableReplyError(f"sent a reply of more than {_MOST_VALUES} values")

        return reply

    async def _asked(
        self, connections: _Connections, address: str, content: bytes | None, cost: Cost
    ) -> Answer:
        try:
            answer = await connections.ask(address, content, cost)
        except Exception as error:
            is_broken = isinstance(error, BrokenConnectionError)
            if self._keeps and connections.have_answered and is_broken:
                # some servers close those that they keep, so every request gets one from now on
                self._keeps, connections.close_when_idle = False, True
                self._forget(connections)
            raise

        connections.have_answered = True
        return answer

    def shown(self, body: bytes) -> str:
        """Return a body without secrets, for the record."""
        return self._without_secrets(body).decode("utf-8", "replace")

    def described(self, error: Exception) -> str:
        """Return an error without secrets, for the record."""
        return self.shown(describe(error).encode("utf-8", "replace"))

    def _without_secrets(self, body: bytes, shortest: int = 0) -> bytes:
        for secret in self._secrets:
            if len(secret) >= shortest:
                body = body.replace(secret, _CUT_OUT)

        return body

    async def close(self) -> None:
        """Close the connections, or let the last open request do so."""
        connections = self._connections
        if connections is None or self._loop is not asyncio.get_running_loop():
            self._connections = None
        elif connections.calls:
            # open requests may be making connections that nobody would close
            connections.close_when_idle = True
        else:
            await self._end(connections)

    async def _end(self, connections: _Connections) -> None:
        self._forget(connections)
        await _to_the_end(connections.carried.aclose())

    def _forget(self, connections: _Connections) -> None:
        if self._connections is connections:
            self._connections = None

    async def _connected(self) -> _Connections:
        loop = asyncio.get_running_loop()
        if self._connections is None or self._loop is not loop:
            carried = _carried(self._headers, self._limits, self._keeps)
            self._connections, self._loop = _Connections(carried, await anext(carried)), loop

        return self._connections


@dataclass
class _Connections:
    """The connections of one event loop.

    Args:
        carried: A generator, because asyncio ends those with their loop, and when they are dropped.
        ask: What it has yielded.
        have_answered: Whether a reply has come, so that one of them may be kept.
        calls: Number of open requests.
        close_when_idle: Whether the last open request closes them.
    """

    carried: AsyncGenerator[Ask, None]
    ask: Ask
    have_answered: bool = False
    calls: int = 0
    close_when_idle: bool = False


def _headers(user: tuple[str, str] | None, key: str) -> dict[str, str]:
    headers = {
        "Accept": "application/json",
        # a compressed reply could expand a thousandfold
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "prism",
    }
    if user is not None:
        headers["Authorization"] = f"Basic {b64encode(':'.join(user).encode()).decode()}"
    elif key:
        headers["Authorization"] = f"Bearer {key}"

    return headers


def is_key(key: str) -> bool:
    """Return True if a header can carry a key."""
    return key.isascii() and key.isprintable() and " " not in key


def _as_json(body: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _has_too_many(reply: Any) -> bool:
    left, seen = [reply], 0
    while left:
        value = left.pop()
        if isinstance(value, (list, dict)):
            seen += len(value)
            if seen > _MOST_VALUES:
                return True
            left.extend(value.values() if isinstance(value, dict) else value)

    return False


async def _to_the_end(closing: Coroutine[Any, Any, None]) -> None:
    """Wait for connections to be closed, even if the wait is cancelled.

    httpcore forgets all connections before it closes the first, so nobody would close those that a
    cancellation leaves open.
    """
    task = asyncio.ensure_future(closing)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error

    if cancelled is not None:
        raise cancelled
    task.result()


# What carries requests


class Answer(NamedTuple):
    """A server's answer.

    Args:
        status: The HTTP status.
        headers: The headers, by names in any case.
        content: The decoded body; for an error, its beginning.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is that of a success."""
        return _is_success(self.status)


Ask = Callable[[str, bytes | None, Cost], Awaitable[Answer]]
"""POSTs a body to an address, or GETs it if there is no body."""


class ReplyLimits(NamedTuple):
    """The limits of a reply.

    Args:
        size: Maximum bytes of its decoded body.
        seconds: Seconds for its body. They matter where a request has longer, since a server may
            load its model before it replies.
    """

    size: int
    seconds: float


async def _carried(
    headers: Mapping[str, str], limits: ReplyLimits, keeps: bool
) -> AsyncGenerator[Ask, None]:
    """Yield an `Ask`, and close its connections at the end.

    Args:
        headers: The headers of all requests.
        limits: The limits of a reply.
        keeps: Whether connections are kept from one request to the next.
    """
    import httpx

    async def read(response: httpx.Response) -> None:
        # httpx would decode a whole chunk at once, and 64 KiB of gzip can expand to 64 MB
        stream: Any = response.stream
        if response.status_code in _AS_GET and response.request.method == "POST":
            where = shown_address(response.headers.get("location", ""))
            raise UnusableReplyError(
                f"redirects to {where}, where a question cannot follow: give the address at which "
                "the server itself answers"
            )
        encoding = response.headers.pop("content-encoding", "")
        try:
            content = await _read(stream, encoding, response.status_code, limits)
        finally:
            await stream.aclose()

        response.stream = httpx.ByteStream(content)

    async def ask(address: str, content: bytes | None, cost: Cost) -> Answer:
        async def trace(step: str, _info: Mapping[str, Any]) -> None:
            # of HTTP/1.1 or HTTP/2
            if step.endswith("send_request_headers.started"):
                cost.request_left()

        method = "GET" if content is None else "POST"
        request = client.build_request(
            method, address, content=content, extensions={"trace": trace}
        )
        try:
            response = await client.send(request)
        except httpx.ConnectError as error:
            raise NoConnectionError(str(error) or type(error).__name__) from error
        except httpx.TransportError as error:
            raise BrokenConnectionError(str(error) or type(error).__name__) from error
        except httpx.TooManyRedirects as error:
            raise EndlessRedirectsError(str(error)) from error

        return Answer(response.status_code, response.headers, response.content)

    # our own transport would ignore the proxies of the environment
    async with httpx.AsyncClient(
        headers=headers,
        timeout=None,
        follow_redirects=True,
        max_redirects=_MOST_REDIRECTS,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None if keeps else 0),
        # before httpx reads a reply, including a redirect
        event_hooks={"response": [read]},
        verify=_certificates(),
    ) as client:
        yield ask


def _is_success(status: int) -> bool:
    return 200 <= status < 300


@cache
def _certificates() -> Any:
    """Return the trusted certificates."""
    # cached, since reading them takes longer than everything else that a client needs
    import httpx

    return httpx.create_ssl_context()


async def _read(
    pieces: AsyncIterator[bytes], encoding: str, status: int, limits: ReplyLimits
) -> bytes:
    """Read the decoded body of a reply, or only the beginning for an error.

    Raises:
        UnusableReplyError: If a reply is too long, or has an encoding that was not requested.
        EndlessReplyError: If it does not end in time.
    """
    is_error = not _is_success(status)
    most = _MOST_ERROR_BYTES if is_error else limits.size
    content, sent = bytearray(), 0
    try:
        async with asyncio.timeout(limits.seconds):
            decoder = _decoder_of(encoding)
            async for raw in pieces:
                sent += len(raw)
                for piece in [raw] if decoder is None else _inflated(decoder, raw):
                    content += piece
                    if len(content) > most:
                        break

                # also limit the encoded bytes, which may decode to nothing
                if max(sent, len(content)) > most:
                    raise UnusableReplyError(f"sent a reply of more than {most} bytes")
    except TimeoutError:
        within = f"within {limits.seconds:g} s"
        raise EndlessReplyError(f"began a reply that did not end {within}") from None
    except UnusableReplyError:
        if not is_error:
            raise

    return bytes(content[:most])


def _decoder_of(encoding: str) -> Any:
    encoding = encoding.strip().lower()
    if encoding in ("identity", ""):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        # detects gzip or zlib itself
        return zlib.decompressobj(wbits=47)

    raise UnusableReplyError(f"encodes its reply as {encoding[:40]!r}, which it was not asked to")


def _inflated(decoder: Any, raw: bytes) -> Iterator[bytes]:
    try:
        while raw:
            yield decoder.decompress(raw, _PIECE_BYTES)
            raw = decoder.unconsumed_tail
    except zlib.error as error:
        raise UnusableReplyError(f"sent a damaged reply ({error})") from error
