"""Failures of model servers: one tree of errors, whatever library raised them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from prism.errors import (
    BadReplyError,
    CircuitOpenError,
    DeclinedError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    PromptTooLongError,
    TimedOutError,
    UnreachableError,
    UselessReplyError,
)
from prism.telemetry.loggers import describe

OVERLOADED = (
    429, 498, 503, 529, 408, 409, 425, 499, 500, 502, 504,
    520, 521, 522, 523, 524, 530, -1,
)  # fmt: skip
"""Statuses of failures that may pass (498 is Groq's, from 520 on Cloudflare's; -1 is ollama's)."""

NO_SUCH_PATH = (404, 405, 501)
MALFORMED = (400, 422)
UNAUTHORIZED = (401, 403)

_TOO_LONG = re.compile(r"context[ _](length|size|window)|(prompt|input) (is )?too long", re.I)
_LACKS_MODEL = re.compile(
    r"\b(model|deployment)\b.*\b(not found|not exist|no such|unknown)|\b(no such|unknown) model\b",
    re.I | re.S,
)
_LOADING = re.compile(
    r"\bloading\b|unable to load model|no such file|\bmodel (has crashed|(is |was )?(un|re)loaded)",
    re.I,
)
_MOST_MESSAGE = 200


class OtherLoopError(LLMError, RuntimeError):
    """A client is asked by two event loops at once."""


def is_retryable(error: BaseException) -> bool:
    """Return whether asking again may help: the server was busy, or the connection failed."""
    may_pass = isinstance(error, (OverloadedError, UnreachableError, TimedOutError))
    return may_pass and not isinstance(error, CircuitOpenError)


def may_be_an_outage(error: LLMError) -> bool:
    """Return whether a refusal by a server that has answered before may be an outage.

    A restarted server knows no keys, has no models, or is still loading one.
    """
    is_loading = error.status in MALFORMED and _LOADING.search(str(error)) is not None
    return is_loading or error.status in UNAUTHORIZED or isinstance(error, ModelMissingError)


# Statuses


def of_status(status: int, body: str, headers: Mapping[str, str], where: str) -> LLMError:
    """Return the error for a status that is no success.

    Args:
        status: The status.
        body: The body of the answer.
        headers: Its headers.
        where: The model and the address, for the message.
    """
    is_page = body.lstrip().startswith("<")
    message = "a web page" if is_page else " ".join(message_in(body).split())[:_MOST_MESSAGE]
    problem = f"{where} answered {status}: {message}"
    if status in OVERLOADED and "insufficient_quota" not in body:
        return OverloadedError(problem, status=status, retry_after=_wait_in(headers))

    kind: type[LLMError] = BadReplyError if status in NO_SUCH_PATH else LLMError
    if status == NO_SUCH_PATH[0] and not is_page and _LACKS_MODEL.search(message):
        kind = ModelMissingError
    elif status in MALFORMED and "content_filter" in body:
        kind = DeclinedError
    elif status in MALFORMED and "json_validate_failed" in body:
        kind = UselessReplyError
    elif status in MALFORMED and _TOO_LONG.search(message):
        kind = PromptTooLongError

    return kind(problem, status=status)


def message_in(body: str) -> str:
    """Return the message in the body of an error, however it is nested, or else the body."""
    try:
        data: Any = json.loads(body)
    except (ValueError, RecursionError):
        return body

    # Google puts the object into a list
    if isinstance(data, list) and len(data) == 1:
        (data,) = data
    # OpenAI has {"error": {"message": ...}}, Ollama {"error": ...}, FastAPI {"detail": ...}
    for name in ("error", "message", "detail"):
        if isinstance(data, dict) and data.get(name):
            data = data[name]

    return data if isinstance(data, str) else json.dumps(data)


def _wait_in(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait; None if it names none, or a date."""
    wait = headers.get("retry-after", "")
    return float(wait) if re.fullmatch(r"\d{1,9}(\.\d+)?", wait) else None


# Exceptions of other libraries


def translated(error: Exception, where: str, seconds: float = 0.0) -> LLMError:
    """Return the error of prism's tree for an exception of a client.

    Args:
        error: The exception.
        where: The model and the address, for the message.
        seconds: The time limit of one request.
    """
    if isinstance(error, LLMError):
        return error

    import httpx

    for each in causes(error):
        response = getattr(each, "response", None)
        status = getattr(each, "status_code", None) or getattr(response, "status_code", None)
        if isinstance(status, int) and (status >= 400 or status == -1):
            return of_status(status, _body_of(error), _headers_of(error), where)
        if isinstance(each, (TimeoutError, httpx.TimeoutException)):
            limit = f" within {seconds:g} s" if seconds else ""
            why = f" ({_line(each)})" if str(each) else ""
            return TimedOutError(f"no complete reply from {where}{limit}{why}")
        if isinstance(each, (ConnectionError, httpx.ConnectError)):
            # below Ollama's own, which gives its own advice
            kinds = (httpx.ConnectError, httpx.ConnectTimeout)
            cause = next((below for below in causes(each) if isinstance(below, kinds)), each)
            refused = UnreachableError(f"cannot reach {where} ({_line(cause)})")
            refused.is_refused = True
            return refused
        # OSError, as of a name that is not resolved, or of the library requests
        is_broken = isinstance(each, (OSError, httpx.TransportError))
        if is_broken or str(each) == "Event loop is closed":
            return UnreachableError(f"the connection to {where} broke ({_line(each)})")
        if isinstance(each, ValueError):
            return _of_bad_reply(each, where)

    return LLMError(f"{where} failed: {describe(error)}")


def _of_bad_reply(error: ValueError, where: str) -> LLMError:
    """Return the error for a reply that is invalid: no JSON, or an error with status 200."""
    for problem in getattr(error, "errors", list)():
        received = problem.get("input")
        if isinstance(received, Mapping) and "error" in received:
            return of_status(500, json.dumps(received, default=str), {}, where)

    return BadReplyError(f"{where} sent an invalid reply ({_line(error)})")


def _body_of(error: Exception) -> str:
    for each in causes(error):
        text = getattr(getattr(each, "response", None), "text", None)
        if isinstance(text, str) and text:
            return text

    return str(getattr(error, "error", None) or error)


def _headers_of(error: Exception) -> Mapping[str, str]:
    headers = (getattr(getattr(each, "response", None), "headers", None) for each in causes(error))
    return next((each for each in headers if each), {})


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, and what it was raised from."""
    ids: set[int] = set()
    while error is not None and id(error) not in ids:
        ids.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:_MOST_MESSAGE]
