"""One Ollama server, asked once: no retries, no waiting for a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

from prism.errors import BadReplyError, DecisionsUnsupportedError, LLMError, ModelMissingError
from prism.llm._addresses import credentials, shown_address
from prism.llm._breaker import CircuitBreaker
from prism.llm._faults import lacks_path, refuses_for_good, refuses_to_be_told, translate
from prism.llm._throttle import Throttle

LOOK_SECONDS = 5.0
"""How long to wait for what a server knows without a model: its version, its models and what they can do."""

ResultT = TypeVar("ResultT")

_sent: ContextVar[list[bool]] = ContextVar("_sent")
"""Has one item for each request that the call under way has sent."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is asked, the same on every host.

    Args:
        model: Name of the model, as ``ollama list`` shows it.
        timeout: Seconds to wait for one reply.
        load_timeout: Seconds to wait for the model to be loaded, which can take minutes.
        temperature: Sampling temperature; 0 for the likeliest answer.
        seed: Seed of the sampling; the server's own parallelism still makes replies vary.
        think: Whether a thinking model may think first; some take ``"low"``, ``"medium"`` or
            ``"high"``.
        keep_alive: How long the server keeps the model loaded.
        patience: Seconds to wait for a server that has begun to fail, before every question fails
            at once.
        look_timeout: Seconds to wait for what the server knows without a model, if that is less
            than ``timeout``.
    """

    model: str
    timeout: float
    load_timeout: float
    temperature: float
    seed: int
    think: bool | str | None
    keep_alive: str
    patience: float = 0.0
    look_timeout: float = LOOK_SECONDS


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply to a conversation.

    Args:
        text: What it said.
        model: Model that said it.
        host: Server it runs on.
        input_tokens: Tokens it read.
        output_tokens: Tokens it wrote.
        attempts: Requests it took.
    """

    text: str
    model: str
    host: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class DecisionReply:
    """A decision model's answers.

    Args:
        answers: By question: ``choice``, ``probabilities`` by option, and ``confidence``.
        usage: ``input_tokens`` and ``output_tokens``.
        model: Model that answered.
        host: Server it runs on.
        attempts: Requests it took.
    """

    answers: Mapping[str, Mapping[str, Any]]
    usage: Mapping[str, int] = field(default_factory=dict)
    model: str = ""
    host: str = ""
    attempts: int = 1


