"""What the clients of model servers raise, and which of it is retryable.

Measured for version 0.6.3 of the ollama client: besides its own ``ResponseError`` it lets through
built-in, httpx, json and pydantic exceptions, and stumbles (AttributeError) over an error body that
is JSON but no object. What the openai client raises is unwrapped before: httpx's exceptions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from prism.errors import (
    BadReplyError,
    CircuitOpenError,
    DecisionsUnsupportedError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)
from prism.llm._exchange import (
    SEE_ADDRESS,
    ErrorInReplyError,
    UnusableReplyError,
    describe_page,
    is_web_page,
)
from prism.statechart.reasoner._bare_ollama import retry_after_of, says_model_is_missing

BUSY = (429, 503)
OVERLOADED = (*BUSY, 502, 504)
NO_SUCH_PATH = (404, 405, 501)
MALFORMED = (400, 422)


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a server that cannot be used.

    Args:
        unreachable: What to see to where nothing answers.
        no_model: What to do where the model is missing; ``{model}`` stands for its name.
    """

    unreachable: str
    no_model: str


OLLAMA = Advice("see that 'ollama serve' is running there", "run  ollama pull {model}")


def is_retryable(error: BaseException) -> bool:
    """Return True if asking again may help: the server was busy, or the connection failed."""
    is_passing = isinstance(error, (OverloadedError, UnreachableError, TimedOutError))
    return is_passing and not isinstance(error, CircuitOpenError)


def is_busy(error: BaseException) -> bool:
    """Return True if the server works but takes no more now (HTTP 429 or 503)."""
    # 502 and 504 come from a gateway whose server is gone
    return isinstance(error, OverloadedError) and _status_of(error.__cause__) in BUSY


def is_unusable(error: BaseException) -> bool:
    """Return True if a host has answered with nothing of use, which another host may not do.

    Not what passes, and not what says that a host can never serve such questions.
    """
    never_serves = isinstance(error, (ModelMissingError, DecisionsUnsupportedError))
    return isinstance(error, LLMError) and not is_retryable(error) and not never_serves


def is_internal(error: BaseException) -> bool:
    """Return True if the server failed inside (HTTP 500, an error in a 200), which may pass."""
    status = _status_of(error.__cause__)
    if status in OVERLOADED or status in NO_SUCH_PATH:
        return False
    return status >= 500 or isinstance(error.__cause__, ErrorInReplyError)


def is_permanent_refusal(error: BaseException) -> bool:
    """Return True if the server understood a request and will never serve it (HTTP 4xx but 429)."""
    return 400 <= _status_of(error.__cause__) < 500 and not is_retryable(error)


def refuses_think(error: BaseException) -> bool:
    """Return True if the model refused the option ``think``: some take levels only, or nothing."""
    return is_malformed(error) and "think" in str(error).lower()


def is_malformed(error: BaseException) -> bool:
    """Return True if the server does not take the request as it is written (HTTP 400 or 422)."""
    return _status_of(error.__cause__) in MALFORMED


def is_refusal(error: BaseException) -> bool:
    """Return True if the server does not take the request as it is written, whatever it calls that.

    Some that check requests with pydantic answer 500 with what it has found.
    """
    is_found = is_internal(error) and "validation error" in str(error)
    return is_malformed(error) or is_found


def lacks_path(error: BaseException) -> bool:
    """Return True if the server does not know a path, as other servers lack some of Ollama's."""
    return _status_of(error.__cause__) in NO_SUCH_PATH and not isinstance(error, ModelMissingError)


def _status_of(cause: BaseException | None) -> int:
    """Return the HTTP status, or 0 if there is none."""
    # the client's exception has it, or httpx's, or the one that it was raised in place of
    for raised in (cause, getattr(cause, "__context__", None)):
        status = getattr(raised, "status_code", None) or getattr(
            getattr(raised, "response", None), "status_code", None
        )
        if status is not None:
            return int(status)

    return 0


