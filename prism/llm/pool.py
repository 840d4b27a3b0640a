"""Many Ollama servers as one, each bounded, with retries and without those that fail."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Self, TypedDict, TypeVar, Unpack
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from prism.errors import DecisionsUnsupportedError, FieldValueError, LLMError, UnreachableError
from prism.llm.faults import blames_host, can_heal
from prism.llm.host import ChatReply, DecisionReply, ModelSettings, OllamaHost

DEFAULT_HOST = "http://127.0.0.1:11434"
DEFAULT_TIMEOUT_SECONDS = 60.0
DEFAULT_LOAD_TIMEOUT_SECONDS = 600.0
DEFAULT_CONCURRENCY = 4
DEFAULT_ATTEMPTS = 3

_backoff = wait_random_exponential(multiplier=0.2, max=5.0)
_LONGEST_RETRY_AFTER = 30.0

ReplyT = TypeVar("ReplyT", ChatReply, DecisionReply)


class PoolSettings(TypedDict, total=False):
    """What an `OllamaPool` can be told besides hosts and model; see there."""

    concurrency: int
    timeout: float
    attempts: int
    load_timeout: float
    temperature: float
    seed: int
    think: bool | str | None
    keep_alive: str


class OllamaPool:
    """Asks one model on several Ollama servers, at most so many questions at once on each.

    Every question goes to the server with the fewest under way. What can heal (a busy server, a broken
    connection, a time-out) is tried again, on another server where there is one, after a jittered pause or as
    long as the server asks for. A server that fails again and again is left alone for a while, then probed.
    When all are, questions fail at once instead of waiting.

    Args:
        hosts: Addresses of the servers.
        model: Name of the model, as ``ollama list`` shows it.
        concurrency: Questions under way at once on each host. A server answers ``OLLAMA_NUM_PARALLEL`` (1 by
            default) at a time and queues the others without bound, so the limit has to be here.
        timeout: Seconds to wait for one reply.
        attempts: Requests to make for one question before giving up.
        load_timeout: Seconds to wait for a model to be loaded, by `warm_up`.
        temperature: Sampling temperature; 0 for the likeliest answer.
        seed: Seed of the sampling; the server's own parallelism still makes replies vary.
        think: Whether a thinking model may think first; some take ``"low"``, ``"medium"`` or ``"high"``.
        keep_alive: How long the server keeps the model loaded.

    Raises:
        FieldValueError: If there is no host or one is no address, the model is empty, or a limit is not above 0.

    Attributes:
        model: Name of the model.
        concurrency: Questions under way at once on all hosts together.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        model: str,
        *,
        concurrency: int = DEFAULT_CONCURRENCY,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        attempts: int = DEFAULT_ATTEMPTS,
        load_timeout: float = DEFAULT_LOAD_TIMEOUT_SECONDS,
        temperature: float = 0.0,
        seed: int = 0,
        think: bool | str | None = False,
        keep_alive: str = "30m",
    ) -> None:
        if isinstance(hosts, str) or not hosts:
            raise FieldValueError(f"hosts must be a list of at least one address, got {hosts!r}")
        if not model:
            raise FieldValueError("model must be the name of a model on the server, such as 'llama3.2'")
        _require_positive(concurrency=concurrency, timeout=timeout, attempts=attempts, load_timeout=load_timeout)
        settings = ModelSettings(model, timeout, load_timeout, temperature, seed, think, keep_alive)
        self.model = model
        self.concurrency = concurrency * len(hosts)
        self._limit = concurrency
        self._attempts = attempts
        self._hosts = [OllamaHost(_address(host), settings) for host in dict.fromkeys(hosts)]
        self._turns: deque[asyncio.Future[None]] = deque()

    @property
    def hosts(self) -> list[str]:
        """Addresses of the servers."""
        return [host.address for host in self._hosts]

    async def chat(self, messages: Sequence[Mapping[str, Any]], *, format: dict[str, Any] | None = None) -> ChatReply:  # noqa: A002
        """Send a conversation.

        Args:
            messages: ``{"role": ..., "content": ...}``, oldest first.
            format: JSON schema that the reply must follow.

        Raises:
            UnreachableError: If no server can be reached.
            TimedOutError: If there is no complete reply within the time-out.
            OverloadedError: If the servers are too busy.
            ModelMissingError: If the server does not have the model.
            BadReplyError: If the answer is no chat reply, or an empty one.
            LLMError: If the server refuses the request for any other reason.
        """
        return await self._ask(lambda host: host.chat(messages, format), self._hosts)

    async def systemone(self, state: str, questions: Mapping[str, Mapping[str, Any]]) -> DecisionReply:
        """Put choice questions to a decision model.

        Args:
            state: What the questions are about.
            questions: By name, in the wire format of ``/v1/systemone``.

        Raises:
            DecisionsUnsupportedError: If no server takes decision questions.
            LLMError: As `chat`.
        """
        deciding = [host for host in self._hosts if host.known_to_decide is not False]
        if not deciding:
            raise DecisionsUnsupportedError(f"none of {', '.join(self.hosts)} takes decision questions")
        return await self._ask(lambda host: host.systemone(state, questions), deciding)

    async def offers_decisions(self) -> bool:
        """Tell whether any server and its model take decision questions; each is asked once.

        Raises:
            LLMError: If none can say.
        """
        answers = await asyncio.gather(*(host.decides() for host in self._hosts), return_exceptions=True)
        if all(isinstance(answer, BaseException) for answer in answers):
            raise next(answer for answer in answers if isinstance(answer, BaseException))
        return any(answer is True for answer in answers)

    async def warm_up(self) -> dict[str, LLMError | None]:
        """Load the model on every server at the same time.

        Returns:
            What went wrong on each, by address; None where nothing did.
        """

        async def load(host: OllamaHost) -> LLMError | None:
            try:
                await host.load()
            except LLMError as error:
                return error
            return None

        return dict(zip(self.hosts, await asyncio.gather(*map(load, self._hosts)), strict=True))

    async def close(self) -> None:
        """Close the connections; a later question makes new ones."""
        for host in self._hosts:
            await host.close()

    async def __aenter__(self) -> Self:
        """Give the pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def _ask(self, put: Callable[[OllamaHost], Awaitable[ReplyT]], hosts: Sequence[OllamaHost]) -> ReplyT:
        """Put a question, again if that may help."""
        made = 0
        try:
            async for attempt in AsyncRetrying(
                stop=stop_after_attempt(self._attempts),
                retry=retry_if_exception(can_heal),
                wait=_pause,
                reraise=True,
            ):
                with attempt:
                    async with self._leased(hosts) as host:
                        made += 1
                        reply = await put(host)
                    return replace(reply, attempts=made)
        except LLMError as error:
            error.attempts = made
            raise
        raise AssertionError("tenacity gives a result or raises")

    @asynccontextmanager
    async def _leased(self, hosts: Sequence[OllamaHost]) -> AsyncIterator[OllamaHost]:
        """Take a slot of the least busy host, and learn from what happens whether the host works."""
        host = await self._take(hosts)
        try:
            yield host
        except LLMError as error:
            if blames_host(error):
                host.breaker.failed()
            else:
                host.breaker.succeeded()
            raise
        except BaseException:
            host.breaker.abandoned()
            raise
        else:
            host.breaker.succeeded()
        finally:
            host.in_flight -= 1
            self._wake()

    async def _take(self, hosts: Sequence[OllamaHost]) -> OllamaHost:
        while True:
            free = [host for host in hosts if host.in_flight < self._limit and host.breaker.allows()]
            if free:
                host = min(free, key=lambda host: host.in_flight)
                host.in_flight += 1
                host.breaker.asked()
                return host
            if all(host.breaker.is_open() for host in hosts):
                wait = min(host.breaker.seconds_left() for host in hosts)
                names = ", ".join(host.address for host in hosts)
                raise UnreachableError(f"left alone after failing again and again: {names} (next try in {wait:.1f} s)")
            await self._turn()

    async def _turn(self) -> None:
        """Wait until a slot is given back; a woken waiter that is cancelled wakes the next one."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._turns.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake()
            raise

    def _wake(self) -> None:
        """Wake those who could go on: one for the slot given back, all if there is nothing to wait for."""
        everyone = all(host.breaker.is_open() for host in self._hosts)
        while self._turns:
            turn = self._turns.popleft()
            if not turn.done():
                turn.set_result(None)
                if not everyone:
                    return


class OllamaChatClient(OllamaPool):
    """Asks one model on one Ollama server: an `OllamaPool` of one host.

    Args:
        host: Address of the server.
        model: Name of the model, as ``ollama list`` shows it.
        settings: Everything else that `OllamaPool` takes.
    """

    def __init__(self, host: str, model: str, **settings: Unpack[PoolSettings]) -> None:
        super().__init__([host], model, **settings)

    @property
    def host(self) -> str:
        """Address of the server."""
        return self.hosts[0]

    @property
    def only_host(self) -> OllamaHost:
        """The server itself, for looking at it without retries."""
        return self._hosts[0]


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    asked_for = getattr(error, "retry_after", None)
    return float(_backoff(state)) if asked_for is None else min(float(asked_for), _LONGEST_RETRY_AFTER)


def _address(host: str) -> str:
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        usable = parts.port != 0 and parts.scheme in ("http", "https") and bool(parts.hostname)
    except (TypeError, ValueError):
        usable = False
    if not usable:
        raise FieldValueError(f"host must be an address such as {DEFAULT_HOST}, got {host!r}")
    return host


def _require_positive(**limits: float) -> None:
    for name, value in limits.items():
        if not value > 0:
            raise FieldValueError(f"{name} must be above 0, got {value!r}")
