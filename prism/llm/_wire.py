"""The one wire: JSON goes out, JSON comes back, read with a bound and counted."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Coroutine, Mapping
from html import unescape
from typing import Any
from urllib.parse import urljoin

import orjson

from prism.llm._addresses import credentials, secrets_in
from prism.llm._carriers import Ask, UnusableReplyError, carrier_to
from prism.statechart.reasoner._spending import Cost
from prism.telemetry._loggers import describe

MOST_REPLY_BYTES = 1024 * 1024
"""How long a reply may be, decoded."""

_MOST_VALUES = 50_000
"""How many values a reply may hold."""

_FEW_BYTES = 65_536
"""A reply of so many bytes cannot hold too many values."""

_CUT_OUT = b"[key]"

_LONG = 8
"""A secret of so many bytes is no word of an answer; many servers are given the key ``x``."""

SEE_ADDRESS = "see that this is the address of a model server"
"""Advice where a web page comes back, as from a proxy or another server."""

_TITLE = re.compile(rb"<title[^>]*>([^<]{1,500})", re.IGNORECASE)


class UnsendableError(ValueError):
    """A request holds what JSON cannot carry, such as half a surrogate pair."""


class GarbledReplyError(ValueError):
    """A reply of status 200 is not JSON, as of a server that broke off in the middle."""


class ErrorInReplyError(UnusableReplyError):
    """A reply of status 200 holds an error, as of a server that failed inside."""


class RefusedError(Exception):
    """A server answered with another status than success.

    Args:
        status: The HTTP status.
        said: The body, without secrets.
        retry_after: The header of this name; empty if there is none.
    """

    def __init__(self, status: int, said: str, retry_after: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code: int = status
        self.said: str = said
        self.retry_after: str = retry_after


class Exchange:
    """One request under way, and what it costs.

    Args:
        cost: What it costs.
        model: The model that is asked.
        address: The server that is asked, as it may be shown.

    Attributes:
        is_sent: Whether a request was sent, or begun to be.
        request: The body that is sent, as it may be recorded; None if nobody keeps it.
    """

    __slots__ = ("_address", "_cost", "_has_left", "_model", "is_sent", "request")

    def __init__(self, cost: Cost, model: str, address: str) -> None:
        self._cost = cost
        self._model = model
        self._address = address
        self._has_left = False
        self.is_sent: bool = False
        self.request: str | None = None

    def began(self) -> None:
        """Note that the request is sent; a redirect sends it again within the same attempt."""
        self.is_sent = True
        cost = self._cost
        cost.attempts += 1
        cost.model, cost.host = self._model, self._address
        cost.request_began(self.request)

    @property
    def is_recorded(self) -> bool:
        """Whether somebody keeps what is sent and what comes back."""
        return self._cost.trail is not None

    def left(self) -> None:
        """Note that the first of the request has left."""
        self._has_left = True

    def replied(self, shown: str) -> None:
        """Note what came back."""
        self._cost.request_replied(shown)

    def counted(self, said: Mapping[str, Any]) -> None:
        """Count what a reply says of its cost, in Ollama's words."""
        self._cost.add_tokens(said.get("prompt_eval_count"), said.get("eval_count"))
        self._cost.note_reply(said)

    def cancelled(self) -> None:
        """Note that it was given up; where nothing was sent yet, no request is counted."""
        if self.is_sent and not self._has_left:
            self.is_sent = False
            self._cost.request_unsent()

    def failed(self, shown: str) -> None:
        """Note why there is no usable reply."""
        if self.is_sent:
            self._cost.request_failed(shown)

    def ended(self) -> None:
        """Note that the request has ended, with a reply or without."""
        if self.is_sent:
            self._cost.request_ended()


