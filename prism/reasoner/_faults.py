"""Faults of servers and of other libraries' clients, and which of them are temporary."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress

from prism.errors import (
    BadReplyError,
    BudgetSpentError,
    CircuitOpenError,
    DecisionsUnsupportedError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)
from prism.reasoner._spending import first
from prism.telemetry.loggers import describe


class OtherLoopError(LLMError, RuntimeError):
    """A client is asked by two event loops at once, which is the caller's mistake."""


BUSY = (429, 498, 503, 529)
"""Too many requests, as some providers say it with a status of their own (498 is Groq's)."""

OVERLOADED = (*BUSY, 408, 409, 425, 499, 502, 504, 521, 522, 523, 524, 530)
"""Those, requests that came too late, too early or at the same time, and what a gateway answers for
a server that it cannot reach; from 521 on, Cloudflare."""

NO_SUCH_PATH = (404, 405, 501)
MALFORMED = (400, 422)
UNAUTHORIZED = 401
FORBIDDEN = 403

INTERNAL = 500
_IN_A_STREAM = -1
_MOST_SAID = 200

_LOST = re.compile(
    r"unable to load model|blobs[/\\]sha256|no such file|file does not exist|"
    r"\bmodel (has crashed|(is |was )?(un|re)loaded)\b",
    re.IGNORECASE,
)

_LACKS_MODEL = re.compile(
    r"\b(model|deployment)\b.*\b(not found|not exist|no such|unknown)|\b(no such|unknown) model\b",
    re.IGNORECASE | re.DOTALL,
)

_REFUSED = re.compile(r"validation error|logprobs")

_TOO_LONG = re.compile(
    r"context[ _](length|size|window)|exceeds?\b.*\bcontext|(prompt|input) (is )?too long",
    re.IGNORECASE,
)

FILTERED = "content_filter"
"""OpenAI's word for a text that a filter withheld, and Azure's for a prompt that it refuses."""

BROKEN_JSON = "json_validate_failed"
"""Groq's name for a reply that does not follow the schema, for which it answers 400."""

_QUOTA = "insufficient_quota"


def is_retryable(error: BaseException) -> bool:
    """Return True if asking again may help: the server was busy, or the connection failed."""
    is_passing = isinstance(error, (OverloadedError, UnreachableError, TimedOutError))
    return is_passing and not isinstance(error, CircuitOpenError)


def is_busy(error: BaseException) -> bool:
    """Return True if the server works but accepts no more requests now (HTTP 429, 503 or 529)."""
    # the others come from a gateway that cannot reach its server
    return isinstance(error, OverloadedError) and _status_of(error) in BUSY


def is_loading(error: BaseException) -> bool:
    """Return True if the server is busy with loading the model, which may take minutes."""
    return is_busy(error) and "loading" in str(error).lower()


def is_refused(error: BaseException) -> bool:
    """Return True if no connection could be made, so the server has seen no question."""
    return isinstance(error, UnreachableError) and error.is_refused


def is_unusable(error: BaseException) -> bool:
    """Return True if a host gave a useless answer, where another host may do better.

    This excludes temporary failures, hosts that can never serve such questions, and a budget that
    does not allow the host another request.
    """
    is_other = isinstance(error, (ModelMissingError, DecisionsUnsupportedError, BudgetSpentError))
    return isinstance(error, LLMError) and not is_retryable(error) and not is_other


def is_internal(error: BaseException) -> bool:
    """Return True if the server failed internally, which may be temporary.

    The signs are HTTP 500, an error in a 200, or a 200 that is not JSON.
    """
    status = _status_of(error)
    if status in OVERLOADED or status in NO_SUCH_PATH:
        return False
    return status >= 500


def has_lost_model(error: BaseException) -> bool:
    """Return True if the server has lost a model that it may soon have again.

    Ollama cannot read its files while it is being pulled again (HTTP 500). LM Studio says that it
    has crashed (HTTP 400), and loads it for the next request.
    """
    is_answer = is_internal(error) or is_malformed(error)
    return is_answer and _LOST.search(str(error)) is not None


def is_permanent_refusal(error: BaseException) -> bool:
    """Return True if the server will never serve a request that it understood (4xx, not 429)."""
    return 400 <= _status_of(error) < 500 and not is_retryable(error)


def is_malformed(error: BaseException) -> bool:
    """Return True if the server does not accept the request in this form (HTTP 400 or 422)."""
    return _status_of(error) in MALFORMED


def is_refusal(error: BaseException) -> bool:
    """Return True if the server does not accept the request in this form, whatever the status.

    Some servers that validate requests with pydantic answer 500 with its findings. OpenAI refuses
    log-probabilities of some models as forbidden, and others as not implemented.
    """
    is_other = is_internal(error) or _status_of(error) in (FORBIDDEN, NO_SUCH_PATH[-1])
    return is_malformed(error) or (is_other and _REFUSED.search(str(error)) is not None)