class OllamaHost:
    """A server and what is known of it.

    The connection is made with the first question, and again in every event loop it is used from.
    It ends with its loop, if nobody closes it before.

    Args:
        address: Address of the server, such as ``http://127.0.0.1:11434``.
        settings: How to ask.

    Attributes:
        address: The address without the name and password of a user.
        in_flight: Questions under way.
        breaker: Whether it should be asked now.
        throttle: How much it takes.
        trouble: What was last wrong with it.
        must_think: Whether the model has refused to be told not to think.
    """

    def __init__(self, address: str, settings: ModelSettings) -> None:
        self.address: str = shown_address(address)
        self._full_address = address
        self.settings = settings
        self.in_flight = 0
        self.breaker: CircuitBreaker = CircuitBreaker(patience=settings.patience)
        self.throttle: Throttle = Throttle()
        self.trouble = ""
        self.must_think: bool = False
        self._decides: bool | None = None
        self._calls = 0
        self._closes_when_idle = False
        self._connection: AsyncGenerator[Any, None] | None = None
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        format: dict[str, Any] | None,  # noqa: A002
    ) -> ChatReply:
        """Send a conversation, once more if the model refuses to be told not to think, and remember that."""
        if self.settings.think is not False or self.must_think:
            return await self._chat(
                messages, format, None if self.must_think else self.settings.think
            )

        try:
            return await self._chat(messages, format, think=False)
        except LLMError as error:
            if not refuses_to_be_told(error):
                raise

        self.must_think = True
        try:
            return replace(await self._chat(messages, format, think=None), attempts=2)
        except BaseException as error:
            vars(error)["attempts"] = 1 + vars(error).get("attempts", 1)
            raise

    async def _chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        format: dict[str, Any] | None,  # noqa: A002
        think: bool | str | None,
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
            )
        )
        text = reply.message.content
        if not text:
            raise self._bad("gave an empty reply")

        return ChatReply(
            text, settings.model, self.address, reply.prompt_eval_count, reply.eval_count
        )

    async def systemone(
        self, state: str, questions: Mapping[str, Mapping[str, Any]]
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
                )
            )
        except DecisionsUnsupportedError:
            self._decides = False
            raise

        self._decides = True
        answers = {name: answer.model_dump() for name, answer in reply.answers.items()}

        return DecisionReply(answers, reply.usage.model_dump(), settings.model, self.address)

    @property
    def known_to_decide(self) -> bool | None:
        """Whether server and model take decision questions; None until it is known."""
        return self._decides

    async def decides(self) -> bool | None:
        """Return whether server and model take decision questions; asked once.

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
                if isinstance(error, ModelMissingError) or not refuses_for_good(error):
                    raise

                self._decides = False
            else:
                self._decides = "decision" in (shown.capabilities or ())

        return self._decides

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

    async def load(self) -> None:
        """Load the model, so that the first question does not wait for it."""
        await self._call(
            lambda client: client.generate(
                model=self.settings.model, prompt="", keep_alive=self.settings.keep_alive
            ),
            self.settings.load_timeout,
        )

    async def close(self) -> None:
        """Close the connections, or let the last question under way do so; a later question makes new ones."""
        is_here = self._loop is asyncio.get_running_loop()
        if self._calls and is_here:  # they may be making connections that nobody would close
            self._closes_when_idle = True
            return

        connection, self._connection, self._client = self._connection, None, None
        if connection is not None and is_here:
            await connection.aclose()

    @property
    def _look_timeout(self) -> float:
        return min(self.settings.timeout, self.settings.look_timeout)

    async def _call(
        self, make: Callable[[Any], Awaitable[ResultT]], timeout: float | None = None
    ) -> ResultT:
        limit = timeout or self.settings.timeout
        sent: list[bool] = []
        _sent.set(sent)
        self._calls += 1

        try:
            # takes a moment the first time, which is not the server's
            client = await self._connected()
            async with asyncio.timeout(limit):
                return await make(client)
        except asyncio.CancelledError:
            self._closes_when_idle = True
            raise
        except Exception as error:
            self._closes_when_idle |= isinstance(error, TimeoutError)
            raise translate(
                error, host=self.address, model=self.settings.model, timeout=limit, sent=bool(sent)
            ) from error
        finally:
            self._calls -= 1
            if self._closes_when_idle and not self._calls:
                await self._forget_connections()

    async def _forget_connections(self) -> None:
        """Close the connections, as httpcore 1.0 keeps one for good that was just made when its call was broken off."""
        self._closes_when_idle = False
        await self.close()

    async def _connected(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._connection, self._loop = _connection(self._full_address), loop
            self._client = await anext(self._connection)

        return self._client

    def _bad(self, what: str) -> LLMError:
        error = BadReplyError(f"{self.settings.model} at {self.address} {what}")
        error.host = self.address
        return error


async def _connection(address: str) -> AsyncGenerator[Any, None]:
    """Give a client, and close it in the end: asyncio ends generators with their loop, and when they are dropped."""
    import httpx
    import ollama  # builds a client when imported, so not before one is needed

    unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client: Any = ollama.AsyncClient(
        host=address,
        auth=credentials(address),  # which the ollama client would leave out
        limits=unlimited,
        event_hooks={"request": [_note_sent]},
        verify=_certificates(),
    )

    try:
        yield client
    finally:
        await client.close()


async def _note_sent(_request: Any) -> None:
    _sent.get().append(True)


@cache
def _certificates() -> Any:
    """Read the certificates that are trusted, which takes longer than all else that a client needs."""
    import httpx

    return httpx.create_ssl_context()
