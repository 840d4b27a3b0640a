"""The way of a question from host to host, until one answers it or none can."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Generic, TypeVar, cast

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception

from prism.errors import DecisionsUnsupportedError, LLMError, ModelMissingError
from prism.llm._faults import is_busy, is_internal, is_retryable, is_unusable
from prism.llm._hedging import Pace, first_success, is_success
from prism.llm._host import ChatReply, DecisionReply, ModelHost
from prism.llm._slots import Hosts, Lease, Slots, all_fail_fast
from prism.statechart.reasoner._cost import Cost

_MOST_EXEMPT = 20
"""Refusals that cost a question no attempt; as each lowers the host's limit, fewer come."""

ReplyT = TypeVar("ReplyT", ChatReply, DecisionReply)

Backoff = Callable[[RetryCallState], float]


@dataclass(slots=True)
class Question(Generic[ReplyT]):
    """A question and what became of it so far.

    Args:
        put: Puts it to a host, and adds to a cost.
        cost: What it costs, all requests for it together.
        lacks: Says how many of the answers that were asked for a reply lacks.
        prefer: Chooses among the hosts that are left.
        pace: How long such questions take; None if no straggler is hedged.
        asked: Hosts that it was put to.
        unable: Hosts that have neither the model nor the path that it needs.
        urgent: Whether a host was doubted for it.
        exempt: Refusals that do not count as attempts, as there were only too many at once.
    """

    put: Callable[[ModelHost, Cost], Awaitable[ReplyT]]
    cost: Cost
    lacks: Callable[[ReplyT], int] | None = None
    prefer: Callable[[Hosts], Hosts] = lambda hosts: hosts
    pace: Pace | None = None
    asked: set[ModelHost] = field(default_factory=set)
    unable: set[ModelHost] = field(default_factory=set)
    urgent: bool = False
    exempt: int = 0


class UnusableError(Exception):
    """A host has refused a question, or its reply lacks answers: that may be the question's fault.

    Until it is known whether another host answers the question, the host is doubted.

    Args:
        lease: The slot that was used.
        error: What was raised; None if there is a reply.
        reply: The reply.
        lacking: How many answers it lacks.
    """

    def __init__(
        self,
        lease: Lease,
        *,
        error: LLMError | None = None,
        reply: ChatReply | DecisionReply | None = None,
        lacking: float = inf,
    ) -> None:
        self.lease = lease
        self.error = error
        self.reply = reply
        self.lacking = lacking
        super().__init__(
            f"{lease.host.address} gave no valid answer" if error is None else str(error)
        )


