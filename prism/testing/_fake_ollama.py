"""A fake Ollama server for tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from prism.testing._faults import Exchange, Fault
from prism.testing._model_server import ModelServer, RefusedError
from prism.testing._wire import Asked, last_tokens

_VERSION = "0.35.0"
"""The version that the server reports."""

_LONGEST_WINDOW = 131_072
_TOKEN_NANOSECONDS = 1_000_000


class FakeOllama(ModelServer):
    """Serves Ollama's API on a free loopback port, from a thread.

    It answers ``/api/chat`` (a stream has one line), ``/api/tags``, ``/api/show``,
    ``/api/version``, ``/api/ps`` and ``/api/generate`` (which loads a model). Use it as a context
    manager::

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
        window: Number of tokens that prompt and reply may have together, unless the request sets
            ``num_ctx``; of a longer prompt only the last half window is read, and nothing says so.
            None for no limit.
        restarts: Seconds for which the server is away, by the number of questions after which it
            stops, as in ``{400: 4.0}``.
        slots: Number of simultaneous answers; further questions wait. None for no limit.

    Raises:
        FieldValueError: If there are no slots, or the models are one text instead of a list.

    Attributes:
        latency: Seconds that each answer takes, or a function that returns them.
        questions: The questions asked, in order of arrival.
        asked: The number of questions asked.
        most_at_once: Maximum number of simultaneous answers.
        busy_seconds: Total seconds for which slots were busy.
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
                exchange.respond(200, {"models": self._running_models()})
            case "POST", "/api/show":
                exchange.respond(200, self._details(body))
            case "POST", self._chat | "/api/generate":
                self._ask(exchange, body)
            case _:
                exchange.respond(404, b"404 page not found")

    def _details(self, body: Any) -> dict[str, Any]:
        """Return what is known of a model, with the longest window that it was trained for."""
        model = body.get("model") if isinstance(body, dict) else None
        if model not in self.models:
            raise RefusedError(404, f"model {model!r} not found")

        info: dict[str, Any] = {}
        if self.window is not None:
            window = max(self.window, _LONGEST_WINDOW)
            info = {"general.architecture": "fake", "fake.context_length": window}
        return {
            "model_info": info,
            "details": {"family": "fake"},
            "capabilities": ["completion"],
        }

    def _running_models(self) -> list[dict[str, Any]]:
        """Return the loaded models that have a window."""
        if self.window is None:
            return []
        return [
            {"model": name, "name": name, "context_length": window or self.window}
            for name, window in self._loaded.items()
        ]

    def _reply(self, asked: Asked, fault: Fault | None) -> dict[str, Any]:
        if asked.path != self._chat:
            return {**_envelope(asked.model), "response": "", "done_reason": "load"}

        said = self._said(asked, fault)
        tokens = self._tokens_of(asked, said, fault)
        # whole, also where it may be a stream, whose only line it is then
        return {
            **_envelope(asked.model),
            # each token takes a millisecond
            "done_reason": said.ended,
            "total_duration": (said.read + said.written) * _TOKEN_NANOSECONDS,
            "load_duration": 0,
            "prompt_eval_count": said.read,
            "prompt_eval_duration": said.read * _TOKEN_NANOSECONDS,
            "eval_count": said.written,
            "eval_duration": said.written * _TOKEN_NANOSECONDS,
            "message": {"role": "assistant", "content": said.text},
            **({} if tokens is None else {"logprobs": tokens}),
        }

    def _shortened(self, asked: Asked, text: str, read: int, window: int) -> tuple[Asked, int]:  # noqa: ARG002
        # of a prompt that is too long, an Ollama server was seen to keep about half of its window
        return replace(asked, prompt=last_tokens(text, window // 2)), window // 2 + 2

    def _limits(self, asked: Asked) -> tuple[int | None, int | None]:
        options = asked.body.get("options") or {}
        return options.get("num_ctx"), options.get("num_predict")


def _envelope(model: str) -> dict[str, Any]:
    return {"model": model, "created_at": "2026-01-01T00:00:00Z", "done": True}
