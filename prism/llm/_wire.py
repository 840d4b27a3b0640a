"""The wire to servers: JSON requests, JSON replies of limited size, all counted, and faults."""

from __future__ import annotations

import asyncio
import json
import re
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
from html import unescape
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import orjson

from prism.errors import (
    BadReplyError,
    DeclinedError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
    UselessReplyError,
)
from prism.llm._addresses import credentials, secrets_in, shown_address
from prism.llm._dialect import Advice
from prism.statechart.reasoner._faults import (
    INTERNAL,
    MALFORMED,
    NO_SUCH_PATH,
    OVERLOADED,
    UNAUTHORIZED,
    has_lost_model,
    says_model_is_missing,
    says_quota_is_spent,
    wait_in,
)
from prism.statechart.reasoner._model_client import FILTERED
from prism.statechart.reasoner._spending import Cost, first
from prism.telemetry._loggers import describe

if TYPE_CHECKING:
    import aiohttp
    import httpx

_MOST_ERROR_BYTES = 65_536
"""Maximum bytes of an error to read."""

_MOST_VALUES = 50_000
"""Maximum number of values in a reply."""

_FEW_BYTES = 65_536
"""A reply of at most this size cannot hold too many values."""

_BEGINNINGS_OF_EVENTS = (b"data:", b"event:", b": ")
"""How server-sent events begin: with a field, or with a comment that keeps a connection open."""

_PIECE_BYTES = 65_536

_MOST_HEADER_BYTES = 65_536
"""Maximum bytes of a header, for aiohttp, whose own limit is an eighth of that."""

_MOST_REDIRECTS = 20

_AS_GET = (301, 302, 303)
"""Redirects after which clients ask with GET; 307 and 308 keep the method."""

_CUT_OUT = b"[key]"

_LONG = 8
"""Minimum length of a secret to hide in answers; many servers get the key ``x``."""

SEE_ADDRESS = "check that this is the address of a model server"
"""Advice if a web page comes back, for example from a proxy or another server."""

_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST")
"""OpenSSL's error for an unencrypted answer."""

_STATUSES = frozenset(str(status) for status in range(400, 600))
_BROKEN_JSON = "json_validate_failed"
"""Groq's name for a reply that does not follow the schema, for which it answers 400."""

_A_PIECE = re.compile(rb'^\s*\{.*"done"\s*:\s*false')
"""A line of Ollama's streams before the last."""

_TITLE = re.compile(rb"<title[^>]*>([^<]{1,500})", re.IGNORECASE)


class UnusableReplyError(ValueError):
    """A reply is refused while it is read; the message continues after the server's name."""


class GarbledReplyError(ValueError):
    """A reply with status 200 is not JSON, for example because the server broke off."""


class ErrorInReplyError(UnusableReplyError):
    """A reply with status 200 contains an error, because the server failed internally."""


class EndlessReplyError(TimeoutError):
    """A reply began and did not end in time; the message continues after the server's name."""


