"""One request and its reply, as they pass the connection: read with a bound, and looked at once."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape
from typing import TYPE_CHECKING, Any

import orjson

from prism.statechart.reasoner._cost import Cost, count_of, duration_of
from prism.telemetry._loggers import describe

if TYPE_CHECKING:
    import httpx

MOST_REPLY_BYTES = 1024 * 1024
"""How long a reply may be, decoded."""

_MOST_ERROR_BYTES = 65_536
"""How much of an error is read; the rest could say nothing more."""

_MOST_VALUES = 50_000
"""How many values a reply may hold: pydantic makes a kilobyte of error of each that is wrong."""

_FEW_BYTES = 65_536
"""A reply of so many bytes cannot hold too many values."""

_PIECE_BYTES = 65_536
_COUNTS = ("prompt_eval_count", "eval_count")
_DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
_NOT_REPORTED = -1
_CUT_OUT = b"[key]"

_LONG = 8
"""A secret of so many bytes is no word of an answer; many servers are given the key ``x``."""

Words = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns what a reply says of itself in Ollama's words, in which costs are counted."""

SEE_ADDRESS = "see that this is the address of a model server"
"""Advice where a web page comes back, as from a proxy or another server."""

_TITLE = re.compile(rb"<title[^>]*>([^<]{1,500})", re.IGNORECASE)


class UnusableReplyError(ValueError):
    """A reply is refused as it is read; the message goes on from the name of the server."""


class ErrorInReplyError(UnusableReplyError):
    """A reply of status 200 holds an error, as of a server that failed inside."""


class Exchange:
    """A request under way.

    Args:
        cost: What it costs; tokens count also where the reply turns out to be of no use.
        model: The model that is asked.
        address: The server that is asked, as it may be shown.
        most_bytes: How long the reply may be.
        words: How what a reply says of itself is read; None for Ollama's own.
        secrets: What is to be cut out of all that is received, as a server may repeat a key or
            password; one that is short is left in answers, where it would be a common word.

    Attributes:
        is_sent: Whether a request was sent.
    """

    __slots__ = (
        "_address",
        "_cost",
        "_model",
        "_most_bytes",
        "_secrets",
        "_words",
        "is_sent",
    )

    def __init__(
        self,
        cost: Cost,
        model: str,
        address: str,
        most_bytes: int,
        words: Words | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._cost = cost
        self._model = model
        self._address = address
        self._most_bytes = most_bytes
        self._words = words
        self._secrets = [secret.encode() for secret in secrets]
        self.is_sent: bool = False

    def sent(self, request: httpx.Request) -> None:
        """Note that a request is sent."""
        # a redirect sends a second request for the same attempt
        if self.is_sent:
            return

        self.is_sent = True
        cost = self._cost
        cost.attempts += 1
        cost.model, cost.host = self._model, self._address
        cost.request_began(None if cost.trail is None else self._shown(request.content))

    def failed(self, error: Exception) -> None:
        """Note why there is no usable reply."""
        if self.is_sent and self._cost.trail is not None:
            self._cost.request_failed(self._shown(describe(error).encode("utf-8", "replace")))

    def ended(self) -> None:
        """Note that the request has ended, with a reply or without."""
        if self.is_sent:
            self._cost.request_ended()

    async def received(self, response: httpx.Response) -> None:
        """Read a reply with a bound, and count what it says of its cost.

        Raises:
            UnusableReplyError: If it is too long, a web page, or an error in place of a reply.
        """
        import httpx

        most = self._most_bytes if response.is_success else _MOST_ERROR_BYTES
        content = await _read(response, most)
        content = self._without_secrets(content, _LONG if response.is_success else 0)
        if self._cost.trail is not None:
            self._cost.request_replied(self._shown(content))

        reply = _parsed(content) if response.is_success else None
        if isinstance(reply, dict):
            self._note(reply if self._words is None else self._words(reply))
            if _tidy(reply):
                content = json.dumps(reply).encode()
        elif response.is_success and is_web_page(content):
            raise UnusableReplyError(
                f"answered with {describe_page(self._without_secrets(content))} "
                f"instead of a reply: {SEE_ADDRESS}"
            )

        response.stream = httpx.ByteStream(content)

    def _shown(self, body: bytes) -> str:
        """Return a body as it may be recorded."""
        return self._without_secrets(body).decode("utf-8", "replace")

    def _without_secrets(self, body: bytes, shortest: int = 0) -> bytes:
        for secret in self._secrets:
            if len(secret) >= shortest:
                body = body.replace(secret, _CUT_OUT)

        return body

    def _note(self, reply: Mapping[str, Any]) -> None:
        usage = reply.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        read, written = (reply.get(name) for name in _COUNTS)
        self._cost.add_tokens(
            usage.get("input_tokens") if read is None else read,
            usage.get("output_tokens") if written is None else written,
        )
        self._cost.note_reply(reply)

        said = reply.get("error")
        if said and "message" not in reply and "answers" not in reply:
            shown = self._shown(_words_of(said).encode("utf-8", "replace"))
            raise ErrorInReplyError(f"answered with an error instead of a reply: {_brief(shown)}")


async def _read(response: httpx.Response, most: int) -> bytes:
    """Return the decoded body of a reply; of an error its beginning, as its status says enough.

    httpx would decode a whole piece at once, and 64 KiB of gzip can hold 64 MB.

    Raises:
        UnusableReplyError: If a reply is longer, or is encoded in a way that was not asked for.
    """
    stream: Any = response.stream
    content, sent = bytearray(), 0
    try:
        decoder = _decoder_of(response)
        async for raw in stream:
            sent += len(raw)
            for piece in [raw] if decoder is None else _inflated(decoder, raw):
                content += piece
                if len(content) > most:
                    break

            # also of what is sent, which may stand for nothing
            if max(sent, len(content)) > most:
                raise UnusableReplyError(f"sent a reply of more than {most} bytes")
    except UnusableReplyError:
        if response.is_success:
            raise
    finally:
        await stream.aclose()

    return bytes(content[:most])


def _decoder_of(response: httpx.Response) -> Any:
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
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


def _parsed(content: bytes) -> Any:
    """Return a reply as plain data; None if it is not JSON, which its reader will find out.

    Raises:
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
    for text in (content, content.rstrip().rpartition(b"\n")[2]):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            continue

    return None


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


def _tidy(reply: dict[str, Any]) -> bool:
    """Take out counts and durations that cannot be true; return True if there were any.

    The client would refuse the whole reply for a count of 1.5.
    """
    checks = {**dict.fromkeys(_COUNTS, count_of), **dict.fromkeys(_DURATIONS, duration_of)}
    wrong = [name for name, read in checks.items() if name in reply and read(reply[name]) is None]
    for name in wrong:
        del reply[name]

    return _tidy_usage(reply) or bool(wrong)


def _tidy_usage(reply: dict[str, Any]) -> bool:
    """Have a decision's usage in the one form that the client takes."""
    if "answers" not in reply:
        return False

    usage = reply.get("usage")
    given = usage if isinstance(usage, dict) else {}
    counts = {name: count_of(given.get(name)) for name in ("input_tokens", "output_tokens")}
    if None not in counts.values():
        return False

    # the client insists on whole numbers
    told = {name: _NOT_REPORTED if count is None else count for name, count in counts.items()}
    reply["usage"] = told

    return True


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
