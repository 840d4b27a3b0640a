"""A fake Ollama server for tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from prism.errors import FieldValueError
from prism.testing._server import wire
from prism.testing._server.exchange import Exchange, Forms
from prism.testing._server.faults import Fault
from prism.testing._server.model_server import ModelServer, ServerSettings
from prism.testing._server.wire import Asked

VERSION = "0.35.0"
"""The version that the server reports."""

_LONGEST_WINDOW = 131_072


def _tool_call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    call = {"function": {"name": name, "arguments": dict(arguments)}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "message": message}


class FakeOllama(ModelServer):
    """Serves Ollama's API on a free loopback port, from a thread.

    It answers ``/api/chat`` (a stream has one line), ``/api/tags``, ``/api/show``,
    ``/api/version``, ``/api/ps`` and ``/api/generate`` (which loads a model). Use it as a context
    manager::

        with FakeOllama(latency=0.1, slots=4) as server:
            client = OllamaChatClient(server.host, "llama3.2")

    Args:
        models: Models that can chat.
        logprobs: Whether requests for log-probabilities are answered; servers before 0.12.11 ignore
            them.
        how: ``choose`` returns the answer to a question; the first option by default. ``write``
            returns the model's text for questions without options. It is called with the prompt
            and the schema of the answer (None for a text); anything but a text is sent as JSON. By
            default it does what ``choose`` does. ``latency`` is the seconds that each answer takes,
            or a function that returns them. ``window`` is the number of tokens that prompt and
            reply may have together, unless the request sets ``num_ctx``; of a longer prompt only
            the last half window is read, and nothing says so. ``restarts`` maps numbers of
            questions to seconds: after that many questions the server is away, as in
            ``{400: 4.0}``. ``slots`` is the number of simultaneous answers; None means no limit.
            ``port`` is the port to listen on; any free one by default.

    Raises:
        FieldValueError: If there are no slots, or the models are one text instead of a list.

    Attributes:
        latency: Seconds that each answer takes, or a function that returns them.
        questions: The questions asked, in order of arrival.
        asked: The number of questions asked.
        most_at_once: Maximum number of simultaneous answers.
        busy_seconds: Total seconds for which slots were busy.
        open_connections: Connections that are open now.
        cuts: How many prompts were cut.
    """

    _forms: ClassVar[Forms] = Forms(lambda message, _status: {"error": message}, _tool_call)
    _asking: ClassVar[Collection[str]] = (wire.CHAT,)

    def __init__(
        self,
        *,
        models: Iterable[str] = ("llama3.2",),
        logprobs: bool = True,
        **how: Unpack[ServerSettings],
    ) -> None:
        if isinstance(models, str):
            raise FieldValueError(
                f"models must be a list of names, such as [{models!r}], not a text"
            )

        super().__init__(models, **how)
        self.logprobs: bool = logprobs
        self.cuts: int = 0

    def _route(self, exchange: Exchange, body: Any, fault: Fault | None) -> None:
        match exchange.method, exchange.path:
            case "GET", "/api/version":
                exchange.respond(200, {"version": VERSION})
            case "GET", "/api/tags":
                exchange.respond(200, wire.model_list(self.models))
            case "GET", "/api/ps":
                exchange.respond(200, wire.running_models(self._windows()))
            case "POST", "/api/show":
                self._show(body, exchange)
            case "POST", wire.CHAT | wire.LOAD:
                self._ask(exchange, body, fault)
            case _:
                exchange.respond(404, b"404 page not found")

    def _show(self, body: Any, exchange: Exchange) -> None:
        model = body.get("model") if isinstance(body, dict) else None
        if model in self.models:
            window = None if self.window is None else max(self.window, _LONGEST_WINDOW)
            exchange.respond(200, wire.model_details(window))
        else:
            exchange.refuse(404, f"model {model!r} not found")

    def _read(self, path: str, body: Any) -> Asked:
        return wire.read_question(path, body)

    def _counts(self, asked: Asked) -> bool:
        return asked.path != wire.LOAD

    def _reply(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        if asked.path == wire.LOAD:
            exchange.respond(200, wire.load_reply(asked))
            return

        said, tokens = self._said(asked, fault), None
        if self.logprobs and asked.body.get("logprobs"):
            told = None if fault is None else fault.probabilities
            tokens = wire.likely_tokens(asked, said.text, told)

        # whole, also where it may be a stream, whose only line it is then
        exchange.respond(200, wire.chat_reply(asked, said, tokens))

    def _shortened(self, asked: Asked, text: str, read: int, window: int) -> tuple[Asked, int]:  # noqa: ARG002
        # of a prompt that is too long, an Ollama server was seen to keep about half of its window
        self.cuts += 1
        return replace(asked, prompt=wire.last_tokens(text, window // 2)), window // 2 + 2

    def _limits(self, asked: Asked) -> tuple[int | None, int | None]:
        options = asked.body.get("options") or {}
        return options.get("num_ctx"), options.get("num_predict")

    def _windows(self) -> dict[str, int]:
        """Return the windows of the loaded models that have one."""
        if self.window is None:
            return {}
        return {model: window or self.window for model, window in self._loaded.items()}