class RefusedError(Exception):
    """A server answered with a status other than success.

    Args:
        status: The HTTP status.
        said: The body, without secrets.
        headers: The headers, by names in any case.
    """

    def __init__(self, status: int, said: str, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code: int = status
        self.said: str = said
        self.wait: float | None = wait_in(status, headers, said)


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
        self._base = base.rstrip("/") + "/"
        self._headers = _headers(credentials(address), key)
        self._carrier = carrier_to(self._base)
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
        if reply.lstrip().startswith(_BEGINNINGS_OF_EVENTS):
            raise _streamed("events (text/event-stream)")
        if is_web_page(reply):
            page = describe_page(self._without_secrets(reply))
            raise UnusableReplyError(f"answered with {page} instead of a reply: {SEE_ADDRESS}")

        return _parsed(reply)

    async def _asked(
        self, connections: _Connections, address: str, content: bytes | None, cost: Cost
    ) -> Answer:
        try:
            answer = await connections.ask(address, content, cost)
        except Exception as error:
            if self._keeps and connections.have_answered and _is_broken(error):
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

    def refuse_error(self, error: Any) -> None:
        """Refuse an error in a reply with status 200.

        Raises:
            RefusedError: If there is one with the status that it would have had, as gateways send
                it.
            ErrorInReplyError: If there is another one.
        """
        if not error:
            return

        code = str(first(error, "code"))
        if code in _STATUSES:
            raise RefusedError(int(code), self.shown(orjson.dumps(error)), {})

        shown = self.shown(_words_in(error).encode("utf-8", "replace"))
        raise ErrorInReplyError(f"answered with an error instead of a reply: {_brief(shown)}")

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
            carried = self._carrier(self._headers, self._limits, self._keeps)
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


def _parsed(content: bytes) -> Any:
    """Return a reply as plain data.

    Raises:
        GarbledReplyError: If it is not JSON.
        UnusableReplyError: If it has too many values.
    """
    try:
        reply = orjson.loads(content)
    except ValueError:
        reply = _parsed_leniently(content)

    if len(content) > _FEW_BYTES and _has_too_many(reply):
        raise UnusableReplyError(f"sent a reply of more than {_MOST_VALUES} values")

    return reply


def _parsed_leniently(content: bytes) -> Any:
    """Parse with Python's own parser, which accepts NaN; of several lines, the last counts."""
    try:
        # a text that ends by length may end within a character
        return json.loads(content.decode(json.detect_encoding(content), "replace"))
    except (ValueError, RecursionError):
        try:
            last = json.loads(content.rstrip().rpartition(b"\n")[2])
        except RecursionError as error:
            # deep nesting is not an accident of transmission, so asking again would not help
            raise ValueError(f"it is not JSON: {error}") from error
        except ValueError as error:
            raise GarbledReplyError(f"it is not JSON: {error}") from error

    # a stream that broke off ends with the error
    if _A_PIECE.search(content.partition(b"\n")[0]) and not first(last, "error"):
        raise _streamed("pieces")
    return last


def _streamed(what: str) -> UnusableReplyError:
    return UnusableReplyError(
        f"answered with a stream of {what} that was not asked for: turn streaming off in the "
        "server or in the proxy before it"
    )


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


def is_web_page(content: bytes) -> bool:
    """Return True if a body is HTML or XML instead of JSON."""
    return content.lstrip()[:1] == b"<"


def describe_page(content: bytes) -> str:
    """Describe a web page in a few words, with its title if it has one."""
    found = _TITLE.search(content[:_FEW_BYTES])
    title = "" if found is None else _brief(unescape(found.group(1).decode(errors="replace")))
    return f"a web page ({title!r})" if title else "a web page"


def _brief(said: str) -> str:
    text = " ".join(said[:2000].split())
    return text if len(text) <= 200 else text[:197] + "..."


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


# Faults as errors of one tree


def translate(
    error: Exception, advice: Advice, *, host: str, model: str, seconds: float, sent: bool = True
) -> LLMError:
    """Map an exception from asking a server to prism's exception tree.

    Args:
        error: The exception.
        advice: What to do about a server of this dialect.
        host: Server asked.
        model: Model asked.
        seconds: The time limit.
        sent: Whether a request was sent; if not, nothing is known about the server.
    """
    if sent:
        translated = _translate(error, advice, host, model, seconds)
        # the model's fault is not about the request
        if isinstance(error, RefusedError) and not isinstance(translated, UselessReplyError):
            translated.status = error.status_code
        # the server failed internally, whatever its status
        is_unmarked = isinstance(error, (ErrorInReplyError, GarbledReplyError))
        if is_unmarked or has_lost_model(translated):
            translated.status = INTERNAL
    else:
        why = _first_line(error)
        translated = LLMError(f"the question cannot be sent to {model} at {host} ({why})")

    translated.host = host
    return translated


def _is_broken(error: Exception) -> bool:
    """Return True if a connection that had been made broke."""
    import httpx

    return isinstance(error, httpx.TransportError) and not isinstance(error, httpx.ConnectError)


def _translate(error: Exception, advice: Advice, host: str, model: str, seconds: float) -> LLMError:
    import httpx

    if isinstance(error, RefusedError):
        return _of_status(error, advice, host, model)
    if isinstance(error, EndlessReplyError):
        return TimedOutError(f"{host} {error}")
    if isinstance(error, TimeoutError):
        return TimedOutError(f"no complete reply from {model} at {host} within {seconds:g} s")
    if isinstance(error, httpx.ConnectError):
        why = _first_line(error)
        what_to_do = _of_tls(why) or advice.unreachable
        unreachable = UnreachableError(f"cannot reach {host} ({why}): {what_to_do}")
        unreachable.is_refused = True
        return unreachable
    if isinstance(error, httpx.TransportError):
        return UnreachableError(f"the connection to {host} broke ({_first_line(error)})")
    if isinstance(error, UnusableReplyError):
        return BadReplyError(f"{host} {error}")
    if isinstance(error, httpx.TooManyRedirects):
        return LLMError(f"{host} redirects endlessly: check the address")
    if isinstance(error, ValueError):
        why = _first_line(error)
        return BadReplyError(f"{model} at {host} sent an invalid reply ({why})")

    return LLMError(f"{model} at {host} failed: {type(error).__name__}: {_first_line(error)}")


def _of_tls(why: str) -> str:
    """Return what to do if a connection failed because of TLS, or an empty text."""
    if any(word in why for word in _NO_TLS):
        return "it does not use TLS, so write http:// instead of https://"
    if "CERTIFICATE_VERIFY_FAILED" in why:
        return "set the environment variable SSL_CERT_FILE to a file with its certificate"

    return ""


def said_in(body: str) -> str:
    """Return the message in the body of an error if it is JSON with one, or else the body."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return body

    return _words_in(said)


def _words_in(said: Any) -> str:
    """Return the message of an error, however it is nested."""
    # Google puts the object into a list
    if isinstance(said, list) and len(said) == 1:
        (said,) = said

    raw = None
    # OpenAI has {"error": {"message": ...}}, Ollama {"error": ...}, FastAPI {"detail": ...}
    for name in ("error", "message", "detail"):
        if isinstance(said, dict) and said.get(name):
            # what OpenRouter was told by the provider that it asked
            raw = raw or first(said.get("metadata"), "raw")
            said = said[name]

    words = said if isinstance(said, str) else json.dumps(said)
    return f"{words}: {raw}" if isinstance(raw, str) else words


def _of_status(refused: RefusedError, advice: Advice, host: str, model: str) -> LLMError:
    status, message = refused.status_code, said_in(refused.said)
    is_page = is_web_page(message.encode())
    what = f"{host} answered {status}{_shown(message, is_page=is_page)}"
    if status in OVERLOADED and not says_quota_is_spent(refused.said):
        return _overloaded(what, refused.wait)
    if says_model_is_missing(message, status):
        what_to_do = advice.no_model.format(model=model)
        return ModelMissingError(f"{host} does not have the model: {what_to_do}")
    if status == UNAUTHORIZED:
        return LLMError(f"{what}: {advice.key}")
    if status in MALFORMED and (useless := _of_the_model(refused.said, model, what)):
        return useless
    if status == NO_SUCH_PATH[0]:
        return BadReplyError(f"{what}: {SEE_ADDRESS}" if is_page else what)

    return LLMError(what)


def _of_the_model(said: str, model: str, what: str) -> UselessReplyError | None:
    """Return the error of a refusal that is about what the model did; None of any other."""
    if _BROKEN_JSON in said:
        return UselessReplyError(f"{model} wrote no valid JSON: {what}")
    if FILTERED in said:
        return DeclinedError(f"{model} declined to answer: {what}")

    return None


def _shown(message: str, *, is_page: bool) -> str:
    if is_page:
        return f" with {describe_page(message.encode())}"
    return f": {' '.join(message.split())[:200]}"


def _overloaded(what: str, wait: float | None) -> LLMError:
    error = OverloadedError(f"{what} (asks to wait {round(wait, 3):,.12g} s)" if wait else what)
    error.retry_after = wait
    return error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


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


Carrier = Callable[[Mapping[str, str], ReplyLimits, bool], AsyncGenerator[Ask, None]]
"""Yields an `Ask` with given headers and limits, and closes its connections at the end.

The last argument tells whether it keeps connections from one request to the next.
"""


def carrier_to(address: str) -> Carrier:
    """Return the carrier of requests to an address: aiohttp if it is installed, or else httpx.

    Requests through a proxy of the environment use httpx, which supports all kinds of proxies.
    """
    # importing takes a fraction of a second, during which no event loop should be blocked
    import httpx  # noqa: F401

    try:
        import aiohttp  # noqa: F401
    except ImportError:
        return over_httpx

    return over_httpx if _has_proxy(address) else over_aiohttp


def _has_proxy(address: str) -> bool:
    parts, proxies = urlsplit(address), getproxies()
    is_named = bool(proxies.get(parts.scheme) or proxies.get("all"))
    return is_named and not proxy_bypass(parts.hostname or "")


async def over_httpx(
    headers: Mapping[str, str], limits: ReplyLimits, keeps: bool
) -> AsyncGenerator[Ask, None]:
    """Carry requests with httpx; see `Carrier`."""
    import httpx

    async def read(response: httpx.Response) -> None:
        # httpx would decode a whole chunk at once, and 64 KiB of gzip can expand to 64 MB
        stream: Any = response.stream
        sent = response.request.method
        refuse_redirect(response.status_code, sent, response.headers.get("location", ""))
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

        request = client.build_request(
            _method(content), address, content=content, extensions={"trace": trace}
        )
        response = await client.send(request)
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


async def over_aiohttp(
    headers: Mapping[str, str], limits: ReplyLimits, keeps: bool
) -> AsyncGenerator[Ask, None]:
    """Carry requests with aiohttp; see `Carrier`. Its exceptions become those of httpx."""
    import aiohttp

    async def note_left(_session: Any, context: Any, _parameters: Any) -> None:
        context.trace_request_ctx.request_left()

    async def ask(address: str, content: bytes | None, cost: Cost) -> Answer:
        try:
            async with client.request(
                _method(content),
                address,
                data=content,
                max_redirects=_MOST_REDIRECTS,
                trace_request_ctx=cost,
            ) as response:
                encoding = response.headers.get("Content-Encoding", "")
                pieces = response.content.iter_any()
                body = await _read(pieces, encoding, response.status, limits)
                return Answer(response.status, response.headers, body)
        except aiohttp.ClientError as error:
            raise _as_of_httpx(error) from error

    async def note_redirect(_session: Any, _context: Any, parameters: Any) -> None:
        answer = parameters.response
        refuse_redirect(answer.status, parameters.method, answer.headers.get("Location", ""))

    tracing = aiohttp.TraceConfig()
    tracing.on_request_redirect.append(note_redirect)
    tracing.on_request_headers_sent.append(note_left)
    async with aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        max_field_size=_MOST_HEADER_BYTES,
        max_line_size=_MOST_HEADER_BYTES,
        connector=aiohttp.TCPConnector(limit=0, ssl=_certificates(), force_close=not keeps),
        trace_configs=[tracing],
    ) as client:
        yield ask


def refuse_redirect(status: int, method: str, where: str) -> None:
    """Refuse a redirect that makes a POST a GET, in which nothing would be asked.

    Raises:
        UnusableReplyError: If it is one.
    """
    if method == "POST" and status in _AS_GET:
        raise UnusableReplyError(
            f"redirects to {shown_address(where)}, where a question cannot follow: give the "
            "address at which the server itself answers"
        )


def _as_of_httpx(error: aiohttp.ClientError) -> Exception:
    """Return the equivalent error of httpx."""
    import aiohttp
    import httpx

    if isinstance(error, aiohttp.ClientConnectorError):
        why = getattr(error, "certificate_error", None) or error.os_error
        is_refused = isinstance(why, ConnectionError)
        return httpx.ConnectError("All connection attempts failed" if is_refused else str(why))
    if isinstance(error, aiohttp.TooManyRedirects):
        return httpx.TooManyRedirects("exceeded maximum allowed redirects")

    return httpx.RemoteProtocolError(str(error) or type(error).__name__)


def _method(content: bytes | None) -> str:
    return "GET" if content is None else "POST"


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
