"""Many Ollama servers as one, each bounded, with retries and without those that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, ClassVar, Generic, Self, TypedDict, TypeVar, Unpack

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from prism.errors import DecisionsUnsupportedError, FieldValueError, LLMError, ModelMissingError
from prism.llm._addresses import check_address, same_address
from prism.llm._exchange import MOST_REPLY_BYTES
from prism.llm._faults import is_busy, is_host_fault, is_retryable
from prism.llm._host import ChatReply, DecisionReply, ModelSettings, OllamaHost
from prism.llm._slots import Hosts, Lease, OneLoop, Slots, all_fail_fast, circuit_open
from prism.llm._warm_up import cancel, load_models
from prism.statechart.reasoner._cost import Cost, require_positive

DEFAULT_TIMEOUT_SECONDS = 60.0
DEFAULT_LOAD_TIMEOUT_SECONDS = 600.0
DEFAULT_CONCURRENCY = 4
DEFAULT_ATTEMPTS = 3

_MOST_EXEMPT = 20
"""Refusals that cost a question no attempt; as each lowers the host's limit, fewer come."""

ReplyT = TypeVar("ReplyT", ChatReply, DecisionReply)

Backoff = Callable[[RetryCallState], float]

random_backoff: Backoff = wait_random_exponential(multiplier=0.2, max=5.0)


@dataclass(slots=True)
class _Question(Generic[ReplyT]):
    """A question and what became of it so far.

    Args:
        put: Puts it to a host.
        cost: What it costs.
        prefer: Chooses among the hosts that are left.
        asked: Hosts that it was put to.
        exempt: Refusals that do not count as attempts, as there were only too many at once.
    """

    put: Callable[[OllamaHost], Awaitable[ReplyT]]
    cost: Cost
    prefer: Callable[[Hosts], Hosts] = lambda hosts: hosts
    asked: set[OllamaHost] = field(default_factory=set)
    exempt: int = 0


class PoolSettings(TypedDict, total=False):
    """The settings of an `OllamaPool` besides hosts and model; see there."""

    concurrency: int
    timeout: float
    attempts: int
    load_timeout: float
    temperature: float
    seed: int
    think: bool | str | None
    keep_alive: str
    patience: float
    max_reply_bytes: int


