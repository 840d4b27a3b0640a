"""A pool of hosts: a question goes from host to host until one answers it.

Equal calls that are open at the same time are made once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

from prism.errors import CircuitOpenError, DecisionsUnsupportedError, LLMError, ModelMissingError
from prism.reasoner._faults import (
    has_lost_model,
    is_busy,
    is_internal,
    is_refused,
    is_retryable,
    is_unusable,
)
from prism.reasoner._model_client import Chat, ChatReply, Choices, DecisionReply
from prism.reasoner._slots import (
    Host,
    HostT,
    Lease,
    Rank,
    Slots,
    all_fail_fast,
    circuit_open,
)
from prism.reasoner._spending import Cost, Outcome, random_backoff

_LOOK_AGAIN_SECONDS = 0.5
"""Seconds after which a question that could be chatted looks again at what it waits for."""

_MOST_EXEMPT = 20
"""Most failures that do not count as attempts; each refusal lowers the host's limit."""

ReplyT = TypeVar("ReplyT", ChatReply, DecisionReply)
ResultT = TypeVar("ResultT")

Hosts = tuple[Host, ...]

Backoff = Callable[[int], float]
"""Returns the seconds to wait after a number of attempts."""


@dataclass(slots=True)
class Question(Generic[ReplyT]):
    """A question and its state so far.

    Args:
        put: Sends it to a host, and adds to a cost.
        cost: The cost of all its requests together.
        lacks: Returns how many of the requested answers a reply lacks.
        prefer: Chooses among the remaining hosts.
        left: Hosts that may still be asked.
        tries: Number of attempts with these hosts.
        asked: Hosts that were asked.
        unable: Hosts that lack the model or the path that it needs, with their errors.
        exempt: Failures that do not count as attempts, because there were too many questions at
            once, or the pool waits for a host that is away.
        doubted: The first host's useless answer, while another host is asked to find whose fault it
            was.
        is_guilty: Whether it was the host's; None while that is unknown.
        is_last: Whether another useless answer ends it.
        may_chat: Whether the caller chats if no host decides, and would rather do that than wait
            for busy hosts that have never decided anything.
    """

    put: Callable[[Host, Cost], Awaitable[ReplyT]]
    cost: Cost
    lacks: Callable[[ReplyT], int] | None = None
    prefer: Callable[[Hosts], Hosts] = lambda hosts: hosts
    left: Hosts = ()
    tries: int = 0
    asked: set[Host] = field(default_factory=set)
    unable: dict[Host, LLMError] = field(default_factory=dict)
    exempt: int = 0
    doubted: UnusableError | None = None
    is_guilty: bool | None = None
    is_last: bool = False
    may_chat: bool = False

    def may_ask(self) -> bool:
        """Return True if a further request may be sent."""
        return self.cost.allowance.allows(self.cost.attempts)

    def refusal(self, last: LLMError) -> LLMError:
        """Return the most informative refusal; a host may lack both the model and the path."""
        said = self.unable.values()
        return next((each for each in said if isinstance(each, DecisionsUnsupportedError)), last)

    def go_to(self, hosts: Hosts) -> None:
        """Ask these hosts from now on."""
        self.left, self.tries = hosts, 0


class UnusableError(Exception):
    """A host refused a question, or its reply lacks answers, which may be the question's fault.

    Until it is known whether another host answers the question, the host is in doubt.

    Args:
        lease: The slot that was used.
        error: The exception; None if there is a reply.
        reply: The reply.
    """

    def __init__(
        self,
        lease: Lease[Host],
        *,
        error: LLMError | None = None,
        reply: ChatReply | DecisionReply | None = None,
    ) -> None:
        self.lease = lease
        self.error = error
        self.reply = reply
        super().__init__(
            f"{lease.host.address} gave no valid answer" if error is None else str(error)
        )