def translate(
    error: Exception,
    *,
    host: str,
    model: str,
    timeout: float,
    sent: bool = True,
    advice: Advice = OLLAMA,
) -> LLMError:
    """Map what a client raised to prism's tree.

    Args:
        error: What was raised.
        host: Server asked.
        model: Model asked.
        timeout: Seconds that were allowed.
        sent: Whether a request was sent; if not, nothing is known of the server.
        advice: What to do about a server of this dialect.
    """
    if sent:
        translated = _translate(error, advice, host=host, model=model, timeout=timeout)
    else:
        # such as half a surrogate pair, which JSON can carry but HTTP cannot
        why = _first_line(error)
        translated = LLMError(f"the question cannot be sent to {model} at {host} ({why})")

    translated.host = host
    return translated


def _translate(
    error: Exception, advice: Advice, *, host: str, model: str, timeout: float
) -> LLMError:
    import httpx
    import ollama

    refused = error.__context__  # kept by the ollama client, though not shown
    if isinstance(error, ollama.ResponseError):
        said = str(error.error)
        return _of_status(error.status_code, said, refused, advice, host=host, model=model)

    # the client has stumbled over the body of the error
    if isinstance(error, AttributeError) and isinstance(refused, httpx.HTTPStatusError):
        error = refused

    if isinstance(error, httpx.HTTPStatusError):
        said = said_in(error.response.text)
        return _of_status(error.response.status_code, said, error, advice, host=host, model=model)

    if isinstance(error, (TimeoutError, httpx.TimeoutException)):
        return TimedOutError(f"no complete reply from {model} at {host} within {timeout:g} s")
    if isinstance(error, httpx.TransportError) and not isinstance(error, httpx.ConnectError):
        return UnreachableError(f"the connection to {host} broke ({_first_line(error)})")

    if isinstance(error, (ConnectionError, httpx.TransportError)):
        why = _first_line(refused if isinstance(refused, httpx.ConnectError) else error)
        return UnreachableError(f"cannot reach {host} ({why}): {advice.unreachable}")

    if isinstance(error, UnusableReplyError):
        return BadReplyError(f"{host} {error}")
    if isinstance(error, httpx.TooManyRedirects):
        return LLMError(f"{host} redirects without end: see that the address is right")

    # RecursionError: nested more deeply than JSON is read
    if isinstance(error, (ValueError, TypeError, AttributeError, LookupError, RecursionError)):
        why = _what_is_wrong(error)
        return BadReplyError(
            f"{model} at {host} answered with something that is not a reply ({why})"
        )

    return LLMError(f"{model} at {host} failed: {type(error).__name__}: {_first_line(error)}")


def said_in(body: str) -> str:
    """Return what the body of an error says: its message, where it is JSON and has one."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return body

    # OpenAI has {"error": {"message": ...}}, Ollama {"error": ...}, FastAPI {"detail": ...}
    for name in ("error", "message", "detail"):
        if isinstance(said, dict) and said.get(name):
            said = said[name]

    return said if isinstance(said, str) else json.dumps(said)


def _of_status(
    status: int, message: str, refused: Any, advice: Advice, *, host: str, model: str
) -> LLMError:
    is_page = is_web_page(message.encode())
    said = describe_page(message.encode()) if is_page else " ".join(message.split())[:200]
    what = (
        f"{host} answered {status} with {said}" if is_page else f"{host} answered {status}: {said}"
    )
    if status in OVERLOADED:
        error = OverloadedError(what)
        error.retry_after = None if refused is None else retry_after_of(refused)
        return error

    if status == 404 and says_model_is_missing(message):
        what_to_do = advice.no_model.format(model=model)
        return ModelMissingError(f"{host} does not have the model: {what_to_do}")

    if _asked_to_decide(refused) and (
        status in NO_SUCH_PATH or (status == 400 and "support" in message)
    ):
        return DecisionsUnsupportedError(f"{model} at {host} takes no decision questions ({said})")

    if status == 404:
        return BadReplyError(f"{what}: {SEE_ADDRESS}" if is_page else what)

    return LLMError(what)


def _asked_to_decide(refused: Any) -> bool:
    request = getattr(refused, "request", None)
    return request is not None and request.url.path.endswith("/v1/systemone")


def _what_is_wrong(error: Exception) -> str:
    """Return what is wrong with a reply; of pydantic's findings the first."""
    findings = getattr(error, "errors", None)
    if not callable(findings):
        return _first_line(error)

    first = findings(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))[:100]
    return f"{place or 'the whole'}: {first['msg']}"[:200]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
