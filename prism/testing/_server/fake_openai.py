"""A fake OpenAI-compatible server for tests, and its wire format: questions read, and replies."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, Unpack

from prism.errors import FieldValueError
from prism.testing._server.exchange import Exchange, Forms
from prism.testing._server.faults import Fault
from prism.testing._server.model_server import ModelServer, ServerSettings
from prism.testing._server.wire import Asked, Said, likely_tokens, options_in

_CHAT = "/v1/chat/completions"

_NO_SCHEMA = (
    "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}"
)
"""The error of llama-cpp-python for a schema in OpenAI's form."""


def _error(message: str, status: int) -> dict[str, Any]:
    """Return the body of an error."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def _tool_call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply that calls a tool and has no text."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "call_1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": None}

    return {**_envelope("m"), "choices": [choice], "usage": _usage(1, 1)}


def _envelope(model: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model}


def _usage(read: int, written: int) -> dict[str, int]:
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }


_FORMS = Forms(_error, _tool_call)


class FakeOpenAI(ModelServer):
    """Serves OpenAI's chat completions on a free loopback port, as vLLM and others do.

    It answers ``/v1/chat/completions`` (not streaming) and ``/v1/models``, and has the faults of
    `FakeOllama`. Use it as a context manager::

        with FakeOpenAI(latency=0.1, slots=4) as server:
            model = Model("llama3.2", server.host, server="openai")

    Args:
        models: Models that it serves.
        logprobs: Whether requests for log-probabilities are answered or ignored.
        refuses: Parameters that are refused with 400, such as ``response_format``,
            ``logprobs``, ``seed`` or ``reasoning_effort``; ``json_schema`` refuses only that kind
            of ``response_format``, with 500, as llama-cpp-python does.
        key: Key without which requests are refused with 401; None for no key.
        how: As for `FakeOllama`, but a prompt that is longer than the window is refused with 400.
            Questions by letter have the options that the letters stand for.

    Raises:
        FieldValueError: If there are no slots, or the models are one text instead of a list.

    Attributes:
        latency: Seconds that each answer takes, or a function that returns them.
        questions: The questions asked, in order of arrival.
        asked: The number of questions asked.
        most_at_once: Maximum number of simultaneous answers.
        busy_seconds: Total seconds for which slots were busy.
        open_connections: Connections that are open now.
        authorizations: The header ``Authorization`` of every request, or None.
    """

    _forms: ClassVar[Forms] = _FORMS
    _asking: ClassVar[Collection[str]] = (_CHAT,)

    def __init__(
        self,
        *,
        models: Iterable[str] = ("llama3.2",),
        logprobs: bool = True,
        refuses: Collection[str] = (),
        key: str | None = None,
        **how: Unpack[ServerSettings],
    ) -> None:
        if isinstance(models, str) or isinstance(refuses, str):
            raise FieldValueError("models and refuses must be lists of names, not texts")

        super().__init__(models, **how)
        self.logprobs: bool = logprobs
        self.refuses: Collection[str] = refuses
        self.key: str | None = key
        self.authorizations: list[str | None] = []

    def _route(self, exchange: Exchange, body: Any, fault: Fault | None) -> None:
        given = exchange.headers.get("authorization")
        self.authorizations.append(given)
        if self.key is not None and given != f"Bearer {self.key}":
            # as some servers do, with what was given in the text
            exchange.refuse(401, f"Incorrect API key provided: {given}")
            return

        match exchange.method, exchange.path:
            case "GET", "/v1/models":
                exchange.respond(200, _model_list(self.models, self.window))
            case "POST", path if path == _CHAT:
                self._ask(exchange, body, fault)
            case _:
                exchange.respond(404, {"detail": "Not Found"})

    def _read(self, path: str, body: Any) -> Asked:
        return _question_in(path, body)

    def _reply(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        refusal = self._refusal_of(asked.body)
        if refusal is not None:
            exchange.refuse(*refusal)
            return

        said, tokens = self._said(asked, fault), None
        if self.logprobs and asked.body.get("logprobs"):
            told = None if fault is None else fault.probabilities
            tokens = likely_tokens(asked, said.text, told)

        exchange.respond(200, _reply_of(asked, said, tokens))

    def _refusal_of(self, body: Mapping[str, Any]) -> tuple[int, str] | None:
        refused = next((name for name in self.refuses if name in body), None)
        if refused is not None:
            return 400, f"Unsupported parameter: '{refused}' is not supported."
        if "json_schema" in self.refuses and "json_schema" in body.get("response_format", {}):
            return 500, _NO_SCHEMA

        return (400, "this server does not stream") if body.get("stream") else None


def _question_in(path: str, body: Any) -> Asked:
    """Return the question of a request.

    Raises:
        AttributeError, IndexError, KeyError, TypeError: If the request lacks a part of it.
    """
    prompt = str(body["messages"][-1]["content"])
    asked = Asked(path, body["model"], prompt, (), body)

    return Asked(path, asked.model, prompt, tuple(dict.fromkeys(options_in(asked.schema))), body)


def _reply_of(asked: Asked, said: Said, tokens: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Return the reply to a chat, with the log-probabilities of its tokens, if any."""
    chances = None if tokens is None else {"content": tokens}
    message = {"role": "assistant", "content": said.text, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": said.ended, "logprobs": chances}

    return {
        **_envelope(asked.model),
        "choices": [choice],
        "usage": _usage(said.read, said.written),
    }


def _model_list(models: tuple[str, ...], window: int | None = None) -> dict[str, Any]:
    """Return the models that the server has, with their windows in vLLM's form, if known."""
    told = {} if window is None else {"max_model_len": window}
    listed = [
        {"id": name, "object": "model", "created": 0, "owned_by": "fake", **told} for name in models
    ]
    return {"object": "list", "data": listed}
