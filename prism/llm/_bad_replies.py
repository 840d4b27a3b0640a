"""What comes instead of a reply: pages, streams, errors; and faults as errors of one tree."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

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
from prism.llm._dialect import Advice
from prism.reasoner._faults import (
    BROKEN_JSON,
    FILTERED,
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
from prism.reasoner._spending import first

SEE_ADDRESS = "check that this is the address of a model server"
"""Advice if a web page comes back, for example from a proxy or another server."""

_STATUSES = frozenset(str(status) for status in range(400, 600))

_BEGINNINGS_OF_EVENTS = (b"data:", b"event:", b": ")
"""How server-sent events begin: with a field, or with a comment that keeps a connection open."""

_A_PIECE = re.compile(rb'^\s*\{.*"done"\s*:\s*false')
"""A line of Ollama's streams before the last."""

Shown = Callable[[bytes], str]
"""Returns a body without secrets."""


class NoConnectionError(Exception):
    """No connection could be made."""


class BrokenConnectionError(Exception):
    """A connection broke."""


class EndlessRedirectsError(Exception):
    """A server redirects again and again."""


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
        self.wait: float | None = wait_in(headers)


# Bodies that are not JSON as a whole


def read_leniently(content: bytes, shown: Shown) -> Any:
    """Return the data of a reply in NaN's spelling, or of a broken stream's last line.

    Args:
        content: The reply, which is not valid JSON.
        shown: Hides secrets, for messages.

    Raises:
        UnusableReplyError: If it is a stream or a web page.
        GarbledReplyError: If it is not JSON.
    """
    if content.lstrip().startswith(_BEGINNINGS_OF_EVENTS):
        raise _streamed("events (text/event-stream)")
    if is_web_page(shown(content)):
        raise UnusableReplyError(f"answered with a web page instead of a reply: {SEE_ADDRESS}")

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


def is_web_page(body: str) -> bool:
    """Return True if a body is HTML or XML instead of JSON."""
    return body.lstrip().startswith("<")


def _brief(said: str) -> str:
    text = " ".join(said[:2000].split())
    return text if len(text) <= 200 else text[:197] + "..."


def error_told(error: Any, shown: Shown) -> RefusedError | ErrorInReplyError:
    """Return the exception for an error in a reply with status 200.

    Gateways send the status that it would have had.
    """
    code = str(first(error, "code"))
    if code in _STATUSES:
        return RefusedError(int(code), shown(orjson.dumps(error)), {})

    words = shown(_words_in(error).encode("utf-8", "replace"))
    return ErrorInReplyError(f"answered with an error instead of a reply: {_brief(words)}")


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
    if not sent:
        return unsendable(_first_line(error), host=host, model=model)

    translated = _translate(error, advice, host, model, seconds)
    translated.host = host
    # the model's fault is not about the request
    if isinstance(error, RefusedError) and not isinstance(translated, UselessReplyError):
        translated.status = error.status_code
    # the server failed internally, whatever its status
    is_unmarked = isinstance(error, (ErrorInReplyError, GarbledReplyError))
    if is_unmarked or has_lost_model(translated):
        translated.status = INTERNAL

    return translated


def unsendable(why: str, *, host: str, model: str) -> LLMError:
    """Return the error of a question that no request can carry."""
    return LLMError(f"the question cannot be sent to {model} at {host} ({why})", host=host)


def _translate(error: Exception, advice: Advice, host: str, model: str, seconds: float) -> LLMError:
    if isinstance(error, RefusedError):
        return _of_status(error, advice, host, model)
    if isinstance(error, EndlessReplyError):
        return TimedOutError(f"{host} {error}")
    if isinstance(error, TimeoutError):
        return TimedOutError(f"no complete reply from {model} at {host} within {seconds:g} s")
    if isinstance(error, NoConnectionError):
        why = _first_line(error)
        unreachable = UnreachableError(f"cannot reach {host} ({why}): {advice.unreachable}")
        unreachable.is_refused = True
        return unreachable
    if isinstance(error, BrokenConnectionError):
        return UnreachableError(f"the connection to {host} broke ({_first_line(error)})")
    if isinstance(error, UnusableReplyError):
        return BadReplyError(f"{host} {error}")
    if isinstance(error, EndlessRedirectsError):
        return LLMError(f"{host} redirects endlessly: check the address")
    if isinstance(error, ValueError):
        why = _first_line(error)
        return BadReplyError(f"{model} at {host} sent an invalid reply ({why})")

    return LLMError(f"{model} at {host} failed: {type(error).__name__}: {_first_line(error)}")


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
    is_page = is_web_page(message)
    what = f"{host} answered {status}{_shown(message, is_page=is_page)}"
    if status in OVERLOADED and not says_quota_is_spent(refused.said):
        return _overloaded(what, refused.wait)
    if status == NO_SUCH_PATH[0] and says_model_is_missing(message):
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
    if BROKEN_JSON in said:
        return UselessReplyError(f"{model} wrote no valid JSON: {what}")
    if FILTERED in said:
        return DeclinedError(f"{model} declined to answer: {what}")

    return None


def _shown(message: str, *, is_page: bool) -> str:
    if is_page:
        return " with a web page"
    return f": {' '.join(message.split())[:200]}"


def _overloaded(what: str, wait: float | None) -> LLMError:
    asks = f" (asks to wait {round(wait, 3):,.12g} s)" if wait else ""
    return OverloadedError(f"{what}{asks}", retry_after=wait)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
