"""How a simulation's open questions become moves, always in the order of the agents.

A decision belongs to the tick in which it was asked. A reasoner that answers at once is asked about
a whole tick together. One that takes its time is asked about each question as it comes up, and
meanwhile the agents go on into the next tick, in their order, up to the first whose own answer is
still out. So nobody sees anything that it would not have seen otherwise; and as the log is put back
into the order of ticks, both ways write the same bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from prism.errors import ReasonerError
from prism.runlog import SimulatedClock
from prism.runlog._clock import Moment
from prism.statechart import Decision, Question
from prism.telemetry._loggers import EventLogger, Level, report

Apply = Callable[[Question, Decision], None]
"""Carries a decision out; called in agent order."""

Held = list[tuple[Moment, Level, str, dict[str, Any]]]
"""Events that wait for earlier ones: when each happened, how serious it is, its name and keys."""

_WORKERS_PER_SLOT = 2
"""Questions put to the reasoner at once: some may wait for the answer to the same question of another agent."""


class ManyDecider(Protocol):
    """What a simulation asks; every reasoner built on `BaseReasoner` is one.

    One that has a ``concurrency`` above 0 is asked about so many questions at the same time.
    """

    async def decide_many(
        self, questions: Sequence[Question], *, logger: EventLogger | None = None
    ) -> list[Decision]:
        """Answer several questions, in their order."""
        ...


class Deciding(Protocol):
    """What becomes of the open questions of a run.

    Attributes:
        next_agent: The first agent that may not take its next step before its question is settled.
    """

    next_agent: Any

    @property
    def logger(self) -> EventLogger | None:
        """Where the run's events go meanwhile."""

    async def ask(self, question: Question) -> None:
        """Put one agent's question."""

    async def settle_next(self) -> None:
        """Wait for the answer to the first open question, and carry it out."""

    async def end_tick(self) -> None:
        """Note that every agent has taken its step."""

    async def end_round(self) -> None:
        """Settle every open question."""

    async def close(self) -> None:
        """Give up what is still being asked; nothing is left running."""


def deciding_with(
    reasoner: ManyDecider, logger: EventLogger | None, clock: SimulatedClock, apply: Apply
) -> Deciding:
    """Return the way of asking that suits a reasoner."""
    slots = getattr(reasoner, "concurrency", 0)
    if slots:
        return AsTheyCome(reasoner, slots * _WORKERS_PER_SLOT, logger, clock, apply)
    return TickByTick(reasoner, logger, apply)


class TickByTick:
    """Asks about a whole tick together; for reasoners that answer at once."""

    def __init__(self, reasoner: ManyDecider, logger: EventLogger | None, apply: Apply) -> None:
        self.logger: EventLogger | None = logger
        self.next_agent: Any = None
        self._reasoner = reasoner
        self._apply = apply
        self._questions: list[Question] = []

    async def ask(self, question: Question) -> None:
        """Put one agent's question."""
        self._questions.append(question)

    async def end_tick(self) -> None:
        """Ask, then carry the answers out."""
        questions, self._questions = self._questions, []
        if questions:
            decisions = await self._reasoner.decide_many(questions, logger=self.logger)
            for question, decision in zip(questions, decisions, strict=True):
                self._apply(question, decision)

    async def settle_next(self) -> None:
        """Do nothing: no question outlives its tick."""

    async def end_round(self) -> None:
        """Do nothing, either."""

    async def close(self) -> None:
        """Do nothing, either."""


class OrderedLogger:
    """Passes events on, or holds them back while earlier ones are still to come.

    Args:
        given: Where they go in the end.
        clock: The run's clock.

    Attributes:
        holding: Where events are held; None while they are passed on.
        relays: Tells that events go on from here to another logger.
    """

    relays = True

    def __init__(self, given: EventLogger | None, clock: SimulatedClock) -> None:
        self.holding: Held | None = None
        self._given = given
        self._clock = clock

    def write(self, held: Held, at: Moment | None = None) -> None:
        """Pass on what was held, each event at the time it happened, or all at a given one."""
        for moment, level, event, keys in held:
            with self._clock.at(at or moment):
                report(self._given, level, event, **keys)

        held.clear()

    def info(self, event: str, **keys: Any) -> None:
        """Record something that happened."""
        self._say("info", event, keys)

    def warning(self, event: str, **keys: Any) -> None:
        """Record something that went wrong and was dealt with."""
        self._say("warning", event, keys)

    def error(self, event: str, **keys: Any) -> None:
        """Record a fault in the user's code."""
        self._say("error", event, keys)

    def _say(self, level: Level, event: str, keys: dict[str, Any]) -> None:
        if self.holding is None:
            report(self._given, level, event, **keys)
        else:
            self.holding.append((self._clock.moment, level, event, keys))


