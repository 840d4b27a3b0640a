"""Faults of a model server as errors of one tree."""

from __future__ import annotations

import json

from prism.errors import (
    BadReplyError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)
from prism.llm._dialect import Advice
from prism.llm._wire import (
    SEE_ADDRESS,
    ErrorInReplyError,
    GarbledReplyError,
    RefusedError,
    UnusableReplyError,
    describe_page,
    is_web_page,
)
from prism.statechart.reasoner._faults import (
    INTERNAL,
    NO_SUCH_PATH,
    OVERLOADED,
    read_retry_after,
    says_model_is_missing,
)

_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL", "HTTP_REQUEST")
"""OpenSSL's error for an unencrypted answer."""


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
        if isinstance(error, RefusedError):
            translated.status = error.status_code
        # the server failed internally, whatever its status
        if isinstance(error, (ErrorInReplyError, GarbledReplyError)):
            translated.status = INTERNAL
    else:
        why = _first_line(error)
        translated = LLMError(f"the question cannot be sent to {model} at {host} ({why})")

    translated.host = host
    return translated


def _translate(error: Exception, advice: Advice, host: str, model: str, seconds: float) -> LLMError:
    import httpx

    if isinstance(error, RefusedError):
        return _of_status(error, advice, host, model)
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

    # OpenAI has {"error": {"message": ...}}, Ollama {"error": ...}, FastAPI {"detail": ...}
    for name in ("error", "message", "detail"):
        if isinstance(said, dict) and said.get(name):
            said = said[name]

    return said if isinstance(said, str) else json.dumps(said)


def _of_status(refused: RefusedError, advice: Advice, host: str, model: str) -> LLMError:
    status, message = refused.status_code, said_in(refused.said)
    is_page = is_web_page(message.encode())
    said = describe_page(message.encode()) if is_page else " ".join(message.split())[:200]
    what = f"{host} answered {status}{' with' if is_page else ':'} {said}"
    if status in OVERLOADED:
        wait = read_retry_after(refused.retry_after)
        error = OverloadedError(what if not wait else f"{what} (asks to wait {wait:,.12g} s)")
        error.retry_after = wait
        return error

    if status == NO_SUCH_PATH[0] and says_model_is_missing(message):
        what_to_do = advice.no_model.format(model=model)
        return ModelMissingError(f"{host} does not have the model: {what_to_do}")
    if status == NO_SUCH_PATH[0]:
        return BadReplyError(f"{what}: {SEE_ADDRESS}" if is_page else what)

    return LLMError(what)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