def refuses_length(error: BaseException) -> bool:
    """Return True if the server refused a prompt because it exceeds the model's window."""
    return is_malformed(error) and _TOO_LONG.search(str(error)) is not None


def part_named(said: str, parts: Mapping[str, Sequence[str]], sent: Container[str]) -> str | None:
    """Return the first part of a request that a refusal names.

    Args:
        said: The text of the refusal.
        parts: Parts that may be refused, and the words by which servers name them.
        sent: The parts of the request.
    """
    # behind the address
    words = (said.partition(" answered ")[2] or said).lower()
    named = (part for part, names in parts.items() if any(name in words for name in names))
    return next((part for part in named if part in sent), None)


def lacks_path(error: BaseException) -> bool:
    """Return True if the server lacks a path, such as some of Ollama's on other servers."""
    is_of_the_model = isinstance(error, ModelMissingError) or says_model_is_missing(str(error))
    return _status_of(error) in NO_SUCH_PATH and not is_of_the_model


def lacks_decisions(error: BaseException) -> bool:
    """Return True if the answer to a decision question says that these are not supported."""
    is_unsupported = _status_of(error) == MALFORMED[0] and "support" in str(error).lower()
    return lacks_path(error) or is_unsupported


def _status_of(error: BaseException) -> int:
    return error.status if isinstance(error, LLMError) else status_of(error) or 0


# Exceptions of other libraries' clients


def translated(error: Exception) -> Exception:
    """Return the equivalent of a client's exception in prism's tree, or the exception.

    Temporary and possibly temporary failures are translated. So are exceptions of prism's own
    clients inside another; these have already retried, so they are not temporary any more.
    """
    status, said = status_of(error), error_in_body(error)
    if isinstance(error, LLMError):
        return LLMError(describe(error))
    if said is not None:
        told = "the server answered with an error instead of a reply"
        brief = " ".join(said[:2000].split())[:_MOST_SAID]
        return BadReplyError(f"{told}: {brief}", status=INTERNAL)
    if status in (*OVERLOADED, _IN_A_STREAM):
        wait = _wait_of(error)
        return OverloadedError(describe(error), status=status, retry_after=wait)
    if status == INTERNAL or has_lost_model(error):
        return LLMError(describe(error), status=INTERNAL)
    if status is None and any(map(_is_transport_fault, _causes(error))):
        return UnreachableError(describe(error))

    return error


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an exception or one of its causes has."""
    for raised in _causes(error):
        response = getattr(raised, "response", None)
        status = first(raised, "status_code", "status") or getattr(response, "status_code", None)
        if isinstance(status, int):
            return status

    return None


def _wait_of(error: BaseException) -> float | None:
    """Return the seconds that an exception, or one of its causes, asks to wait."""
    answers = (getattr(raised, "response", None) for raised in _causes(error))
    told = (getattr(answer, "headers", None) for answer in answers)
    waits = (wait_in(headers) for headers in told if isinstance(headers, Mapping))
    return next((wait for wait in waits if wait is not None), None)


def wait_in(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait in its headers; None if it does not."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            return max(0.0, float(headers.get(name, "")) * unit)

    return None


def error_in_body(error: BaseException) -> str | None:
    """Return the error in a reply with status 200, which is then not a valid reply."""
    for raised in _causes(error):
        # pydantic's method; pydantic is not imported for this
        read_errors = getattr(raised, "errors", None)
        if type(raised).__name__ != "ValidationError" or not callable(read_errors):
            continue

        inputs = [item.get("input") for item in read_errors()]
        said = [given for given in inputs if isinstance(given, Mapping) and "error" in given]
        if said:
            return str(said[0]["error"])

    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Return an exception and its causes and contexts."""
    seen: set[int] = set()
    found = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


def _is_transport_fault(error: BaseException) -> bool:
    # a run has its own event loop, in which it leaves connections of the user's client
    if isinstance(error, RuntimeError) and str(error) == "Event loop is closed":
        return True

    httpx = sys.modules.get("httpx")
    kinds = (ConnectionError, TimeoutError)
    return isinstance(error, kinds if httpx is None else (*kinds, httpx.TransportError))


def says_model_is_missing(message: str) -> bool:
    """Return True if the text of a 404 says that the server lacks the model, not the path."""
    # a web page may say anything
    return not message.lstrip().startswith("<") and _LACKS_MODEL.search(message) is not None


def says_quota_is_spent(message: str) -> bool:
    """Return True if the text of a 429 says that money is spent, which does not pass."""
    return _QUOTA in message