class Pool(Generic[HostT]):
    """Asks some hosts for one model, each question on the host with the fewest open ones.

    Temporary failures are retried, on another host if there is one. A host that fails several times
    in a row is not asked for a while, then probed with one question (a circuit breaker). A question
    that a host refuses, or answers uselessly, is asked elsewhere once. Use it in one event loop at
    a time.

    Args:
        hosts: The hosts to ask.
        model: Name of the model.
        attempts: Maximum number of requests for one question after temporary failures.

    Attributes:
        model: Name of the model.
        concurrency: Simultaneous questions on all hosts together.
        servers: The hosts themselves, for direct use without retries.
        slots: The slots on the hosts.
    """

    def __init__(
        self,
        hosts: Sequence[HostT],
        model: str,
        *,
        attempts: int,
    ) -> None:
        self.model: str = model
        self.concurrency: int = sum(host.traffic.limit for host in hosts)
        # a test may set another
        self.backoff: Backoff = random_backoff
        self.servers: tuple[HostT, ...] = tuple(hosts)
        self.slots: Slots = Slots()
        self._attempts = attempts

    @property
    def waiting(self) -> int:
        """Number of questions that wait for a slot."""
        return self.slots.waiting

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None = None,  # noqa: A002
        cost: Cost | None = None,
        lacks: Callable[[ChatReply], int] | None = None,
        variation: int = 0,
    ) -> ChatReply:
        """Send a conversation.

        Args:
            messages: ``{"role": ..., "content": ...}``, oldest first.
            format: JSON schema that the reply must follow.
            cost: Collects the cost, however it ends.
            lacks: Returns how many of the requested answers a reply lacks, 0 if it is valid. If it
                lacks any, another server is asked once.
            variation: A number added to the seed, so that the same prompt may get another answer.

        Raises:
            CircuitOpenError: If all servers keep failing, so none is asked now.
            UnreachableError: If no server can be reached.
            TimedOutError: If there is no complete reply within the time-out.
            OverloadedError: If the servers are too busy.
            ModelMissingError: If the server does not have the model.
            BadReplyError: If the answer is not a chat reply, or is empty.
            LLMError: If the server refuses the request for any other reason, or another event loop
                uses the pool.
        """
        cost, chat = cost or Cost(), Chat(messages, format, variation)
        question: Question[ChatReply] = Question(
            lambda host, own: host.chat(chat, own), cost, lacks
        )
        return await self._ask(question)

    async def systemone(
        self,
        state: str,
        questions: Mapping[str, Mapping[str, Any]],
        *,
        cost: Cost | None = None,
        lacks: Callable[[DecisionReply], int] | None = None,
        variation: int = 0,
        may_chat: bool = False,
    ) -> DecisionReply:
        """Ask a decision model choice questions.

        Args:
            state: The subject of the questions.
            questions: By name, in the wire format of ``/v1/systemone``.
            cost: Collects the cost, however it ends.
            lacks: As for `chat`.
            variation: As for `chat`.
            may_chat: As for `Question`.

        Raises:
            DecisionsUnsupportedError: If no server supports decision questions.
            CircuitOpenError: If the servers that support them keep failing, even if others work.
            LLMError: As `chat`.
        """
        cost, asked = cost or Cost(), Choices(state, questions, variation)
        question: Question[DecisionReply] = Question(
            lambda host, own: host.systemone(asked, own),
            cost,
            lacks,
            _deciding,
            may_chat=may_chat,
        )
        try:
            return await self._ask(question)
        except DecisionsUnsupportedError as error:
            if len(self.servers) == 1:
                raise
            raise self._takes_none(self.servers, error) from error
        except LLMError as error:
            failure = self._not_decided(error)
            if failure is error:
                raise
            raise failure from error

    def _not_decided(self, error: LLMError) -> LLMError:
        """Return the error of a failed decision question, for callers that may chat instead."""
        # only an answer reveals support, and the servers that answered do not decide
        known = {host.known_to_decide for host in self.servers}
        if known == {None, False} and not isinstance(error, CircuitOpenError):
            others = [host for host in self.servers if host.known_to_decide is False]
            return self._takes_none(others, error, f", and {error}")

        # separate from other failures, so that the other servers can be asked to chat
        deciding = _deciding(self.servers)
        are_down = all_fail_fast(deciding) and not all_fail_fast(self.servers)
        return circuit_open(deciding) if is_retryable(error) and are_down else error

    def _takes_none(self, hosts: Sequence[Host], error: LLMError, more: str = "") -> LLMError:
        addresses = ", ".join(host.address for host in hosts)
        return DecisionsUnsupportedError(
            f"{self.model} takes no decision questions at {addresses}{more}", host=error.host
        )

    async def offers_decisions(self) -> bool:
        """Return True if any server supports decision questions, or only an attempt can tell.

        The first that does settles it. Each server is asked until it has answered.

        Raises:
            LLMError: If none does, and some did not answer.
        """
        with self.slots.entered():
            looks = [asyncio.create_task(self._look(host)) for host in self.servers]
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

    async def _look(self, host: Host) -> bool | None:
        if host.known_to_decide is None and host.breaker.is_open():
            raise circuit_open((host,))

        try:
            return await host.decides()
        except LLMError as error:
            if is_retryable(error) and not is_busy(error):
                host.trouble = str(error)
                host.breaker.failed()

            raise

    # The route of a question

    async def _ask(self, question: Question[ReplyT]) -> ReplyT:
        """Return the answer to a question, asking host after host while that may help.

        - Temporary failures (a busy server, a broken connection) are retried, elsewhere if
          possible.
        - A question that a host cannot serve at all goes to the others, one by one.
        - A question that a host refuses, or answers uselessly, is asked elsewhere once. If another
          host answers, the first has failed; otherwise the question was at fault, not a host.

        Raises:
            LLMError: If no host answers.
        """
        question.left = self.servers
        try:
            with self.slots.entered():
                while True:
                    try:
                        reply = await self._ask_once(question)
                    except Exception as error:
                        pause = self._judge(question, error)
                    else:
                        question.is_guilty = True
                        return reply

                    if pause:
                        await asyncio.sleep(pause)
        except UnusableError as unusable:
            if unusable.error is not None:
                raise unusable.error from unusable.error.__cause__

            # its readers report what it lacks
            return cast("ReplyT", unusable.reply)
        finally:
            if question.doubted is not None:
                self._settle(question.doubted, is_guilty=question.is_guilty)

    def _judge(self, question: Question[ReplyT], error: Exception) -> float:
        """Decide after an outcome whether to ask again or elsewhere; raise a final error.

        Returns:
            Seconds until the question is asked again, on the remaining hosts.
        """
        if isinstance(error, UnusableError):
            return self._after_useless(question, error)
        if isinstance(error, (DecisionsUnsupportedError, ModelMissingError)):
            return self._after_refusal(question, error)

        address = getattr(error, "host", "")
        # a client of another library has no address
        asked = [host for host in question.asked if address in (None, host.address)]
        passes = is_retryable(error) or any(_is_coming(host, error) for host in asked)
        return self._after_failure(question, error, passes=passes)

    def _after_failure(
        self, question: Question[ReplyT], error: Exception, *, passes: bool
    ) -> float:
        """Ask a question again after a temporary failure."""
        is_spent = question.tries - question.exempt >= self._attempts
        may_try = not is_spent and question.may_ask()
        if not (passes and may_try) or all_fail_fast(question.prefer(question.left)):
            raise error if question.doubted is None else question.doubted

        # a busy host is on hold, and questions wait for its slots
        return 0.0 if is_busy(error) else float(self.backoff(question.tries))

    def _after_refusal(self, question: Question[ReplyT], error: LLMError) -> float:
        """Ask the hosts that have not said that they cannot serve the question at all."""
        question.unable |= {
            host: error for host in question.left if error.host in (None, host.address)
        }
        left = tuple(host for host in question.left if host not in question.unable)
        if left:
            question.go_to(left)
            return 0.0

        # one that had the model may be downloading it again
        coming = [host for host, said in question.unable.items() if _is_coming(host, said)]
        if coming:
            question.left = tuple(coming)
            for host in coming:
                del question.unable[host]
            return self._after_failure(question, error, passes=True)

        return self._after_failure(question, question.refusal(error), passes=False)

    def _after_useless(self, question: Question[ReplyT], unusable: UnusableError) -> float:
        """Ask a question elsewhere once, which shows whose fault the useless answer was."""
        first, host = question.doubted, unusable.lease.host
        is_last = question.is_last or not question.may_ask()
        others = () if is_last else self._others(question, host)
        if others:
            question.doubted, question.is_last = unusable, True
            question.go_to(others)
            return 0.0

        # nothing can show that it was the host's fault
        question.is_guilty = False
        self._settle(unusable, is_guilty=False)
        is_internal_error = unusable.error is not None and is_internal(unusable.error)
        if not is_last and is_internal_error and self._attempts > 1:
            question.is_last = True
            question.go_to((host,))
            return 0.0

        raise _saying_more(first, unusable)

    def _others(self, question: Question[ReplyT], host: Host) -> Hosts:
        """Return the other hosts that can be asked, if possible recently useful ones."""
        others: Hosts = tuple(
            other
            for other in self.servers
            if other is not host and other not in question.unable and not other.breaker.fails_fast()
        )
        others = question.prefer(others) if others else ()
        return tuple(other for other in others if not other.unusable) or others

    async def _ask_once(self, question: Question[ReplyT]) -> ReplyT:
        """Ask the least busy host."""
        question.tries += 1
        lease = await self._slot(question, question.prefer(question.left))
        return await self._put(question, lease)

    async def _slot(self, question: Question[ReplyT], hosts: Hosts) -> Lease[Host]:
        """Wait for a slot on one of the hosts, or until it is clear that none will decide soon.

        Raises:
            DecisionsUnsupportedError: If a host takes no such questions, so that the caller may
                chat, and these are too busy to say whether they do.
        """
        rank = Rank.USUAL if question.doubted is None else Rank.URGENT
        while True:
            seconds = self._seconds_to_wait(question, hosts)
            try:
                async with asyncio.timeout(seconds) as timer:
                    return await self.slots.take(hosts, question.cost, question.asked, rank)
            except TimeoutError:
                if not timer.expired():
                    raise

    def _seconds_to_wait(self, question: Question[ReplyT], hosts: Hosts) -> float | None:
        """Return after how many seconds to look again at the hosts; None for a question that waits.

        Raises:
            DecisionsUnsupportedError: As `_slot`.
        """
        refusing = [host for host in self.servers if host.known_to_decide is False]
        if not (question.may_chat and refusing):
            return None
        if all(map(_has_only_refused, hosts)):
            more = ", and the others are too busy to say"
            raise self._takes_none(refusing, DecisionsUnsupportedError(), more)

        return _LOOK_AGAIN_SECONDS

    async def _put(self, question: Question[ReplyT], lease: Lease[Host]) -> ReplyT:
        """Ask a host, and learn from the outcome whether it works."""
        host, cost = lease.host, question.cost
        attempts = cost.attempts
        question.asked.add(host)
        cost.allowance.trouble = ""

        try:
            reply = await question.put(host, cost)
            # if no other host can be asked, any reply counts as the answer
            is_useless = len(self.servers) > 1 and question.lacks and question.lacks(reply)
        except LLMError as error:
            cost.allowance.trouble = str(error)
            doubted = self._after_error(question, lease, error, was_sent=cost.attempts > attempts)
            if doubted is not None:
                raise doubted from error
            raise
        except BaseException:
            host.breaker.abandoned(probe=lease.probe)
            raise
        else:
            if is_useless:
                raise self._doubted(UnusableError(lease, reply=reply))

            host.unusable, host.has_answered = 0, True
            host.breaker.succeeded()
            host.traffic.throttle.answered()
            return reply
        finally:
            self.slots.give_back(lease)

    def _after_error(
        self, question: Question[ReplyT], lease: Lease[Host], error: LLMError, *, was_sent: bool
    ) -> UnusableError | None:
        """Learn from an error; return a doubt about the host if the question may be at fault."""
        if not was_sent:
            lease.host.breaker.abandoned(probe=lease.probe)
        elif is_unusable(error) and not _is_coming(lease.host, error):
            return self._doubted(UnusableError(lease, error=error))
        elif self._learn(lease, error) and question.exempt < _MOST_EXEMPT:
            question.exempt += 1

        return None

    def _doubted(self, unusable: UnusableError) -> UnusableError:
        """Doubt a host that gave a useless answer, until `_settle`."""
        host = unusable.lease.host
        host.traffic.doubts += 1
        host.unusable += 1
        host.traffic.throttle.answered()

        return unusable

    def _settle(self, unusable: UnusableError, *, is_guilty: bool | None) -> None:
        """Count a useless answer as a failure of its host, or clear the host.

        Args:
            unusable: The useless answer.
            is_guilty: Whether it was the host's fault; None if unknown.
        """
        lease, breaker = unusable.lease, unusable.lease.host.breaker
        if is_guilty is None:
            breaker.abandoned(probe=lease.probe)
        elif is_guilty:
            lease.host.trouble = str(unusable)
            breaker.failed(probe=lease.probe)
        else:
            breaker.succeeded()

        self.slots.settle(lease.host)

    def _learn(self, lease: Lease[Host], error: LLMError) -> bool:
        """Record what a failure shows about the host: nothing, that it fails, or that it answers.

        Returns:
            True if the question is not at fault and can wait: there were too many at once, or the
            host is away and there is patience.
        """
        host, breaker = lease.host, lease.host.breaker
        others = host.traffic.in_flight - 1
        is_patient = breaker.patience > 0
        if _works_but_is_busy(host, error, others):
            return is_patient or others > 0

        is_coming = _is_coming(host, error)
        if not (is_coming or self._is_failure(error)):
            breaker.succeeded()
            host.traffic.throttle.answered()
            return False

        host.trouble = str(error)
        breaker.failed(probe=lease.probe, was_patient=is_busy(error))
        is_away = lease.probe or is_refused(error) or is_busy(error)

        return is_coming or (is_patient and is_away and is_retryable(error))

    def _is_failure(self, error: LLMError) -> bool:
        """Return whether an error says that its host should be left alone for a while."""
        # since it answers fast, a host without the model would attract questions for other hosts
        lacks_model = len(self.servers) > 1 and isinstance(error, ModelMissingError)
        return lacks_model or is_retryable(error)


