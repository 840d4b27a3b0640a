"""The wire format of OpenAI's chat completions: questions read from requests, and replies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import log
from typing import Any

from prism.testing._server.exchange import Forms
from prism.testing._server.wire import Asked, options_in, weights_of

CHAT = "/v1/chat/completions"
MODELS = "/v1/models"

NO_SCHEMA = (
    "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}"
)
"""What llama-cpp-python says to a schema as OpenAI has it."""

_NEVER = -9999.0
"""What OpenAI has for the logarithm of 0, which JSON cannot carry."""

_TOKEN = re.compile(r"\w+|[^\w\s]+|\s+")


def read_question(path: str, body: Any) -> Asked:
    """Return the question of a request.

    Raises:
        AttributeError, IndexError, KeyError, TypeError: If the request lacks a part of it.
    """
    prompt = str(body["messages"][-1]["content"])
    asked = Asked(path, body["model"], prompt, (), body)

    return Asked(path, asked.model, prompt, tuple(dict.fromkeys(options_in(asked.schema))), body)


def error(message: str, status: int) -> dict[str, Any]:
    """Return the body of an error."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def tool_call(name: str) -> dict[str, Any]:
    """Return a reply that calls a tool, and says nothing."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": None}

    return {**_envelope("m"), "choices": [choice], "usage": _usage(1, 1)}


FORMS = Forms(error, tool_call)


def reply(asked: Asked, content: str, weights: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the reply to a chat.

    Args:
        asked: The question.
        content: What the model writes.
        weights: Probabilities of the options, whose logarithms are given with the tokens; None for
            no log-probabilities.
    """
    chances = None if weights is None else {"content": list(_tokens(content, weights))}
    message = {"role": "assistant", "content": content, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": chances}
    usage = _usage(len(asked.prompt.split()), len(content.split()))

    return {**_envelope(asked.model), "choices": [choice], "usage": usage}


def weights_in(asked: Asked, content: str) -> Mapping[str, Any]:
    """Return the usual probabilities of the options, of which the content has one."""
    written = _TOKEN.findall(content)
    chosen = next((option for option in asked.options if option in written), "")
    return weights_of(chosen, asked.options) if chosen else {}


def model_list(models: tuple[str, ...]) -> dict[str, Any]:
    """Return the models that the server has."""
    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in models]
    return {"object": "list", "data": listed}


def _tokens(content: str, weights: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for text in _TOKEN.findall(content):
        likely = weights if text in weights else {text: 1.0}
        alternatives = [_token(each, chance) for each, chance in likely.items()]
        own = next(each for each in alternatives if each["token"] == text)
        yield {**own, "top_logprobs": alternatives}


def _token(text: str, chance: Any) -> dict[str, Any]:
    is_possible = isinstance(chance, (int, float)) and chance > 0
    logarithm = log(chance) if is_possible else _NEVER if chance == 0 else chance
    return {"token": text, "logprob": logarithm, "bytes": list(text.encode())}


def _envelope(model: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model}


def _usage(read: int, written: int) -> dict[str, int]:
    # a word counts as a token
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }
