"""One model server, asked once: no retries, no waiting for a turn."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, TypeVar

from prism.errors import BadReplyError, LLMError
from prism.llm._addresses import secrets_in, shown_address
from prism.llm._exchange import MOST_REPLY_BYTES, Exchange
from prism.llm._faults import Advice, translate
from prism.llm._health import CircuitBreaker, Traffic
from prism.statechart.reasoner._cost import Cost

LOOK_SECONDS = 5.0
"""How long to wait for what a server knows without a model: its version and its models."""

ResultT = TypeVar("ResultT")

_under_way: ContextVar[Exchange] = ContextVar("_under_way")
"""The request of the call under way."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a model is asked, the same on every host.

    Args:
        model: Name of the model, as the server lists it.
        timeout: Seconds to wait for one reply.
        load_timeout: Seconds to wait for the model to be loaded, which can take minutes.
        temperature: Sampling temperature; 0 for the likeliest answer.
        seed: Seed of the sampling; the server's own parallelism still makes replies vary.
        think: Whether a thinking model may think first; some take ``"low"``, ``"medium"`` or
            ``"high"``.
        keep_alive: How long the server keeps the model loaded, for servers that can be told.
        patience: Seconds to wait for a server that has begun to fail, before questions fail at
            once.
        look_timeout: Seconds to wait for what the server knows without a model, if that is less
            than ``timeout``.
        max_reply_bytes: How long a reply may be, decoded.
    """

    model: str
    timeout: float
    load_timeout: float
    temperature: float
    seed: int
    think: bool | str | None
    keep_alive: str = ""
    patience: float = 0.0
    look_timeout: float = LOOK_SECONDS
    max_reply_bytes: int = MOST_REPLY_BYTES


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply to a conversation.

    Args:
        text: What it said.
        model: Model that said it.
        host: Server it runs on.
        input_tokens: Tokens it read, where known.
        output_tokens: Tokens it wrote, where known.
    """

    text: str
    model: str
    host: str
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class DecisionReply:
    """A decision model's answers.

    Args:
        answers: By question: ``choice``, ``probabilities`` by option, and ``confidence``.
        usage: ``input_tokens`` and ``output_tokens``, where known.
        model: Model that answered.
        host: Server it runs on.
    """

    answers: Mapping[str, Mapping[str, Any]]
    usage: Mapping[str, int] = field(default_factory=dict)
    model: str = ""
    host: str = ""


