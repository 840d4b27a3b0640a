"""An OpenAI-compatible server: the one module that imports the openai client."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, ClassVar

from prism.errors import (
    DecisionsUnsupportedError,
    FieldValueError,
    LLMError,
    MissingExtraError,
)
from prism.llm._addresses import credentials, with_version
from prism.llm._exchange import Exchange
from prism.llm._faults import Advice, is_refusal
from prism.llm._health import Traffic
from prism.llm._host import ChatReply, DecisionReply, ModelHost, ModelSettings, http_settings
from prism.llm._openai_words import (
    CHAT,
    MODELS,
    MOST_ALTERNATIVES,
    Completion,
    FormatKind,
    LetteredChoice,
    in_ollamas_words,
    part_refused,
    read_completion,
    read_models,
    response_format,
    takes_json_object,
    thinking,
)
from prism.statechart.reasoner._cost import Cost

LOGGER: logging.Logger = logging.getLogger("prism.llm")
"""Where it is told once what a server does not take."""

KEY_VARIABLE = "OPENAI_API_KEY"

_GREETING = [{"role": "user", "content": "Say hello."}]


class OpenAIHost(ModelHost):
    """A server that speaks OpenAI's chat completions: vLLM, llama.cpp, LM Studio and others.

    Args:
        address: As for `ModelHost`; ``/v1`` is added to one without a path.
        settings: How to ask.
        traffic: As for `ModelHost`.

    Raises:
        FieldValueError: If the key of the environment cannot stand in a header.
        MissingExtraError: If the openai client is not installed.
    """

    advice: ClassVar[Advice] = Advice(
        "see that the server is running there, and that the port is right",
        "start the server with {model}, or name a model that it lists",
    )
    # llama.cpp serves its one model by any name, gateways serve more than they list
    lists_all: ClassVar[bool] = False
    asks_one_by_one: ClassVar[bool] = True
    hidden_decisions: ClassVar[str] = (
        "unknown: it takes log-probabilities, so the answer has to show"
    )

    def __init__(
        self, address: str, settings: ModelSettings, traffic: Traffic | None = None
    ) -> None:
        _import_client()
        self._key = _key()
        super().__init__(address, settings, traffic, self._key)
        self._omitted: list[str] = []
        self._format: FormatKind = "json_schema"

    @staticmethod
    def full_address(address: str) -> str:
        """Return an address with the version that its paths begin with."""
        return with_version(address)

    @property
    def omits(self) -> Sequence[str]:
        """What requests leave out as the server has refused it, in words."""
        return self._omitted

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        format: dict[str, Any] | None,  # noqa: A002
        cost: Cost,
    ) -> ChatReply:
        """Send a conversation, without what the server has refused by name."""
        said = await self._complete(messages, cost, schema=format)
        if not said.text:
            raise self._bad("gave an empty reply")

        model = self.settings.model
        return ChatReply(said.text, model, self.address, said.input_tokens, said.output_tokens)

    async def systemone(
        self, state: str, questions: Mapping[str, Mapping[str, Any]], cost: Cost
    ) -> DecisionReply:
        """Put choice questions one by one, and read the probabilities of their options."""
        answers: dict[str, Mapping[str, Any]] = {}
        for name, question in questions.items():
            answers[name] = await self._choose(state, question, cost)

        counts = {"input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens}
        usage = {name: count for name, count in counts.items() if count is not None}

        return DecisionReply(answers, usage, self.settings.model, self.address)

    async def decides(self) -> bool | None:
        """Return True if the server gives log-probabilities, None until it has answered."""
        return self._decides

    async def kind(self) -> str:
        """Return that the server lists its models, as all of them do."""
        await self.models()
        return "an OpenAI-compatible server"

    async def models(self) -> list[str]:
        """List the models that the server has."""

        async def ask(client: Any) -> list[str]:
            return read_models(await _get(client, MODELS))

        return await self._call(ask, self._look_timeout)

    async def load(self) -> str:
        """Ask for one token, for which the server loads the model if it has not yet."""
        await self._complete(_GREETING, Cost(), most_tokens=1, timeout=self.settings.load_timeout)
        return "answers, so the model is loaded"

    async def _choose(
        self, state: str, question: Mapping[str, Any], cost: Cost
    ) -> Mapping[str, Any]:
        """Put one choice question.

        Raises:
            DecisionsUnsupportedError: If the server gives no log-probabilities.
        """
        try:
            choice = LetteredChoice.of(state, question)
        except ValueError as error:
            raise self._bad(f"is not asked: {error}") from error

        if self._decides is False:
            raise self._gives_no_chances()

        messages = [{"role": "user", "content": choice.prompt}]
        said = await self._complete(messages, cost, schema=choice.schema, chances=True)
        # once it has given some, their lack is a bad reply
        if not said.tokens and not self._decides:
            raise self._gives_no_chances()

        self._decides = True
        try:
            return choice.read(said)
        except ValueError as error:
            raise self._bad(f"does not answer with one of the options: {error}") from error

    def _gives_no_chances(self) -> LLMError:
        self._decides = False
        error = DecisionsUnsupportedError(
            f"{self.settings.model} at {self.address} gives no log-probabilities, which decision "
            "questions need"
        )
        error.host = self.address
        return error

    async def _complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        cost: Cost,
        *,
        schema: Mapping[str, Any] | None = None,
        chances: bool = False,
        most_tokens: int | None = None,
        timeout: float | None = None,
    ) -> Completion:
        """Send a conversation, again without each part that the server refuses by name."""
        while True:
            body = self._body(messages, schema, most_tokens, chances=chances)
            try:
                return await self._completion(body, timeout, cost)
            except LLMError as error:
                refused = part_refused(str(error), body) if is_refusal(error) else None
                if refused == "response_format" and takes_json_object(str(error), body):
                    self._format = "json_object"
                    continue

                if refused is None or not self._may_leave_out(refused):
                    raise

                self._leave_out(refused, error)
                if refused == "logprobs":
                    raise self._gives_no_chances() from error

    def _body(
        self,
        messages: Sequence[Mapping[str, Any]],
        schema: Mapping[str, Any] | None,
        most_tokens: int | None,
        *,
        chances: bool,
    ) -> dict[str, Any]:
        """Return a request, without the parts that the server has refused."""
        settings = self.settings
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": list(messages),
            "temperature": settings.temperature,
            "seed": settings.seed,
            **thinking(settings.think),
        }
        if schema is not None:
            body["response_format"] = response_format(schema, self._format)
        if most_tokens is not None:
            body["max_tokens"] = most_tokens
        if chances:
            body |= {"logprobs": True, "top_logprobs": MOST_ALTERNATIVES}

        return {name: part for name, part in body.items() if name not in self._omitted}

    def _may_leave_out(self, part: str) -> bool:
        """Return True for what a user has not asked for: only a default may be dropped."""
        if part == "temperature":
            return self.settings.temperature == 0
        if part in ("chat_template_kwargs", "reasoning_effort"):
            return self.settings.think is False

        return True

    def _leave_out(self, part: str, error: LLMError) -> None:
        """Leave a part out from now on, and say so once."""
        # several requests may have been refused at the same time
        if part in self._omitted:
            return

        self._omitted.append(part)
        LOGGER.warning(
            "%s at %s refuses %s, so it is asked without: %s",
            self.settings.model,
            self.address,
            part,
            error,
        )

    async def _completion(
        self, body: Mapping[str, Any], timeout: float | None, cost: Cost
    ) -> Completion:
        async def ask(client: Any) -> Completion:
            return read_completion(await _post(client, CHAT, body))

        return await self._call(ask, timeout, cost)

    def _exchange(self, cost: Cost) -> Exchange:
        settings = self.settings
        return Exchange(
            cost,
            settings.model,
            self.address,
            settings.max_reply_bytes,
            in_ollamas_words,
            secrets=self._secrets,
        )

    def _raised(self, error: Exception) -> Exception:
        """Return what httpx or a reader of ours raised, which the client has wrapped."""
        import openai

        if not isinstance(error, openai.OpenAIError):
            return error

        inside = error.__cause__ or error.__context__
        return inside if isinstance(inside, Exception) else error

    async def _connect(self) -> AsyncGenerator[Any, None]:
        import httpx
        import openai

        address = self._full_address
        # unlike the client of the openai package, it has the proxies, hooks and certificates of
        # all dialects; both close with it
        connections: Any = httpx.AsyncClient(
            **http_settings(credentials(address) or self._authorize),
            timeout=None,
            follow_redirects=True,
        )
        client: Any = openai.AsyncOpenAI(
            # the key is known to the connections alone, which send it
            api_key="unused",
            base_url=with_version(address, shown=True),
            http_client=connections,
            max_retries=0,
            timeout=None,
        )

        try:
            yield client
        finally:
            await client.close()

    def _authorize(self, request: Any) -> Any:
        del request.headers["Authorization"]
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"

        return request


async def _get(client: Any, path: str) -> Any:
    import httpx

    return (await client.get(path, cast_to=httpx.Response)).json()


async def _post(client: Any, path: str, body: Mapping[str, Any]) -> Any:
    import httpx

    return (await client.post(path, body=body, cast_to=httpx.Response)).json()


def _import_client() -> None:
    """Import the openai client now: it takes a second, in which no event loop should stand still.

    Raises:
        MissingExtraError: If it is not installed.
    """
    try:
        import openai  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        raise MissingExtraError("llm", "openai", extra="openai") from None


def _key() -> str:
    """Return the key of the environment, empty if there is none.

    Raises:
        FieldValueError: If it cannot stand in a header; it is not shown.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise FieldValueError(
            f"{KEY_VARIABLE} must be a key of printable ASCII characters without spaces"
        )

    return key