@dataclass(slots=True)
class _Asked:
    question: Question
    moment: Moment
    logger: OrderedLogger
    answer: asyncio.Future[Decision]
    announced: Held = field(default_factory=list)


class AsTheyCome:
    """Asks about each question as it comes up, while agents take their next steps.

    Args:
        reasoner: Who answers.
        most: Questions put to it at once, at the most.
        given: Where the run's events go.
        clock: The run's clock.
        apply: Carries a decision out.
    """

    def __init__(
        self,
        reasoner: ManyDecider,
        most: int,
        given: EventLogger | None,
        clock: SimulatedClock,
        apply: Apply,
    ) -> None:
        self.logger: OrderedLogger = OrderedLogger(given, clock)
        self.next_agent: Any = None
        self._reasoner = reasoner
        self._most = most
        self._given = given
        self._clock = clock
        self._apply = apply
        self._open: deque[_Asked] = deque()
        self._asked: deque[_Asked] = deque()
        self._waiting: asyncio.Queue[_Asked] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []
        self._moves: Held = []
        self._later: Held = []

    async def ask(self, question: Question) -> None:
        """Put one agent's question, and let those under way get on."""
        logger = OrderedLogger(self._given, self._clock)
        answer: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        asked = _Asked(question, self._clock.moment, logger, answer)
        logger.holding = asked.announced
        self._asked.append(asked)
        self._waiting.put_nowait(asked)
        if len(self._workers) < self._most:
            self._workers.append(asyncio.create_task(self._work()))

        await asyncio.sleep(0)

    async def settle_next(self) -> None:
        """Wait for the answer to the first open question of the tick before, and carry it out."""
        asked = self._open[0]
        decision = await asked.answer
        self._open.popleft()
        asked.logger.write(asked.announced, at=asked.moment)
        self.logger.holding = self._moves
        with self._clock.at(asked.moment):
            self._apply(asked.question, decision)

        self._go_on()

    async def end_tick(self) -> None:
        """Make this tick's questions those to settle; all of the tick before are settled, as all agents stepped."""
        self._open, self._asked = self._asked, deque()
        self._go_on()

    async def end_round(self) -> None:
        """Settle every open question."""
        while self._open:
            await self.settle_next()

    async def close(self) -> None:
        """Give up what is still being asked, and write what was held back."""
        for worker in self._workers:
            worker.cancel()

        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers.clear()

        for asked in (*self._open, *self._asked):
            if not asked.answer.cancel() and not asked.answer.cancelled():
                # seen, as asyncio wants it to be; the run has ended for another reason
                asked.answer.exception()

        self._open.clear()
        self._asked.clear()
        self._go_on()

    def _go_on(self) -> None:
        """Hold the next tick's events while a decision of this one is out; write all in order when none is."""
        if self._open:
            self.logger.holding = self._later
            self.next_agent = self._open[0].question.agent
        else:
            self.logger.holding = self.next_agent = None
            self.logger.write(self._moves)
            self.logger.write(self._later)

    async def _work(self) -> None:
        while True:
            asked = await self._waiting.get()
            try:
                (decision,) = await self._reasoner.decide_many(
                    [asked.question], logger=asked.logger
                )
            except BaseException as error:
                failure = _failure(error)
                if failure is None:
                    asked.answer.cancel()
                    raise

                if not asked.answer.done():  # it is when the run was cancelled meanwhile
                    asked.answer.set_exception(failure)
            else:
                if not asked.answer.done():
                    asked.answer.set_result(decision)


def _failure(error: BaseException) -> Exception | None:
    """Return what a run ends with when its reasoner raises, or None if it is the asking itself that is to end."""
    if isinstance(error, Exception):
        return error

    task = asyncio.current_task()
    if not isinstance(error, asyncio.CancelledError) or task is None or task.cancelling():
        return None

    failure = ReasonerError("the reasoner raised CancelledError, though nobody had cancelled it")
    failure.__cause__ = error

    return failure
