"""A fake Ollama server for tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from prism.errors import FieldValueError
from prism.testing._server import wire
from prism.testing._server.exchange import Exchange, Request
from prism.testing._server.faults import Fault
from prism.testing._server.model_server import ModelServer, ServerSettings
from prism.testing._server.tokens import last_tokens
from prism.testing._server.wire import Asked

_LONGEST_WINDOW = 131_072


class FakeOllama(ModelServer):
    """Serves Ollama's API on a free loopback port, from a thread.

    It answers ``/api/chat`` (a stream has one line), ``/api/tags``, ``/api/show``,
    ``/api/version``, ``/api/ps`` and ``/api/generate`` (which loads a model). Use it as a context
    manager::

        with FakeOllama(latency=0.1, slots=4) as server:
            client = OllamaChatClient(server.host, "llama3.2")

    Args:
        models: Models that can chat; None for any that is asked for.
        version: Version that the server reports.
        logprobs: Whether requests for log-probabilities are answered; servers before 0.12.11 ignore
            them.
        how: ``choose`` returns the answer to a question, called in the server's thread; the first
            option by default. ``write`` returns the model's text for questions without options. It
            is called with the prompt and the schema of the answer (None for a text); anything but a
            text is sent as JSON. By default it does what ``choose`` does. ``latency`` is the
            seconds that each answer takes, or a function that returns them; an async one is awaited
            before the answer. ``window`` is the number of tokens that prompt and reply may have
            together, unless the request sets ``num_ctx``; of a longer prompt only the last half
            window is read, and nothing says so. ``restarts`` maps numbers of questions to seconds:
            after that many questions the server is away, as in ``{400: 4.0}``. ``slots`` is the
            number of simultaneous answers; None means no limit. ``port`` is the port to
            listen on; any free one by default. ``sure`` is the share of the chosen letter in the
            probability of all letters (1 by default, kinder than any model), and ``mass`` what all
            letters together have; real models have 0.02 to 0.97.

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

    _asking: ClassVar[Collection[str]] = (wire.CHAT,)

    def __init__(
        self,
        *,
        models: Iterable[str] | None = ("llama3.2",),
        version: str = "0.35.0",
        logprobs: bool = True,
        **how: Unpack[ServerSettings],
    ) -> None:
        if isinstance(models, str):
            raise FieldValueError(
                f"models must be a list of names, such as [{models!r}], not a text"
            )

        super().__init__(models, **how)
        self.version: str = version
        self.logprobs: bool = logprobs
        self.cuts: int = 0

    async def _route(self, request: Request, exchange: Exchange, fault: Fault | None) -> None:
        match request.method, request.path:
            case "GET", "/api/version":
                await exchange.respond(200, {"version": self.version})
            case "GET", "/api/tags":
                await exchange.respond(200, wire.model_list(self.models))
            case "GET", "/api/ps":
                await exchange.respond(200, wire.running_models(self._windows()))
            case "POST", "/api/show":
                await self._show(request.body, exchange)
            case "POST", wire.CHAT | wire.LOAD:
                await self._ask(request, exchange, fault)
            case _:
                await exchange.respond(404, b"404 page not found")

    async def _show(self, body: Any, exchange: Exchange) -> None:
        model = body.get("model") if isinstance(body, dict) else None
        if self._has(model):
            window = None if self.window is None else max(self.window, _LONGEST_WINDOW)
            details = wire.model_details(window)
            await exchange.respond(200, details)
        else:
            await exchange.refuse(404, f"model {model!r} not found")

    def _read(self, request: Request) -> Asked:
        return wire.read_question(request.path, request.body)

    def _counts(self, asked: Asked) -> bool:
        return asked.path != wire.LOAD

    async def _reply(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        if asked.path == wire.LOAD:
            await exchange.respond(200, wire.load_reply(asked))
        else:
            await self._chat(asked, exchange, fault)

    async def _chat(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        said, tokens = self._said(asked, fault), None
        if self.logprobs and asked.body.get("logprobs"):
            told = None if fault is None else fault.probabilities
            tokens = wire.likely_tokens(asked, said.text, told, self.sure, self.mass)

        # whole, also where it may be a stream, whose only line it is then
        await exchange.respond(200, wire.chat_reply(asked, said, tokens))

    def _shortened(self, asked: Asked, text: str, read: int, window: int) -> tuple[Asked, int]:  # noqa: ARG002
        # of a prompt that is too long, an Ollama server was seen to keep about half of its window
        self.cuts += 1
        return replace(asked, prompt=last_tokens(text, window // 2)), window // 2 + 2

    def _limits(self, asked: Asked) -> tuple[int | None, int | None]:
        options = asked.body.get("options") or {}
        return options.get("num_ctx"), options.get("num_predict")

    def _windows(self) -> dict[str, int]:
        """Return the windows of the loaded models that have one."""
        if self.window is None:
            return {}
        return {model: window or self.window for model, window in self._loaded.items()}
