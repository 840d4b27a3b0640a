"""A fake OpenAI-compatible server for tests."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from prism.errors import FieldValueError
from prism.testing._faults import Exchange, Fault
from prism.testing._model_server import ModelServer, RefusedError
from prism.testing._wire import Asked


class FakeOpenAI(ModelServer):
    """Serves OpenAI's chat completions on a free loopback port, as vLLM and others do.

    It answers ``/v1/chat/completions`` (not streaming) and ``/v1/models``, and has the faults and
    attributes of `FakeOllama`. Use it as a context manager::

        with FakeOpenAI(latency=0.1, slots=4) as server:
            model = Model("llama3.2", server.host, server="openai")

    Args:
        refuses: Parameters that are refused with 400, such as ``response_format``,
            ``logprobs``, ``seed`` or ``reasoning_effort``.
        key: Key without which requests are refused with 401; None for no key.
        settings: Arguments of `FakeOllama`.

    Raises:
        FieldValueError: If there are no slots, or the models are one text instead of a list.

    Attributes:
        authorizations: The header ``Authorization`` of every request, or None.
    """

    _chat: ClassVar[str] = "/v1/chat/completions"

    def __init__(
        self, *, refuses: Collection[str] = (), key: str | None = None, **settings: Any
    ) -> None:
        if isinstance(refuses, str):
            raise FieldValueError(f"refuses must be a list of names, such as [{refuses!r}]")

        super().__init__(**settings)
        self.refuses: Collection[str] = refuses
        self.key: str | None = key
        self.authorizations: list[str | None] = []

    def _error(self, message: str, status: int) -> dict[str, Any]:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": status}}

    def _tool_call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"id": "call_1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return _completion("m", message, "tool_calls", None, (1, 1))

    def _route(self, exchange: Exchange, body: Any) -> None:
        authorization = exchange.headers.get("authorization")
        self.authorizations.append(authorization)
        if self.key is not None and authorization != f"Bearer {self.key}":
            # as some servers do, with what was given in the text
            raise RefusedError(401, f"Incorrect API key provided: {authorization}")

        match exchange.command, exchange.path:
            case "GET", "/v1/models":
                about = {"object": "model", "created": 0, "owned_by": "fake"}
                data = [{"id": name, **about} for name in self.models]
                exchange.respond(200, {"object": "list", "data": data})
            case "POST", self._chat:
                self._ask(exchange, body)
            case _:
                exchange.respond(404, {"detail": "Not Found"})

    def _most_tokens(self, question: Asked) -> int | None:
        most: int | None = question.body.get("max_tokens")
        return most

    def _reply(self, question: Asked, fault: Fault | None) -> dict[str, Any]:
        self._require_supported(question.body)
        reply = self._answer_to(question, fault)
        tokens = self._tokens_of(question, reply, fault)
        message = {"role": "assistant", "content": reply.text, "refusal": None}
        odds = None if tokens is None else {"content": tokens}
        return _completion(question.model, message, reply.ended, odds, (reply.read, reply.written))

    def _require_supported(self, body: Mapping[str, Any]) -> None:
        for name in self.refuses:
            if name in body:
                raise RefusedError(400, f"Unsupported parameter: '{name}' is not supported.")
        if body.get("stream"):
            raise RefusedError(400, "this server does not stream")


def _completion(
    model: str, message: Any, ended: str, chances: Any, tokens: tuple[int, int]
) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": ended, "logprobs": chances}
    read, written = tokens
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
    }