class Router:
    """Takes questions to hosts: to the least busy first, and on while that may help.

    - What passes (a busy server, a broken connection) is retried, elsewhere if there is room.
    - What a host cannot serve at all goes to the others, one by one.
    - What a host refuses, or answers with nothing of use, is asked elsewhere once. If another host
      answers, the first has failed; otherwise it was the question's fault, and no host's.

    Args:
        hosts: The hosts.
        slots: Who may ask which host now.
        attempts: Requests for one question while failures pass.
        backoff: Returns the pause before a retry.
    """

    def __init__(self, hosts: Hosts, slots: Slots, attempts: int, backoff: Backoff) -> None:
        self._hosts = hosts
        self._slots = slots
        self._attempts = attempts
        self._backoff = backoff

    async def ask(self, question: Question[ReplyT]) -> ReplyT:
        """Return the answer to a question.

        Raises:
            LLMError: If no host gives one.
        """
        try:
            return await self._ask_able(question, self._hosts)
        except UnusableError as unusable:
            first = unusable

        is_last = question.cost.is_exhausted
        others = () if is_last else self._others(question, first.lease.host)
        outcome = (
            await self._ask_elsewhere(question, first, others)
            if others
            else await self._ask_again_here(question, first)
        )
        if not isinstance(outcome, UnusableError):
            return outcome
        if outcome.error is not None:
            raise outcome.error

        # what it lacks is for those to say who read it
        return cast("ReplyT", outcome.reply)

    def _others(self, question: Question[ReplyT], host: ModelHost) -> Hosts:
        """Return the other hosts that can be asked, if possible those that were of use lately."""
        others = tuple(
            other
            for other in self._hosts
            if other is not host and other not in question.unable and not other.breaker.fails_fast()
        )
        others = question.prefer(others) if others else ()
        return tuple(other for other in others if not other.unusable) or others

    async def _ask_elsewhere(
        self, question: Question[ReplyT], first: UnusableError, others: Hosts
    ) -> ReplyT | UnusableError:
        """Put a question elsewhere once; what comes of it settles the doubt about the host."""
        is_guilty: bool | None = None
        question.urgent = True
        try:
            reply = await self._ask_able(question, others)
        except UnusableError as second:
            is_guilty = False
            self._settle(second, is_guilty=False)
            # a reply, even one that lacks some of the answers, is better than none
            return first if first.lacking < second.lacking else second
        except LLMError:
            return first
        else:
            is_guilty = True
            return reply
        finally:
            self._settle(first, is_guilty=is_guilty)

    async def _ask_again_here(
        self, question: Question[ReplyT], first: UnusableError
    ) -> ReplyT | UnusableError:
        """Retry once on the same host if it has failed inside; there is no other one."""
        # nobody can show that it was the host's fault
        self._settle(first, is_guilty=False)
        is_last = self._attempts == 1 or question.cost.is_exhausted
        if first.error is None or not is_internal(first.error) or is_last:
            return first

        try:
            return await self._ask_able(question, (first.lease.host,))
        except UnusableError as second:
            self._settle(second, is_guilty=False)
            return second

    async def _ask_able(self, question: Question[ReplyT], hosts: Hosts) -> ReplyT:
        """Put a question to host after host, while they say that they cannot serve it at all."""
        refusals: list[LLMError] = []
        left = hosts
        while left:
            try:
                return await self._ask_some(question, question.prefer(left))
            except (DecisionsUnsupportedError, ModelMissingError) as error:
                refusals.append(error)
                question.unable |= {host for host in left if host.address == error.host}
                left = tuple(host for host in left if host not in question.unable)

        # tells more than that another host lacks the model
        unsupported = (error for error in refusals if isinstance(error, DecisionsUnsupportedError))
        raise next(unsupported, refusals[-1])

    async def _ask_some(self, question: Question[ReplyT], hosts: Hosts) -> ReplyT:
        """Put a question to some hosts, again if the failure passes."""
        try:
            return await self._ask_once(question, hosts)
        except LLMError as error:
            # only now, as tenacity would cost the others more than all else here
            return await self._retry(error, question, hosts)

    async def _retry(self, failure: LLMError, question: Question[ReplyT], hosts: Hosts) -> ReplyT:
        """Retry a question that failed once."""
        failures = [failure]

        async def ask() -> ReplyT:
            if failures:
                raise failures.pop()
            return await self._ask_once(question, hosts)

        reply: ReplyT = await AsyncRetrying(
            stop=lambda state: (
                question.cost.is_exhausted
                or state.attempt_number - question.exempt >= self._attempts
            ),
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
        return 0.0 if error is not None and is_busy(error) else float(self._backoff(state))

    async def _ask_once(self, question: Question[ReplyT], hosts: Hosts) -> ReplyT:
        """Put a question to the least busy host, and to a second one if the first straggles."""
        lease = await self._slots.take(hosts, question.cost, question.asked, urgent=question.urgent)
        patience = None if question.pace is None else question.pace.straggles_after()
        if patience is None or not question.cost.allows_hedge:
            return await self._put(question, lease, question.cost)

        return await self._put_hedged(question, hosts, lease, patience)

    async def _put_hedged(
        self, question: Question[ReplyT], hosts: Hosts, lease: Lease, patience: float
    ) -> ReplyT:
        """Put a question, and again on a spare slot when it has taken too long; the first wins."""
        has_begun = False
        costs = (question.cost.another(), question.cost.another())

        async def request() -> ReplyT:
            nonlocal has_begun
            has_begun = True
            return await self._put(question, lease, costs[0])

        async def hedge(note_put: Callable[[], None]) -> ReplyT:
            spare = await self._slots.take_spare(hosts, question.cost, (lease.host,))
            note_put()
            return await self._put(question, spare, costs[1])

        tasks = [asyncio.create_task(request())]
        decisive: asyncio.Task[ReplyT] | None = None
        try:
            decisive = await first_success(tasks, hedge, patience)
            reply = decisive.result()
        finally:
            # a task that is cancelled before its first step returns nothing
            if not has_begun:
                self._slots.return_unused(lease)

            self._settle_others(tasks, decisive)
            # the one that answered is told of as the last
            for cost in costs if decisive is tasks[-1] else reversed(costs):
                question.cost.add(cost)

        return reply

    def _settle_others(
        self, tasks: list[asyncio.Task[ReplyT]], decisive: asyncio.Task[ReplyT] | None
    ) -> None:
        """Settle the doubts about hosts whose failure nobody else will hear of."""
        is_guilty = None if decisive is None else is_success(decisive)
        for task in tasks:
            failure = None if task is decisive or task.cancelled() else task.exception()
            if isinstance(failure, UnusableError):
                self._settle(failure, is_guilty=is_guilty)

    async def _put(self, question: Question[ReplyT], lease: Lease, cost: Cost) -> ReplyT:
        """Put a question to a host, and learn from the outcome whether that works."""
        host, attempts = lease.host, cost.attempts
        question.asked.add(host)
        began = perf_counter()

        try:
            reply = await question.put(host, cost)
            lacking = self._lacking(question, reply)
        except LLMError as error:
            if cost.attempts == attempts:
                # nothing was sent
                host.breaker.abandoned(probe=lease.probe)
            elif is_unusable(error):
                raise self._doubted(UnusableError(lease, error=error)) from error
            elif self._learn(lease, error) and question.exempt < _MOST_EXEMPT:
                question.exempt += 1
            raise
        except BaseException:
            if question.pace is not None:
                question.pace.note_given_up(perf_counter() - began)
            host.breaker.abandoned(probe=lease.probe)
            raise
        else:
            if question.pace is not None:
                question.pace.note(perf_counter() - began)
            if lacking:
                raise self._doubted(UnusableError(lease, reply=reply, lacking=lacking))

            host.unusable = 0
            host.breaker.succeeded()
            host.traffic.throttle.answered()
            return reply
        finally:
            self._slots.give_back(lease)

    def _lacking(self, question: Question[ReplyT], reply: ReplyT) -> int:
        """Return how many answers a reply lacks, where another host may be asked for them."""
        if question.lacks is None or len(self._hosts) == 1:
            return 0
        return question.lacks(reply)

    def _doubted(self, unusable: UnusableError) -> UnusableError:
        """Doubt the host that gave nothing of use, until `_settle`."""
        host = unusable.lease.host
        host.traffic.doubts += 1
        host.unusable += 1
        host.traffic.throttle.answered()

        return unusable

    def _settle(self, unusable: UnusableError, *, is_guilty: bool | None) -> None:
        """Charge a host with a question that it gave nothing of use to, or free it of that.

        Args:
            unusable: What it gave.
            is_guilty: Whether it was the host's fault; None if that could not be found out.
        """
        lease, breaker = unusable.lease, unusable.lease.host.breaker
        if is_guilty is None:
            breaker.abandoned(probe=lease.probe)
        elif is_guilty:
            lease.host.trouble = str(unusable)
            breaker.failed(probe=lease.probe)
        else:
            breaker.succeeded()

        self._slots.settle(lease.host)

    def _learn(self, lease: Lease, error: LLMError) -> bool:
        """Note what a failure says of the host: nothing, that it fails, or that it answers.

        Returns:
            True if the question failed only because too many were put to the host at once.
        """
        host, breaker = lease.host, lease.host.breaker
        others = host.traffic.in_flight - 1
        if error.retry_after is not None:
            host.traffic.throttle.hold(error.retry_after)

        if is_busy(error) and not host.traffic.throttle.refused(others):
            breaker.succeeded()
            return others > 0

        # answering fast, a host without the model would attract questions that another could answer
        lacks_model = len(self._hosts) > 1 and isinstance(error, ModelMissingError)
        if is_retryable(error) or lacks_model:
            host.trouble = str(error)
            breaker.failed(probe=lease.probe)
        else:
            breaker.succeeded()
            host.traffic.throttle.answered()

        return False
