"""A fake OpenAI-compatible server for tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ClassVar

from prism.errors import FieldValueError
from prism.testing._server import openai_wire
from prism.testing._server.exchange import Exchange, Forms, Request
from prism.testing._server.faults import Fault
from prism.testing._server.model_server import ModelServer, first_option
from prism.testing._server.wire import Asked


class FakeOpenAI(ModelServer):
    """Serves OpenAI's chat completions on a free port of loopback, as vLLM and others do.

    It answers ``/v1/chat/completions`` (not streaming) and ``/v1/models``, and has the faults of
    `FakeOllama`. Use it as a context manager::

        with FakeOpenAI(latency=0.1, slots=4) as server:
            client = OpenAIPool([server.host], "llama3.2")

    Args:
        models: Models that it serves.
        choose: Returns the answer to a question, called in the server's thread; the first option
            by default. The options of a decision question are letters.
        write: As for `FakeOllama`.
        latency: As for `FakeOllama`.
        slots: As for `FakeOllama`.
        queue_limit: As for `FakeOllama`.
        logprobs: Whether log-probabilities are given where they are asked for, or passed over.
        refuses: Parameters of a request that are refused with 400, such as ``response_format``,
            ``logprobs``, ``seed`` or ``reasoning_effort``; ``json_schema`` refuses that kind of
            ``response_format`` alone, with 500, as llama-cpp-python does.
        key: Key that every request has to have, or is refused with 401; None for none.
        remember: As for `FakeOllama`.

    Raises:
        FieldValueError: If there is no slot, or models are given as one text.

    Attributes:
        latency: Seconds that each answer takes, or what returns them.
        questions: The questions asked, in order of arrival.
        asked: The number of questions asked.
        most_at_once: The most answers that were being made at the same time.
        busy_seconds: Seconds that slots were busy, added up over the slots.
        open_connections: Connections that are open now.
        authorizations: The header ``Authorization`` of every request, None where there was none.
    """

    _forms: ClassVar[Forms] = openai_wire.FORMS
    _asking: ClassVar[Collection[str]] = (openai_wire.CHAT,)

    def __init__(
        self,
        *,
        models: Iterable[str] = ("llama3.2",),
        choose: Callable[[Asked], str] = first_option,
        write: Callable[[str, Mapping[str, Any] | None], Any] | None = None,
        latency: float | Callable[[], float] = 0.0,
        slots: int | None = None,
        queue_limit: int | None = None,
        logprobs: bool = True,
        refuses: Collection[str] = (),
        key: str | None = None,
        remember: int | None = None,
    ) -> None:
        if isinstance(models, str) or isinstance(refuses, str):
            raise FieldValueError("models and refuses must be several names, not one text")

        super().__init__(
            models,
            choose=choose,
            write=write,
            latency=latency,
            slots=slots,
            queue_limit=queue_limit,
            remember=remember,
        )
        self.logprobs: bool = logprobs
        self.refuses: Collection[str] = refuses
        self.key: str | None = key
        self.authorizations: list[str | None] = []

    async def _route(self, request: Request, exchange: Exchange, fault: Fault | None) -> None:
        given = request.headers.get("authorization")
        self.authorizations.append(given)
        if self.key is not None and given != f"Bearer {self.key}":
            # as some servers do, with what was given in the text
            await exchange.refuse(401, f"Incorrect API key provided: {given}")
            return

        match request.method, request.path:
            case "GET", openai_wire.MODELS:
                await exchange.respond(200, openai_wire.model_list(self.models))
            case "POST", openai_wire.CHAT:
                await self._ask(request, exchange, fault)
            case _:
                await exchange.respond(404, {"detail": "Not Found"})

    def _read(self, request: Request) -> Asked:
        return openai_wire.read_question(request.path, request.body)

    async def _reply(self, asked: Asked, exchange: Exchange, fault: Fault | None) -> None:
        refused = next((name for name in self.refuses if name in asked.body), None)
        if refused is not None:
            await exchange.refuse(400, f"Unsupported parameter: '{refused}' is not supported.")
            return
        if "json_schema" in self.refuses and "json_schema" in asked.body.get("response_format", {}):
            await exchange.refuse(500, openai_wire.NO_SCHEMA)
            return
        if asked.body.get("stream"):
            await exchange.refuse(400, "this server does not stream")
            return

        content = self._content(asked, fault)
        weights = None
        if self.logprobs and asked.body.get("logprobs"):
            given = None if fault is None else fault.probabilities
            weights = openai_wire.weights_in(asked, content) if given is None else given

        await exchange.respond(200, openai_wire.reply(asked, content, weights))