def _saying_more(first: UnusableError | None, last: UnusableError) -> UnusableError:
    """Return the more informative outcome: a reply, even without an answer, over a refusal."""
    if first is not None and first.reply is not None and last.reply is None:
        return first
    return last


def _works_but_is_busy(host: Host, error: LLMError, others: int) -> bool:
    """Put a host on hold if it asks for it; return True if it is only busy."""
    if error.retry_after is not None:
        host.traffic.throttle.hold(error.retry_after)
    if not is_busy(error):
        return False

    host.trouble = str(error)
    asks_pause, patience = error.retry_after is not None, host.breaker.patience
    if host.traffic.throttle.refused(others, patience, asks_pause=asks_pause):
        return False

    host.breaker.succeeded()
    return True


def _is_coming(host: Host, error: BaseException) -> bool:
    """Return True if the pool waits for a host to have its model again."""
    is_without = isinstance(error, ModelMissingError) or has_lost_model(error)
    return is_without and host.has_answered and host.breaker.patience > 0


def _has_only_refused(host: Host) -> bool:
    """Return True if a host is too busy to say whether it supports decision questions."""
    return host.known_to_decide is None and host.traffic.throttle.is_refusing


def _deciding(hosts: Hosts) -> Hosts:
    """Return the hosts that may support decision questions."""
    # all if none does, since they may support them by now
    return tuple(host for host in hosts if host.known_to_decide is not False) or hosts


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until their connections are closed."""
    for task in tasks:
        task.cancel()

    await asyncio.gather(*tasks, return_exceptions=True)


# Calls that are shared


class Flight(Generic[ResultT]):
    """An open call, and the number of tasks that wait for it."""

    __slots__ = ("key", "task", "waiting")

    def __init__(self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]) -> None:
        self.key = key
        self.waiting = 0
        self.task: asyncio.Task[Outcome[ResultT]] = asyncio.create_task(_outcome_of(make))

    async def outcome(self) -> Outcome[ResultT]:
        """Wait for the outcome; cancelling this leaves the call running."""
        if self.task.done():
            return self.task.result()

        return await asyncio.shield(self.task)


class SingleFlight(Generic[ResultT]):
    """Open calls by their questions: equal calls are made once, and shared.

    A call ends with the last task that waits for it: cancelling one of two leaves it running;
    cancelling both cancels it, and waits until its connection is closed. A call that is
    cancelled in any other way, such as by the client itself, has failed. Each event loop makes
    its own calls.
    """

    def __init__(self) -> None:
        self._under_way: dict[Hashable, Flight[ResultT]] = {}

    def join(
        self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]
    ) -> Flight[ResultT]:
        """Start a call, or join the open one; `leave` it at the end.

        Args:
            key: What is asked.
            make: Starts the call, if it is not open; it adds to the given cost.
        """
        flight = self._under_way.get(key)
        if (
            flight is None
            or flight.task.done()
            or flight.task.get_loop() is not asyncio.get_running_loop()
        ):
            flight = self._under_way[key] = Flight(key, make)

        flight.waiting += 1

        return flight

    async def leave(self, flights: Iterable[Flight[ResultT]]) -> None:
        """Leave calls; those for which nobody waits are cancelled, and have ended afterwards."""
        ending = [flight.task for flight in flights if self._is_last(flight)]
        if not ending:
            return

        for task in ending:
            task.cancel()

        await asyncio.wait(ending)

    async def do(
        self, key: Hashable, make: Callable[[Cost], Coroutine[Any, Any, ResultT]]
    ) -> Outcome[ResultT]:
        """Return the outcome of a call: `join` it, wait, and `leave` it."""
        flight = self.join(key, make)
        try:
            return await flight.outcome()
        finally:
            await self.leave([flight])

    def __len__(self) -> int:
        """Return the number of open calls."""
        return len(self._under_way)

    def _is_last(self, flight: Flight[ResultT]) -> bool:
        """Leave one call; return True if it is still running, and nobody waits for it."""
        flight.waiting -= 1
        if flight.waiting:
            return False
        if self._under_way.get(flight.key) is flight:
            del self._under_way[flight.key]

        return not flight.task.done() and not flight.task.get_loop().is_closed()


async def _outcome_of(
    make: Callable[[Cost], Coroutine[Any, Any, ResultT]],
) -> Outcome[ResultT]:
    cost = Cost()
    try:
        return Outcome(cost, await make(cost))
    except Exception as error:
        return Outcome(cost, error=error)
    except asyncio.CancelledError as error:
        # cancelled by the client itself; if by the last waiting task, nobody sees this
        failure = LLMError("the client cancelled its own call")
        failure.__cause__ = error
        return Outcome(cost, error=failure)