class Wire:
    """The connections to one server, and what passes them.

    They are made with the first request, and again in every event loop that uses them. They end
    with their loop, if nobody closes them before.

    Args:
        address: The address as it was written.
        base: What all paths begin with, without a name and password.
        key: The key to send where the address has no name and password; it is shown nowhere.
        most_bytes: How long a reply may be, decoded.
    """

    def __init__(
        self, address: str, base: str, key: str = "", most_bytes: int = MOST_REPLY_BYTES
    ) -> None:
        self._base = base.rstrip("/") + "/"
        self._headers = _headers(credentials(address), key)
        self._carrier = carrier_to(self._base)
        self._most_bytes = most_bytes
        self._secrets = [secret.encode() for secret in secrets_in(address, key)]
        self._calls = 0
        self._closes_when_idle = False
        self._connections: AsyncGenerator[Ask, None] | None = None
        self._asking: Ask | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(
        self, path: str, body: Mapping[str, Any] | None, exchange: Exchange, seconds: float
    ) -> Any:
        """Send a request, and return the reply as plain data.

        Args:
            path: Where to, after what all paths begin with.
            body: What to POST as JSON; None to GET.
            exchange: Hears of all that passes.
            seconds: How long it may take.

        Raises:
            UnsendableError: If JSON cannot carry the body.
            RefusedError: If the status is no success.
            UnusableReplyError: If the reply is too long, a web page, or badly encoded.
            ValueError: If it is not JSON.
            TimeoutError: If it has not come in time.
        """
        content = None if body is None else _as_json(body)
        self._calls += 1
        try:
            # takes a moment the first time, which is not the server's
            ask = await self._connected()
            async with asyncio.timeout(seconds):
                return await self._sent(ask, path, content, exchange)
        except asyncio.CancelledError:
            self._closes_when_idle = True
            exchange.cancelled()
            raise
        except TimeoutError:
            self._closes_when_idle = True
            raise
        finally:
            self._calls -= 1
            if self._closes_when_idle and not self._calls:
                # httpcore 1.0 never closes a connection that was just made when its call broke off
                self._closes_when_idle = False
                await self.close()

    async def _sent(self, ask: Ask, path: str, content: bytes | None, exchange: Exchange) -> Any:
        if exchange.is_recorded:
            exchange.request = self.shown(content or b"")
        answer = await ask(urljoin(self._base, path), content, exchange)

        reply = self._without_secrets(answer.content, _LONG if answer.is_success else 0)
        if exchange.is_recorded:
            exchange.replied(self.shown(reply))
        if not answer.is_success:
            raise RefusedError(answer.status, reply.decode("utf-8", "replace"), answer.retry_after)
        if is_web_page(reply):
            page = describe_page(self._without_secrets(reply))
            raise UnusableReplyError(f"answered with {page} instead of a reply: {SEE_ADDRESS}")

        return _parsed(reply)

    def shown(self, body: bytes) -> str:
        """Return a body as it may be recorded."""
        return self._without_secrets(body).decode("utf-8", "replace")

    def described(self, error: Exception) -> str:
        """Return an error as it may be recorded."""
        return self.shown(describe(error).encode("utf-8", "replace"))

    def refuse_error(self, error: Any) -> None:
        """Refuse an error that stands in a reply with status 200.

        Raises:
            ErrorInReplyError: If there is one.
        """
        if error:
            shown = self.shown(_words_of(error).encode("utf-8", "replace"))
            raise ErrorInReplyError(f"answered with an error instead of a reply: {_brief(shown)}")

    def _without_secrets(self, body: bytes, shortest: int = 0) -> bytes:
        for secret in self._secrets:
            if len(secret) >= shortest:
                body = body.replace(secret, _CUT_OUT)

        return body

    async def close(self) -> None:
        """Close the connections, or have the last request under way do so."""
        is_here = self._loop is asyncio.get_running_loop()
        # those under way may be making connections that nobody would close
        if self._calls and is_here:
            self._closes_when_idle = True
            return

        connections, self._connections, self._asking = self._connections, None, None
        if connections is not None and is_here:
            await _to_the_end(connections.aclose())

    async def _connected(self) -> Ask:
        loop = asyncio.get_running_loop()
        if self._asking is None or self._loop is not loop:
            # a generator, because asyncio ends those with their loop, and when they are dropped
            self._connections = self._carrier(self._headers, self._most_bytes)
            self._loop, self._asking = loop, await anext(self._connections)

        return self._asking


def _headers(user: tuple[str, str] | None, key: str) -> dict[str, str]:
    headers = {
        "Accept": "application/json",
        # a compressed reply could be a thousand times what is sent
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
        raise UnsendableError(str(error)) from error


def _parsed(content: bytes) -> Any:
    """Return a reply as plain data.

    Raises:
        GarbledReplyError: If it is not JSON.
        UnusableReplyError: If it has more values than anybody should look at.
    """
    try:
        reply = orjson.loads(content)
    except ValueError:
        reply = _parsed_leniently(content)

    if len(content) > _FEW_BYTES and _has_too_many(reply):
        raise UnusableReplyError(f"sent a reply of more than {_MOST_VALUES} values")

    return reply


def _parsed_leniently(content: bytes) -> Any:
    """Return what Python's own parser reads, such as NaN; of several lines the last."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        try:
            return json.loads(content.rstrip().rpartition(b"\n")[2])
        except RecursionError as error:
            # nobody cuts a reply short by nesting it: asking again brings the same
            raise ValueError(f"it is not JSON: {error}") from error
        except ValueError as error:
            raise GarbledReplyError(f"it is not JSON: {error}") from error


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
    """Return a web page in a few words: its title, where it has one."""
    found = _TITLE.search(content[:_FEW_BYTES])
    title = "" if found is None else _brief(unescape(found.group(1).decode(errors="replace")))
    return f"a web page ({title!r})" if title else "a web page"


def _words_of(said: Any) -> str:
    """Return what an error says, however it is packed."""
    if isinstance(said, dict) and isinstance(said.get("message"), str):
        said = said["message"]

    return str(said)


def _brief(said: str) -> str:
    text = " ".join(said[:2000].split())
    return text if len(text) <= 200 else text[:197] + "..."


async def _to_the_end(closing: Coroutine[Any, Any, None]) -> None:
    """Wait for connections to be closed, even if that is cancelled.

    httpcore forgets all connections before it closes the first, so that nobody would close those
    that a cancellation leaves open.
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
