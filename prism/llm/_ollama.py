"""An Ollama server: the one module that imports its client."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar

from prism.errors import DecisionsUnsupportedError, LLMError, ModelMissingError
from prism.llm._addresses import credentials
from prism.llm._faults import OLLAMA, Advice, is_permanent_refusal, lacks_path, refuses_think
from prism.llm._health import Traffic
from prism.llm._host import ChatReply, DecisionReply, ModelHost, ModelSettings, http_settings
from prism.statechart.reasoner._cost import Cost, count_of

_KEY_VARIABLE = "OLLAMA_API_KEY"


class OllamaHost(ModelHost):
    """A server that speaks Ollama's own API.

    Args:
        address: As for `ModelHost`.
        settings: How to ask.
        traffic: As for `ModelHost`.

    Attributes:
        omits_think: Whether requests leave out ``think``, as the model has refused False.
    """

    advice: ClassVar[Advice] = OLLAMA
    hidden: ClassVar[str] = (
        "unknown: the server lacks Ollama's own path for it, so the answer has to show"
    )
    hidden_decisions: ClassVar[str] = hidden

    def __init__(
        self, address: str, settings: ModelSettings, traffic: Traffic | None = None
    ) -> None:
        # which the ollama client reads when it connects
        super().__init__(address, settings, traffic, os.environ.get(_KEY_VARIABLE, "").strip())
        self.omits_think: bool = False

    @property
    def omits(self) -> Sequence[str]:
        """What requests leave out as the model has refused it, in words."""
        return ["think=False"] if self.omits_think else []

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        format: dict[str, Any] | None,  # noqa: A002
        cost: Cost,
    ) -> ChatReply:
        """Send a conversation, without ``think=False`` once the model has refused that."""
        think = None if self.omits_think else self.settings.think
        try:
            return await self._chat(messages, format, think, cost)
        except LLMError as error:
            # what the user wants a model to do about thinking is not dropped
            if think is not False or not refuses_think(error):
                raise

        self.omits_think = True
        return await self._chat(messages, format, None, cost)

    async def _chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        format: dict[str, Any] | None,  # noqa: A002
        think: bool | str | None,
        cost: Cost,
    ) -> ChatReply:
        settings = self.settings
        reply = await self._call(
            lambda client: client.chat(
                model=settings.model,
                messages=messages,
                format=format,
                options={"temperature": settings.temperature, "seed": settings.seed},
                think=think,
                keep_alive=settings.keep_alive,
            ),
            cost=cost,
        )
        input_tokens, output_tokens = reply.prompt_eval_count, reply.eval_count
        text = reply.message.content
        if not text:
            raise self._bad("gave an empty reply")

        return ChatReply(text, settings.model, self.address, input_tokens, output_tokens)

    async def systemone(
        self, state: str, questions: Mapping[str, Mapping[str, Any]], cost: Cost
    ) -> DecisionReply:
        """Put choice questions about one state, and remember whether the host takes them."""
        settings = self.settings
        try:
            reply = await self._call(
                lambda client: client.systemone(
                    model=settings.model,
                    state=state,
                    questions=questions,
                    keep_alive=settings.keep_alive,
                ),
                cost=cost,
            )
        except DecisionsUnsupportedError:
            self._decides = False
            raise

        self._decides = True
        answers = {name: answer.model_dump() for name, answer in reply.answers.items()}
        counts = reply.usage.model_dump()
        usage = {name: count for name, count in counts.items() if count_of(count) is not None}

        return DecisionReply(answers, usage, settings.model, self.address)

    async def decides(self) -> bool | None:
        """Return True if server and model take decision questions; asked once.

        Returns:
            None if only a decision question can tell: others than Ollama serve those, but not
            ``/api/show``.

        Raises:
            LLMError: If the server cannot be asked now, or does not have the model yet.
        """
        if self._decides is None:
            try:
                shown = await self._call(
                    lambda client: client.show(self.settings.model), self._look_timeout
                )
            except LLMError as error:
                if lacks_path(error):
                    return None
                if isinstance(error, ModelMissingError) or not is_permanent_refusal(error):
                    raise

                self._decides = False
            else:
                self._decides = "decision" in (shown.capabilities or ())

        return self._decides

    async def kind(self) -> str:
        """Return the name and version of the server."""
        return f"Ollama {await self.version()}"

    async def version(self) -> str:
        """Return the server's version."""

        # by the client inside, which has the same headers and follows redirects
        async def ask(client: Any) -> str:
            answer = await client._client.get("/api/version")
            return str(answer.raise_for_status().json()["version"])

        return await self._call(ask, self._look_timeout)

    async def models(self) -> list[str]:
        """List the models that the server has."""
        listed = await self._call(lambda client: client.list(), self._look_timeout)
        return [str(item.model) for item in listed.models]

    async def load(self) -> str:
        """Load the model, so that the first question does not wait for it."""
        keep_alive = self.settings.keep_alive
        reply = await self._call(
            lambda client: client.generate(
                model=self.settings.model, prompt="", keep_alive=keep_alive
            ),
            self.settings.load_timeout,
        )
        # the client takes any object for a reply to this
        if not reply.done:
            raise self._bad(
                "answered a request to load the model with something that is not a reply"
            )

        return f"loaded, and kept for {keep_alive}"

    async def _connect(self) -> AsyncGenerator[Any, None]:
        # builds a client when imported, so not before one is needed
        import ollama

        address = self._full_address
        client: Any = ollama.AsyncClient(
            host=address,
            # which the ollama client would leave out
            **http_settings(credentials(address)),
        )

        try:
            yield client
        finally:
            await client.close()