class OllamaPool:
    """Asks one model on several Ollama servers, with a limit on concurrent questions for each.

    Every question goes to the server with the fewest under way. A retryable failure (a busy server,
    a broken connection, a time-out) is retried, on another server where there is one, after a
    jittered pause or as long as the server asks for. A server that lacks the model costs a question
    one request. A server that fails several times in a row is not asked for a while, then probed
    with one question (a circuit breaker). While the breakers of all servers are open, questions
    fail at once, or, with patience, when they have been open for so long. Use a pool in one event
    loop at a time.

    Args:
        hosts: Addresses of the servers. One that is named twice, in whatever spelling, counts once.
            A user's name and password in it (``https://name:password@host``) are sent, but never
            shown.
        model: Name of the model, as ``ollama list`` shows it.
        concurrency: Questions under way at once on each host. A server answers
            ``OLLAMA_NUM_PARALLEL`` (1 by default) at a time and queues the others without bound, so
            the limit has to be here.
        timeout: Seconds to wait for one reply.
        attempts: Requests for one question, at most.
        load_timeout: Seconds to wait for a model to be loaded, by `warm_up`.
        temperature: Sampling temperature; 0 for the likeliest answer.
        seed: Seed of the sampling; the server's own parallelism still makes replies vary.
        think: Whether a thinking model may think first; some take ``"low"``, ``"medium"`` or
            ``"high"``.
        keep_alive: How long the server keeps the model loaded.
        patience: Seconds that a server may fail before its questions fail at once. Until then they
            wait for its next probe, within the time that a `Reasoner` allows them. 0 not to wait.
        max_reply_bytes: How long a reply may be, decoded; a longer one is not read on.

    Raises:
        FieldValueError: If there is no host or an address is invalid, the model is empty, a limit
            is not above 0, temperature or patience is not finite, or the patience is below 0.

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
        patience: float = 0.0,
        max_reply_bytes: int = MOST_REPLY_BYTES,
    ) -> None:
        if isinstance(hosts, str) or not hosts:
            raise FieldValueError(f"hosts must be a list of at least one address, got {hosts!r}")

        if not model:
            raise FieldValueError(
                "model must be the name of a model on the server, such as 'llama3.2'"
            )

        require_positive(
            concurrency=concurrency,
            timeout=timeout,
            attempts=attempts,
            load_timeout=load_timeout,
            max_reply_bytes=max_reply_bytes,
        )
        if not isfinite(temperature):
            raise FieldValueError(f"temperature must be a finite number, got {temperature!r}")
        if not (isfinite(patience) and patience >= 0):
            raise FieldValueError(f"patience must be a finite number, 0 or above, got {patience!r}")

        settings = ModelSettings(
            model,
            timeout,
            load_timeout,
            temperature,
            seed,
            think,
            keep_alive,
            patience,
            max_reply_bytes=max_reply_bytes,
        )
        self.model = model
        self.temperature = temperature
        self.seed = seed
        self.think = think
        servers: dict[object, str] = {}
        for host in hosts:
            check_address(host)
            servers.setdefault(same_address(host), host)

        self._hosts = tuple(OllamaHost(host, settings) for host in servers.values())
        self.concurrency: int = concurrency * len(self._hosts)
        # a test may set another
        self.backoff: Backoff = random_backoff
        self._attempts = attempts
        self._slots = Slots(concurrency)
        self._loop = OneLoop()

    @property
    def hosts(self) -> list[str]:
        """Addresses of the servers, without names and passwords of users."""
        return [host.address for host in self._hosts]

    @property
    def servers(self) -> Hosts:
        """The servers themselves, for looking at them without retries."""
        return self._hosts

    @property
    def waiting(self) -> int:
        """How many questions wait for a slot."""
        return self._slots.waiting

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None = None,  # noqa: A002
        cost: Cost | None = None,
    ) -> ChatReply:
        """Send a conversation.

        Args:
            messages: ``{"role": ..., "content": ...}``, oldest first.
            format: JSON schema that the reply must follow.
            cost: Where to add what it costs, however it ends.

        Raises:
            CircuitOpenError: If all servers keep failing, so that none is asked now.
            UnreachableError: If no server can be reached.
            TimedOutError: If there is no complete reply within the time-out.
            OverloadedError: If the servers are too busy.
            ModelMissingError: If the server does not have the model.
            BadReplyError: If the answer is not a chat reply, or is empty.
            LLMError: If the server refuses the request for any other reason, or another event loop
                uses the pool.
        """
        cost = Cost() if cost is None else cost
        return await self._ask(_Question(lambda host: host.chat(messages, format, cost), cost))

    async def systemone(
        self, state: str, questions: Mapping[str, Mapping[str, Any]], *, cost: Cost | None = None
    ) -> DecisionReply:
        """Put choice questions to a decision model.

        Args:
            state: What the questions are about.
            questions: By name, in the wire format of ``/v1/systemone``.
            cost: Where to add what it costs, however it ends.

        Raises:
            DecisionsUnsupportedError: If no server takes decision questions.
            CircuitOpenError: If the servers that take them keep failing, whatever others could do.
            LLMError: As `chat`.
        """
        cost = Cost() if cost is None else cost
        question = _Question(lambda host: host.systemone(state, questions, cost), cost, _deciding)
        try:
            return await self._ask(question)
        except DecisionsUnsupportedError as error:
            refusal = DecisionsUnsupportedError(
                f"{self.model} takes no decision questions at {', '.join(self.hosts)}"
            )
            refusal.host = error.host
            raise refusal from error
        except LLMError as error:
            # said apart from other failures, so that the other servers can be asked to chat
            deciding = _deciding(self._hosts)
            are_down = all_fail_fast(deciding) and not all_fail_fast(self._hosts)
            if is_retryable(error) and are_down:
                raise circuit_open(deciding) from error
            raise

    async def offers_decisions(self) -> bool:
        """Return True if any server and its model take decision questions, or if only one can tell.

        The first that does settles it. Each server is asked until it has answered.

        Raises:
            LLMError: If none does and some did not answer.
        """
        with self._loop.entered():
            looks = [asyncio.create_task(self._look(host)) for host in self._hosts]
            failures: list[LLMError] = []
            try:
                for look in asyncio.as_completed(looks):
                    try:
                        if await look is not False:
                            return True
                    except LLMError as error:
                        failures.append(error)
            finally:
                await cancel(looks)

        if failures:
            raise failures[0]

        return False

    async def _look(self, host: OllamaHost) -> bool | None:
        if host.known_to_decide is None and host.breaker.is_open():
            raise circuit_open((host,))

        try:
            return await host.decides()
        except LLMError as error:
            if is_retryable(error) and not is_busy(error):
                host.trouble = str(error)
                host.breaker.failed()

            raise

    async def warm_up(self, limit: float | None = None) -> dict[str, LLMError | None]:
        """Load the model on every server at the same time.

        When the first has it, the others are given as long again, and a second at least.

        Args:
            limit: Seconds to wait at most; by default only the time-out of each load.

        Returns:
            What went wrong on each, by address; None where nothing did.
        """
        with self._loop.entered():
            return await load_models(self._hosts, limit)

    async def close(self) -> None:
        """Close the connections, those in use when their questions have ended."""
        for host in self._hosts:
            await host.close()

    async def __aenter__(self) -> Self:
        """Return the pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def _ask(self, question: _Question[ReplyT]) -> ReplyT:
        """Put a question to host after host, while they say that they cannot serve it at all."""
        with self._loop.entered():
            refusals: list[LLMError] = []
            left = self._hosts
            while left:
                try:
                    return await self._ask_some(question, question.prefer(left))
                except (DecisionsUnsupportedError, ModelMissingError) as error:
                    refusals.append(error)
                    left = tuple(host for host in left if host.address != error.host)

            # tells more than that another host lacks the model
            unsupported = (
                error for error in refusals if isinstance(error, DecisionsUnsupportedError)
            )
            raise next(unsupported, refusals[-1])

    async def _ask_some(self, question: _Question[ReplyT], hosts: Hosts) -> ReplyT:
        """Put a question to some hosts, again if that may help."""
        try:
            return await self._ask_once(question, hosts)
        except LLMError as error:
            # only now, as tenacity would cost the others more than all else here
            return await self._retry(error, question, hosts)

    async def _retry(self, failure: LLMError, question: _Question[ReplyT], hosts: Hosts) -> ReplyT:
        """Retry a question that failed once."""
        failures = [failure]

        async def ask() -> ReplyT:
            if failures:
                raise failures.pop()
            return await self._ask_once(question, hosts)

        reply: ReplyT = await AsyncRetrying(
            stop=lambda state: state.attempt_number - question.exempt >= self._attempts,
            retry=retry_if_exception(
                lambda error: is_retryable(error) and not all_fail_fast(hosts)
            ),
            wait=self._pause,
            reraise=True,
        )(ask)

        return reply

    def _pause(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        # a busy host is on hold, and its slots are waited for
        return 0.0 if error is not None and is_busy(error) else float(self.backoff(state))

    async def _ask_once(self, question: _Question[ReplyT], hosts: Hosts) -> ReplyT:
        """Put a question to the least busy host, and learn from the outcome if that host works."""
        cost = question.cost
        lease = await self._slots.take(hosts, cost, question.asked)
        host, attempts = lease.host, cost.attempts
        question.asked.add(host)

        try:
            reply = await question.put(host)
        except LLMError as error:
            if cost.attempts == attempts:
                # nothing was sent
                host.breaker.abandoned(probe=lease.probe)
            elif self._learn(lease, error) and question.exempt < _MOST_EXEMPT:
                question.exempt += 1
            raise
        except BaseException:
            host.breaker.abandoned(probe=lease.probe)
            raise
        else:
            host.breaker.succeeded()
            host.throttle.answered()
            return reply
        finally:
            self._slots.give_back(lease)

    def _learn(self, lease: Lease, error: LLMError) -> bool:
        """Note what a failure says of the host: nothing, that it fails, or that it answers.

        Returns:
            True if the question failed only because too many were put to the host at once.
        """
        host, breaker = lease.host, lease.host.breaker
        others = host.in_flight - 1
        if error.retry_after is not None:
            host.throttle.hold(error.retry_after)

        if is_busy(error) and not host.throttle.refused(others):
            breaker.succeeded()
            return others > 0

        if is_retryable(error) or (len(self._hosts) > 1 and is_host_fault(error)):
            host.trouble = str(error)
            breaker.failed(probe=lease.probe)
        else:
            breaker.succeeded()
            host.throttle.answered()

        return False


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


def _deciding(hosts: Hosts) -> Hosts:
    """Return the hosts that may take decision questions."""
    # all if none does, as they may have learned it meanwhile
    return tuple(host for host in hosts if host.known_to_decide is not False) or hosts