class ModelHost(ABC):
    """A server, its connection and its health; a class for each dialect says how it is spoken to.

    The connection is made with the first question, and again in every event loop it is used from.
    It ends with its loop, if nobody closes it before.

    Args:
        address: Address of the server, such as ``http://127.0.0.1:11434``.
        settings: How to ask.
        traffic: What is under way on the server, for others who ask it, too.
        key: The key that the connection sends, which is shown nowhere.

    Attributes:
        address: The address without the name and password of a user.
        traffic: What is under way on the server.
        unusable: How many answers in a row were of no use.
        breaker: Whether it should be asked now.
        trouble: What was last wrong with it.
    """

    advice: ClassVar[Advice]
    """What to do about a server of this dialect that cannot be used."""

    lists_all: ClassVar[bool] = True
    """Whether the server has no model but those that it lists."""

    asks_one_by_one: ClassVar[bool] = False
    """Whether each decision question is a request of its own."""

    hidden: ClassVar[str] = "unknown: the server lacks the path for it, so the answer has to show"
    """What to say where the server has no path for what is looked at."""

    hidden_decisions: ClassVar[str] = hidden
    """What to say while only an answer can show whether decision questions are taken."""

    def __init__(
        self,
        address: str,
        settings: ModelSettings,
        traffic: Traffic | None = None,
        key: str = "",
    ) -> None:
        self.address: str = shown_address(address)
        self._full_address = address
        self._secrets = secrets_in(address, key)
        self.settings = settings
        self.traffic: Traffic = traffic or Traffic()
        self.unusable: int = 0
        self.breaker: CircuitBreaker = CircuitBreaker(patience=settings.patience)
        self.trouble = ""
        self._decides: bool | None = None
        self._calls = 0
        self._closes_when_idle = False
        self._connection: AsyncGenerator[Any, None] | None = None
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @staticmethod
    def full_address(address: str) -> str:
        """Return the address that requests go to, for one as a user may write it."""
        return address

    @property
    @abstractmethod
    def omits(self) -> Sequence[str]:
        """What requests leave out as the server or its model has refused it, in words."""

    @abstractmethod
    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        format: dict[str, Any] | None,  # noqa: A002
        cost: Cost,
    ) -> ChatReply:
        """Send a conversation."""

    @abstractmethod
    async def systemone(
        self, state: str, questions: Mapping[str, Mapping[str, Any]], cost: Cost
    ) -> DecisionReply:
        """Put choice questions about one state, and remember whether the host takes them.

        Raises:
            DecisionsUnsupportedError: If it does not.
        """

    @property
    def known_to_decide(self) -> bool | None:
        """Whether server and model take decision questions; None until it is known."""
        return self._decides

    @abstractmethod
    async def decides(self) -> bool | None:
        """Return True if server and model take decision questions; asked once.

        Returns:
            None if only a decision question can tell.

        Raises:
            LLMError: If the server cannot be asked now, or does not have the model yet.
        """

    @abstractmethod
    async def kind(self) -> str:
        """Return what kind of server answers, in a few words."""

    @abstractmethod
    async def models(self) -> list[str]:
        """List the models that the server has."""

    @abstractmethod
    async def load(self) -> str:
        """Load the model, so that the first question does not wait for it; return what came."""

    async def close(self) -> None:
        """Close the connections, or have the last question under way do so."""
        is_here = self._loop is asyncio.get_running_loop()
        # those under way may be making connections that nobody would close
        if self._calls and is_here:
            self._closes_when_idle = True
            return

        connection, self._connection, self._client = self._connection, None, None
        if connection is not None and is_here:
            await _to_the_end(connection.aclose())

    @abstractmethod
    def _connect(self) -> AsyncGenerator[Any, None]:
        """Yield a client, and close it in the end."""

    def _exchange(self, cost: Cost) -> Exchange:
        settings = self.settings
        return Exchange(
            cost, settings.model, self.address, settings.max_reply_bytes, secrets=self._secrets
        )

    def _raised(self, error: Exception) -> Exception:
        """Return what an exception of the client stands for."""
        return error

    @property
    def _look_timeout(self) -> float:
        return min(self.settings.timeout, self.settings.look_timeout)

    async def _call(
        self,
        make: Callable[[Any], Awaitable[ResultT]],
        timeout: float | None = None,
        cost: Cost | None = None,
    ) -> ResultT:
        limit = timeout or self.settings.timeout
        exchange = self._exchange(Cost() if cost is None else cost)
        _under_way.set(exchange)
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
            raised = self._raised(error)
            failure = translate(
                raised,
                host=self.address,
                model=self.settings.model,
                timeout=limit,
                sent=exchange.is_sent,
                advice=self.advice,
            )
            exchange.failed(failure)
            raise failure from raised
        finally:
            exchange.ended()
            self._calls -= 1
            if self._closes_when_idle and not self._calls:
                # httpcore 1.0 never closes a connection that was just made when its call broke off
                self._closes_when_idle = False
                await self.close()

    async def _connected(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            # a generator, because asyncio ends those with their loop, and when they are dropped
            self._connection, self._loop = self._connect(), loop
            self._client = await anext(self._connection)

        return self._client

    def _bad(self, what: str) -> LLMError:
        error = BadReplyError(f"{self.settings.model} at {self.address} {what}")
        error.host = self.address
        return error


def http_settings(auth: Any) -> dict[str, Any]:
    """Return how any dialect's HTTP client connects, counts its requests and reads its replies.

    Args:
        auth: Credentials, as httpx takes them.
    """
    import httpx

    return {
        "auth": auth,
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=None),
        # a compressed reply could be a thousand times what is sent
        "headers": {"Accept-Encoding": "identity"},
        # a transport of our own would leave out the proxies of the environment
        "event_hooks": {"request": [_note_sent], "response": [_read_reply]},
        "verify": _certificates(),
    }


async def _note_sent(request: Any) -> None:
    _under_way.get().sent(request)


async def _read_reply(response: Any) -> None:
    await _under_way.get().received(response)


@cache
def _certificates() -> Any:
    """Return the trusted certificates."""
    # cached: reading them takes longer than all else that a client needs
    import httpx

    return httpx.create_ssl_context()


async def _to_the_end(closing: Coroutine[Any, Any, None]) -> None:
    """Wait for connections to be closed, even if that is cancelled.

    httpcore forgets all connections before it closes the first, so that nobody would close those
    that a cancellation leaves open.
    """
    task = asyncio.ensure_future(closing)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error

    if cancelled is not None:
        raise cancelled
    task.result()
