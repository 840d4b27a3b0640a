"""What carries requests: httpx, or aiohttp for a sixth of its CPU time where it is installed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

if TYPE_CHECKING:
    import aiohttp
    import httpx

_MOST_ERROR_BYTES = 65_536
"""How much of an error is read; the rest could say nothing more."""

_PIECE_BYTES = 65_536
_MOST_REDIRECTS = 20


class UnusableReplyError(ValueError):
    """A reply is refused as it is read; the message goes on from the name of the server."""


class Sending(Protocol):
    """Hears how far a request is."""

    def began(self) -> None:
        """Note that the request is sent."""

    def left(self) -> None:
        """Note that the first of it has left."""


class Answer(NamedTuple):
    """What came back.

    Args:
        status: The HTTP status.
        retry_after: The header of this name; empty if there is none.
        content: The body, decoded; of an error its beginning.
    """

    status: int
    retry_after: str
    content: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is that of a success."""
        return _is_success(self.status)


Ask = Callable[[str, bytes | None, Sending], Awaitable[Answer]]
"""POSTs a body to an address, or GETs it where there is none."""

Carrier = Callable[[Mapping[str, str], int], AsyncGenerator[Ask, None]]
"""Yields an `Ask` whose connections it closes in the end, given headers and a bound for replies."""


def carrier_to(address: str) -> Carrier:
    """Return what carries requests to an address: aiohttp, if it is installed, else httpx.

    What goes through a proxy of the environment goes with httpx, which knows all kinds of those.
    """
    # importing takes part of a second, in which no event loop should stand still
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


async def over_httpx(headers: Mapping[str, str], most_bytes: int) -> AsyncGenerator[Ask, None]:
    """Carry requests with httpx; see `Carrier`."""
    import httpx

    async def read(response: httpx.Response) -> None:
        # httpx would decode a whole piece at once, and 64 KiB of gzip can hold 64 MB
        stream: Any = response.stream
        encoding = response.headers.pop("content-encoding", "")
        try:
            content = await _read(stream, encoding, response.status_code, most_bytes)
        finally:
            await stream.aclose()

        response.stream = httpx.ByteStream(content)

    async def ask(address: str, content: bytes | None, sending: Sending) -> Answer:
        async def trace(step: str, _info: Mapping[str, Any]) -> None:
            # of HTTP/1.1 or HTTP/2
            if step.endswith("send_request_headers.started"):
                sending.left()

        request = client.build_request(
            _method(content), address, content=content, extensions={"trace": trace}
        )
        sending.began()
        response = await client.send(request)
        wait = response.headers.get("retry-after", "")
        return Answer(response.status_code, wait, response.content)

    # a transport of our own would leave out the proxies of the environment
    async with httpx.AsyncClient(
        headers=headers,
        timeout=None,
        follow_redirects=True,
        max_redirects=_MOST_REDIRECTS,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
        # before httpx reads a reply, also one that redirects
        event_hooks={"response": [read]},
        verify=_certificates(),
    ) as client:
        yield ask


async def over_aiohttp(headers: Mapping[str, str], most_bytes: int) -> AsyncGenerator[Ask, None]:
    """Carry requests with aiohttp; see `Carrier`. What it raises becomes what httpx raises."""
    import aiohttp

    async def note_left(_session: Any, context: Any, _parameters: Any) -> None:
        context.trace_request_ctx.left()

    async def ask(address: str, content: bytes | None, sending: Sending) -> Answer:
        sending.began()
        try:
            async with client.request(
                _method(content),
                address,
                data=content,
                max_redirects=_MOST_REDIRECTS,
                trace_request_ctx=sending,
            ) as response:
                encoding = response.headers.get("Content-Encoding", "")
                pieces = response.content.iter_any()
                body = await _read(pieces, encoding, response.status, most_bytes)
                return Answer(response.status, response.headers.get("Retry-After", ""), body)
        except aiohttp.ClientError as error:
            raise _as_of_httpx(error) from error

    tracing = aiohttp.TraceConfig()
    tracing.on_request_headers_sent.append(note_left)
    async with aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        connector=aiohttp.TCPConnector(limit=0, ssl=_certificates()),
        trace_configs=[tracing],
    ) as client:
        yield ask


def _as_of_httpx(error: aiohttp.ClientError) -> Exception:
    """Return the error of httpx that says the same."""
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
    # cached: reading them takes longer than all else that a client needs
    import httpx

    return httpx.create_ssl_context()


async def _read(pieces: AsyncIterator[bytes], encoding: str, status: int, most_bytes: int) -> bytes:
    """Read the decoded body of a reply; of an error its beginning, as its status says enough.

    Raises:
        UnusableReplyError: If a reply is longer, or is encoded in a way not asked for.
    """
    most = most_bytes if _is_success(status) else _MOST_ERROR_BYTES
    content, sent = bytearray(), 0
    try:
        decoder = _decoder_of(encoding)
        async for raw in pieces:
            sent += len(raw)
            for piece in [raw] if decoder is None else _inflated(decoder, raw):
                content += piece
                if len(content) > most:
                    break

            # also of what is sent, which may stand for nothing
            if max(sent, len(content)) > most:
                raise UnusableReplyError(f"sent a reply of more than {most} bytes")
    except UnusableReplyError:
        if _is_success(status):
            raise

    return bytes(content[:most])


def _decoder_of(encoding: str) -> Any:
    encoding = encoding.strip().lower()
    if encoding in ("identity", ""):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        # finds out itself whether it is gzip or zlib
        return zlib.decompressobj(wbits=47)

    raise UnusableReplyError(f"encodes its reply as {encoding[:40]!r}, which it was not asked to")


def _inflated(decoder: Any, raw: bytes) -> Iterator[bytes]:
    try:
        while raw:
            yield decoder.decompress(raw, _PIECE_BYTES)
            raw = decoder.unconsumed_tail
    except zlib.error as error:
        raise UnusableReplyError(f"sent a damaged reply ({error})") from error
