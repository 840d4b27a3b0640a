"""A fake Ollama server for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from prism.testing._faults import Exchange, Fault
from prism.testing._model_server import ModelServer
from prism.testing._wire import Asked

_VERSION = "0.35.0"
"""The version that the server reports."""


class FakeOllama(ModelServer):
    """Serves Ollama's API on a free loopback port, from a thread.

    It answers ``/api/chat`` (a stream has one line), ``/api/tags``, ``/api/version``, ``/api/ps``
    and ``/api/generate`` (which loads a model). Use it as a context manager::

        with FakeOllama(latency=0.1, slots=4) as server:
            client = OllamaChatClient(server.host, "llama3.2")

    Args:
        models: Models that can chat.
        choose: Returns the answer to a question; the first option by default.
        write: Returns the model's text for questions without options. It is called with the prompt
            and the schema of the answer (None for a text); anything but a text is sent as JSON. By
            default it does what ``choose`` does.
        logprobs: Whether requests for log-probabilities are answered; servers before 0.12.11 ignore
            them.
        latency: Seconds that each answer takes, or a function that returns them.
        slots: Number of simultaneous answers; further questions wait. None for no limit.

    Raises:
        FieldValueError: If there are no slots, or the models are one text instead of a list.

    Attributes:
        latency: Seconds that each answer takes, or a function that returns them.
        questions: The questions asked, in order of arrival.
        asked: The number of questions asked.
        most_at_once: Maximum number of simultaneous answers.
        open_connections: Connections that are open now.
    """

    _chat: ClassVar[str] = "/api/chat"

    def _error(self, message: str, status: int) -> dict[str, Any]:  # noqa: ARG002
        return {"error": message}

    def _tool_call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        call = {"function": {"name": name, "arguments": dict(arguments)}}
        message = {"role": "assistant", "content": "", "tool_calls": [call]}
        return {**_envelope("m"), "message": message}

    def _route(self, exchange: Exchange, body: Any) -> None:
        match exchange.command, exchange.path:
            case "GET", "/api/version":
                exchange.respond(200, {"version": _VERSION})
            case "GET", "/api/tags":
                listed = [{"model": name, "name": name} for name in self.models]
                exchange.respond(200, {"models": listed})
            case "GET", "/api/ps":
                exchange.respond(200, {"models": []})
            case "POST", self._chat | "/api/generate":
                self._ask(exchange, body)
            case _:
                exchange.respond(404, b"404 page not found")

    def _reply(self, question: Asked, fault: Fault | None) -> dict[str, Any]:
        if question.path != self._chat:
            return {**_envelope(question.model), "response": "", "done_reason": "load"}

        reply = self._answer_to(question, fault)
        tokens = self._tokens_of(question, reply, fault)
        # whole, also where it may be a stream, whose only line it is then
        return {
            **_envelope(question.model),
            "done_reason": reply.ended,
            "prompt_eval_count": reply.read,
            "eval_count": reply.written,
            "message": {"role": "assistant", "content": reply.text},
            **({} if tokens is None else {"logprobs": tokens}),
        }

    def _most_tokens(self, question: Asked) -> int | None:
        most: int | None = (question.body.get("options") or {}).get("num_predict")
        return most


def _envelope(model: str) -> dict[str, Any]:
    return {"model": model, "created_at": "2026-01-01T00:00:00Z", "done": True}
