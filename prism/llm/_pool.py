"""Many Ollama servers as one, each bounded, with retries and without those that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, ClassVar, Self, TypedDict, TypeVar, Unpack

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from prism.errors import DecisionsUnsupportedError, FieldValueError, LLMError, ModelMissingError
from prism.llm._addresses import check_address, same_address
from prism.llm._faults import can_heal, is_busy, is_useless
from prism.llm._host import ChatReply, DecisionReply, ModelSettings, OllamaHost
from prism.llm._one_loop import OneLoop
from prism.llm._slots import Hosts, Lease, Slots, all_hopeless, left_alone
from prism.llm._warm_up import cancel, load_models

DEFAULT_TIMEOUT_SECONDS = 60.0
DEFAULT_LOAD_TIMEOUT_SECONDS = 600.0
DEFAULT_CONCURRENCY = 4
DEFAULT_ATTEMPTS = 3

_backoff = wait_random_exponential(multiplier=0.2, max=5.0)

_MOST_FORGIVEN = 20
"""Refusals of a question that cost it no attempt. The host's limit falls with each, so that so many do not come."""

ReplyT = TypeVar("ReplyT", ChatReply, DecisionReply)


class Tried(list[OllamaHost]):
    """The hosts that a question was put to, one for each request.

    Attributes:
        forgiven: How many of these requests do not count, as there were only too many at once.
    """

    forgiven = 0

    def correct(self, requests: int) -> None:
        """Say how many requests it really took to ask the last host, instead of one."""
        if requests != 1:
            self[-1:] *= requests


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
    patience: float


