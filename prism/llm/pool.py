"""Many Ollama servers as one, each bounded, with retries and without those that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, TypedDict, TypeVar, Unpack
from urllib.parse import urlsplit

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential

from prism.errors import DecisionsUnsupportedError, FieldValueError, LLMError
from prism.llm.faults import can_heal, is_useless
from prism.llm.host import ChatReply, DecisionReply, ModelSettings, OllamaHost
from prism.llm.slots import Hosts, Slots, all_open

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
        temperature: Sampling temperature.
        seed: Seed of the sampling.
        think: Whether the model may think first.
        concurrency: Questions under way at once on all hosts together.
    """

    reopens: ClassVar[bool] = True
    """Closing loses nothing: the next question makes new connections."""

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
        self.temperature = temperature
        self.seed = seed
        self.think = think
        self._hosts = tuple(OllamaHost(_address(host), settings) for host in dict.fromkeys(hosts))
        self.concurrency = concurrency * len(self._hosts)
        self._attempts = attempts
        self._slots = Slots(concurrency)

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
        made = 0
        left = self._hosts
        while left:
            deciding = tuple(host for host in left if host.known_to_decide is not False) or left
            try:
                reply = await self._ask(lambda host: host.systemone(state, questions), deciding)
            except DecisionsUnsupportedError as error:  # another one may decide
                made += error.attempts
                left = tuple(host for host in left if host.address != error.host)
            else:
                return replace(reply, attempts=reply.attempts + made) if made else reply
        refusal = DecisionsUnsupportedError(f"{self.model} takes no decision questions at {', '.join(self.hosts)}")
        refusal.attempts = made
        refusal.host = self.hosts[0] if len(self.hosts) == 1 else None
        raise refusal

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

    async def _ask(self, put: Callable[[OllamaHost], Awaitable[ReplyT]], hosts: Hosts) -> ReplyT:
        """Put a question, again if that may help."""
        tried: list[OllamaHost] = []
        try:
            try:
                reply = await self._ask_once(put, hosts, tried)
            except LLMError as error:
                reply = await self._ask_again(error, put, hosts, tried)
        except LLMError as error:
            error.attempts = len(tried)
            raise
        return reply if len(tried) == 1 else replace(reply, attempts=len(tried))

    async def _ask_again(
        self, failure: LLMError, put: Callable[[OllamaHost], Awaitable[ReplyT]], hosts: Hosts, tried: list[OllamaHost]
    ) -> ReplyT:
        """Retry a question that failed once; apart, as tenacity would cost the others more than all else here."""
        failures = [failure]

        async def ask() -> ReplyT:
            if failures:
                raise failures.pop()
            return await self._ask_once(put, hosts, tried)

        reply: ReplyT = await AsyncRetrying(
            stop=stop_after_attempt(self._attempts),
            retry=retry_if_exception(lambda error: can_heal(error) and not all_open(hosts)),
            wait=lambda state: _pause(state, elsewhere=any(host not in tried for host in hosts)),
            reraise=True,
        )(ask)
        return reply

    async def _ask_once(
        self, put: Callable[[OllamaHost], Awaitable[ReplyT]], hosts: Hosts, tried: list[OllamaHost]
    ) -> ReplyT:
        """Put a question to the least busy host, and learn from what happens whether that host works."""
        lease = await self._slots.take(hosts, tried)
        host, breaker = lease.host, lease.host.breaker
        tried.append(host)
        try:
            reply = await put(host)
        except LLMError as error:
            if can_heal(error) or (len(self._hosts) > 1 and is_useless(error)):
                host.trouble = str(error)
                breaker.failed(probe=lease.probe)
            else:
                breaker.succeeded()
            raise
        except BaseException:
            breaker.abandoned(probe=lease.probe)
            raise
        else:
            breaker.succeeded()
            return reply
        finally:
            self._slots.give_back(lease)


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


def _pause(state: RetryCallState, *, elsewhere: bool) -> float:
    """Give the seconds to wait: as long as the server asks for, unless another one can be asked instead."""
    error = state.outcome.exception() if state.outcome is not None else None
    asked_for = None if elsewhere else getattr(error, "retry_after", None)
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