class OllamaPool:
    """Asks one model on several Ollama servers, at most so many questions at once on each.

    Every question goes to the server with the fewest under way. What can heal (a busy server, a
    broken connection, a time-out) is tried again, on another server where there is one, after a
    jittered pause or as long as the server asks for. One that lacks the model costs a question only
    the request that told so. A server that fails again and again is left alone for a while, then
    probed. When all are, questions fail at once, or, with patience, when all have been for so long.
    Use a pool in one event loop at a time.

    Args:
        hosts: Addresses of the servers. One that is named twice, in whatever spelling, is one. A
            user's name and password in it (``https://name:password@host``) are sent, but never
            shown.
        model: Name of the model, as ``ollama list`` shows it.
        concurrency: Questions under way at once on each host. A server answers
            ``OLLAMA_NUM_PARALLEL`` (1 by default) at a time and queues the others without bound, so
            the limit has to be here.
        timeout: Seconds to wait for one reply.
        attempts: Requests to make for one question before giving up.
        load_timeout: Seconds to wait for a model to be loaded, by `warm_up`.
        temperature: Sampling temperature; 0 for the likeliest answer.
        seed: Seed of the sampling; the server's own parallelism still makes replies vary.
        think: Whether a thinking model may think first; some take ``"low"``, ``"medium"`` or
            ``"high"``.
        keep_alive: How long the server keeps the model loaded.
        patience: Seconds that a server may fail before its questions fail at once. Until then they
            wait for its next probe, within the time that a `Reasoner` allows them. 0 to wait for
            nobody.

    Raises:
        FieldValueError: If there is no host or one is no address, the model is empty, a limit is
            not above 0, or temperature or patience is no finite number, or the patience below 0.

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
    ) -> None:
        if isinstance(hosts, str) or not hosts:
            raise FieldValueError(f"hosts must be a list of at least one address, got {hosts!r}")

        if not model:
            raise FieldValueError(
                "model must be the name of a model on the server, such as 'llama3.2'"
            )

        _require_positive(
            concurrency=concurrency, timeout=timeout, attempts=attempts, load_timeout=load_timeout
        )
        if not isfinite(temperature):
            raise FieldValueError(f"temperature must be a finite number, got {temperature!r}")
        if not (isfinite(patience) and patience >= 0):
            raise FieldValueError(f"patience must be a finite number, 0 or above, got {patience!r}")

        settings = ModelSettings(
            model, timeout, load_timeout, temperature, seed, think, keep_alive, patience
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
        self._attempts = attempts
        self._slots = Slots(concurrency)
        self._loop = OneLoop()

    @property
    def hosts(self) -> list[str]:
        """Addresses of the servers, without names and passwords of users."""
        return [host.address for host in self._hosts]

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None = None,  # noqa: A002
    ) -> ChatReply:
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
            LLMError: If the server refuses the request for any other reason, or another event loop
                uses the pool.
        """
        return await self._ask(lambda host: host.chat(messages, format))

    async def systemone(
        self, state: str, questions: Mapping[str, Mapping[str, Any]]
    ) -> DecisionReply:
        """Put choice questions to a decision model.

        Args:
            state: What the questions are about.
            questions: By name, in the wire format of ``/v1/systemone``.

        Raises:
            DecisionsUnsupportedError: If no server takes decision questions.
            LeftAloneError: If those that take them fail again and again, whatever others could do.
            LLMError: As `chat`.
        """
        try:
            return await self._ask(lambda host: host.systemone(state, questions), prefer=_deciding)
        except DecisionsUnsupportedError as error:
            message = f"{self.model} takes no decision questions at {', '.join(self.hosts)}"
            raise _with_costs_of(error, DecisionsUnsupportedError(message)) from error
        except LLMError as error:
            deciding = _deciding(self._hosts)
            if can_heal(error) and all_hopeless(deciding) and not all_hopeless(self._hosts):
                raise _with_costs_of(error, left_alone(deciding)) from error
            raise

    async def offers_decisions(self) -> bool:
        """Return whether any server and its model take decision questions, or may, as only a question can tell.

        The first that does settles it. Each server is asked until it has told.

        Raises:
            LLMError: If none does and not all can say.
        """
        with self._loop.held():
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
            raise left_alone((host,))

        try:
            return await host.decides()
        except LLMError as error:
            if can_heal(error) and not is_busy(error):
                host.trouble = str(error)
                host.breaker.failed()

            raise

    async def warm_up(self, limit: float | None = None) -> dict[str, LLMError | None]:
        """Load the model on every server at the same time.

        When the first has it, the others are given as long again, and a second at least.

        Args:
            limit: Seconds to wait at the most; by default there is only the time-out of each load.

        Returns:
            What went wrong on each, by address; None where nothing did.
        """
        with self._loop.held():
            return await load_models(self._hosts, limit)

    async def close(self) -> None:
        """Close the connections, one in use when its question has ended; a later question makes new ones."""
        for host in self._hosts:
            await host.close()

    async def __aenter__(self) -> Self:
        """Return the pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    async def _ask(
        self,
        put: Callable[[OllamaHost], Awaitable[ReplyT]],
        prefer: Callable[[Hosts], Hosts] = lambda hosts: hosts,
    ) -> ReplyT:
        """Put a question, and note on the reply or on whatever is raised what it took."""
        tried = Tried()
        try:
            with self._loop.held():
                reply = await self._ask_around(put, prefer, tried)
        except LLMError as error:
            error.attempts = len(tried)
            raise
        except asyncio.CancelledError as error:
            # becomes the cause of the time-out of whoever set one
            vars(error).update(attempts=len(tried), host=tried[-1].address if tried else None)
            raise

        return reply if len(tried) == 1 else replace(reply, attempts=len(tried))

    async def _ask_around(
        self,
        put: Callable[[OllamaHost], Awaitable[ReplyT]],
        prefer: Callable[[Hosts], Hosts],
        tried: Tried,
    ) -> ReplyT:
        """Put a question to one host after the other while they say that they cannot serve it at all."""
        refusals: list[LLMError] = []
        left = self._hosts
        while left:
            try:
                return await self._ask_some(put, prefer(left), tried)
            except (DecisionsUnsupportedError, ModelMissingError) as error:
                refusals.append(error)
                left = tuple(host for host in left if host.address != error.host)

        raise next(
            (error for error in refusals if isinstance(error, DecisionsUnsupportedError)),
            refusals[-1],
        )

    async def _ask_some(
        self, put: Callable[[OllamaHost], Awaitable[ReplyT]], hosts: Hosts, tried: Tried
    ) -> ReplyT:
        """Put a question to some hosts, again if that may help."""
        try:
            return await self._ask_once(put, hosts, tried)
        except LLMError as error:
            return await self._ask_again(error, put, hosts, tried)

    async def _ask_again(
        self,
        failure: LLMError,
        put: Callable[[OllamaHost], Awaitable[ReplyT]],
        hosts: Hosts,
        tried: Tried,
    ) -> ReplyT:
        """Retry a question that failed once; apart, as tenacity would cost the others more than all else here."""
        failures = [failure]

        async def ask() -> ReplyT:
            if failures:
                raise failures.pop()
            return await self._ask_once(put, hosts, tried)

        reply: ReplyT = await AsyncRetrying(
            stop=lambda state: state.attempt_number - tried.forgiven >= self._attempts,
            retry=retry_if_exception(lambda error: can_heal(error) and not all_hopeless(hosts)),
            wait=_pause,
            reraise=True,
        )(ask)

        return reply

    async def _ask_once(
        self, put: Callable[[OllamaHost], Awaitable[ReplyT]], hosts: Hosts, tried: Tried
    ) -> ReplyT:
        """Put a question to the least busy host, and learn from what happens whether that host works."""
        lease = await self._slots.take(hosts, tried)
        host = lease.host
        tried.append(host)

        try:
            reply = await put(host)
        except LLMError as error:
            tried.correct(error.attempts)
            if self._learn(lease, error) and tried.forgiven < _MOST_FORGIVEN:
                tried.forgiven += 1
            raise
        except BaseException as error:
            tried.correct(vars(error).get("attempts", 1))
            host.breaker.abandoned(probe=lease.probe)
            raise
        else:
            tried.correct(reply.attempts)
            host.breaker.succeeded()
            host.throttle.answered()
            return reply
        finally:
            self._slots.give_back(lease)

    def _learn(self, lease: Lease, error: LLMError) -> bool:
        """Tell a host's breaker what a failure says of the host: nothing, that it fails, or that it answers.

        Returns:
            Whether the question failed for no other reason than that too many were put to the host
            at once.
        """
        host, breaker = lease.host, lease.host.breaker
        others = host.in_flight - 1
        if error.retry_after is not None:
            host.throttle.hold(error.retry_after)

        if not error.attempts:
            breaker.abandoned(probe=lease.probe)
        elif is_busy(error) and not host.throttle.refused(others):
            breaker.succeeded()
            return others > 0
        elif can_heal(error) or (len(self._hosts) > 1 and is_useless(error)):
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

    @property
    def only_host(self) -> OllamaHost:
        """The server itself, for looking at it without retries."""
        return self._hosts[0]


def _pause(state: RetryCallState) -> float:
    """Return the seconds to wait: jitter, but none where the host is held, as then its slots are waited for."""
    error = state.outcome.exception() if state.outcome is not None else None
    return 0.0 if error is not None and is_busy(error) else float(_backoff(state))


def _deciding(hosts: Hosts) -> Hosts:
    """Return those that may take decision questions; all if none does, as they may have learned it meanwhile."""
    return tuple(host for host in hosts if host.known_to_decide is not False) or hosts


def _with_costs_of(earlier: LLMError, error: LLMError) -> LLMError:
    error.attempts = earlier.attempts
    error.host = error.host or earlier.host
    return error


def _require_positive(**limits: float) -> None:
    for name, value in limits.items():
        if not value > 0:
            raise FieldValueError(f"{name} must be above 0, got {value!r}")
