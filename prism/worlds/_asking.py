"""How open questions become transitions, always in the order of the agents.

A decision belongs to the tick in which it was asked. A reasoner that answers at once is asked about
a whole tick at a time, in the waves of `prism.worlds._ticks`. A slower one is asked each question
as it comes up. Meanwhile the agents continue with the next tick, in their order, up to the first
one that still waits for its own answer, or with several ticks if each changes only itself, or its
world can tell which turns depend on others. As a result, no agent sees anything that it would not
have seen otherwise. The log is put back into the order of ticks, so both ways write the same bytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from typing import Any, Protocol, runtime_checkable

from prism.errors import ReasonerError, SimulationError
from prism.reasoner._router import all_of
from prism.reasoner._texts import fallback_text
from prism.reasoner._wording import USUAL_WORDING
from prism.runlog import SimulatedClock
from prism.runlog._writer import Moment
from prism.statechart import (
    BaseWriter,
    Budget,
    Decision,
    PolicyReasoner,
    Question,
    TextCall,
    Wording,
    Written,
)
from prism.statechart.names import agent_name
from prism.statechart.states import state_text
from prism.telemetry.instruments import Level
from prism.telemetry.loggers import EventLogger, report

Put = Question | TextCall
"""What an agent may wait for."""

Answer = Any
"""A `Decision` on a question, or what was `Written` for a text call."""

Apply = Callable[[Any, Any], Put | None]
"""Carries out an answer; returns what the agent asks next in the same tick, if anything."""

Depends = Callable[[Any, Iterable[Any]], bool]
"""Returns whether an agent's turn depends on those of others that have still to take theirs."""

MOST_TICKS = 8
"""Most ticks that are open at the same time, which bounds how many turns and events wait."""

QUESTIONS_PER_SLOT = 2
"""With fewer open questions for each slot, agents go ahead of those that wait, to ask more."""

MOST_WAVES = 10_000
"""Most waves in one tick, since a step that keeps asking would never end."""

Buffer = list[tuple[Moment, Level, str, dict[str, Any]]]
"""Events that wait for earlier ones: the time, level, name and keys of each."""


class TemplateWriter(BaseWriter):
    """Returns the template of every text, without a model."""

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Return the templates, or a failure for a call without one."""
        return [
            Written(None, "failed", reason="the run has no writer")
            if call.fallback is None
            else Written(fallback_text(call), "template", call.fallback)
            for call in calls
        ]


class Answerers:
    """The reasoner and the writer that answer the agents of a run.

    Args:
        reasoner: Makes the decisions.
        writer: Writes the texts, or None.
        wording: Length and language of texts for calls that do not specify them.

    Attributes:
        has_writer: Whether there is a writer.
        concurrency: How many requests are worth sending at the same time, or 0 if answers come at
            once.
    """

    def __init__(
        self, reasoner: Decider, writer: BaseWriter | None = None, wording: Wording | None = None
    ) -> None:
        self.reasoner = reasoner
        self.wording: Wording = wording or USUAL_WORDING
        self.has_writer: bool = writer is not None
        self._writer: BaseWriter = writer or TemplateWriter()

    @property
    def concurrency(self) -> int:
        """How many requests are worth sending at the same time, or 0 if answers come at once."""
        return max(getattr(self.reasoner, "concurrency", 0), self._writer.concurrency)

    @property
    def budget(self) -> Budget | None:
        """The budget that both share, or None if no model is asked."""
        budgets = (getattr(each, "budget", None) for each in (self.reasoner, self._writer))
        return next((each for each in budgets if isinstance(each, Budget)), None)

    @property
    def policy(self) -> PolicyReasoner | None:
        """The policy that draws all decisions; None if somebody else decides."""
        # a derived class may answer in its own way
        reasoner = self.reasoner
        return reasoner if type(reasoner) is PolicyReasoner else None

    async def answers_to(self, asked: Sequence[Put], logger: EventLogger | None) -> list[Answer]:
        """Ask for decisions and texts together, and log them, the decisions first.

        Args:
            asked: Questions and text calls of several agents.
            logger: Where to log the answers.

        Returns:
            A `Decision` for every question and a `Written` for every text call, in their order.

        Raises:
            ReasonerError: If a decision is none of the options.
        """
        questions = [each for each in asked if isinstance(each, Question)]
        calls = [each for each in asked if isinstance(each, TextCall)]
        if not calls:
            return await self._decisions(questions, logger)

        # logged only after the decisions, so the log does not depend on which came first
        texts = self._writer.answer(calls)
        if questions:
            decisions, written = await all_of([self._decisions(questions, logger), texts])
        else:
            decisions, written = [], await texts

        self._writer.announce(calls, written, logger=logger)
        answers = iter(decisions), iter(written)

        return [next(answers[isinstance(each, TextCall)]) for each in asked]

    async def close(self) -> None:
        """Close their connections."""
        for each in (self.reasoner, self._writer):
            close = getattr(each, "close", None)
            if close is not None:
                await close()

    async def _decisions(
        self, questions: Sequence[Question], logger: EventLogger | None
    ) -> list[Decision]:
        decisions = await self.reasoner.decide_many(questions, logger=logger)
        for question, decision in zip(questions, decisions, strict=True):
            if decision.chosen not in question.options:
                options = ", ".join(map(state_text, question.options))
                raise ReasonerError(
                    f"agent {agent_name(question.agent)!r}: the reasoner chose "
                    f"{decision.chosen!r}, which is not one of {options}"
                )

        return decisions


class RelayLogger:
    """A logger that passes events on to another one, immediately or later.

    Attributes:
        relays: Marks a logger of this kind.
    """

    relays = True

    def info(self, event: str, **keys: Any) -> None:
        """Record something that happened."""
        self._say("info", event, keys)

    def warning(self, event: str, **keys: Any) -> None:
        """Record something that went wrong and was handled."""
        self._say("warning", event, keys)

    def error(self, event: str, **keys: Any) -> None:
        """Record a fault in the user's code."""
        self._say("error", event, keys)

    def _say(self, level: Level, event: str, keys: dict[str, Any]) -> None:
        raise NotImplementedError


class OrderedLogger(RelayLogger):
    """Passes events on, or buffers them while earlier ones are still missing.

    Args:
        given: Where the events finally go.
        clock: The run's clock.

    Attributes:
        buffer: The waiting events, or None while events are passed on.
    """

    def __init__(self, given: EventLogger | None, clock: SimulatedClock) -> None:
        self.buffer: Buffer | None = None
        self._given = given
        self._clock = clock

    def write(self, buffered: Buffer, at: Moment | None = None) -> None:
        """Pass on buffered events, each with its own time, or all with a given one."""
        for moment, level, event, keys in buffered:
            with self._clock.at(at or moment):
                report(self._given, level, event, **keys)

        buffered.clear()

    def _say(self, level: Level, event: str, keys: dict[str, Any]) -> None:
        if self.buffer is None:
            report(self._given, level, event, **keys)
        else:
            self.buffer.append((self._clock.moment, level, event, keys))


@dataclass(slots=True)
class _Wave:
    """The events of one question: those of its answer and those of applying it."""

    decisions: Buffer = field(default_factory=list)
    texts: Buffer = field(default_factory=list)
    applied: Buffer = field(default_factory=list)


@dataclass(slots=True)
class _Turn:
    """A turn that waits for answers, or for the end of its agent's earlier turn."""

    agent: Any
    moment: Moment
    question: Put | None = None
    told: Buffer = field(default_factory=list)
    waves: list[_Wave] = field(default_factory=list)
    over: asyncio.Task[None] = field(init=False)
    may_be_next: asyncio.Future[None] | None = None


@dataclass(slots=True)
class _Tick:
    """A tick with its open turns, in order, and the events that are still to be written."""

    # the turns that were put off have buffers of their own
    told: list[Buffer] = field(default_factory=lambda: [[]])
    turns: deque[_Turn] = field(default_factory=deque)
    settled: list[_Wave] = field(default_factory=list)


class AsTheyCome:
    """Asks each question as it comes up, while other agents take their next steps.

    An answer is applied when it arrives, since it only changes the agent that asked.

    Args:
        answerers: Who answers.
        given: Where the run's events go.
        clock: The run's clock.

    Attributes:
        logger: The logger for the run's events while questions are open.
        open_turns: The turns of the agents that cannot take their next one yet, by the agent's
            address.
        apply: Applies a decision. Set it before the first question.
        open_questions: Number of questions without an answer. Other threads may read it.
        most_ticks: Most ticks that are open at the same time.
        depends: Returns whether the turn of an agent must wait until all earlier ones are taken,
            given the agents that have still to take theirs. None if it waits for its own only.
    """

    apply: Apply

    def __init__(
        self, answerers: Answerers, given: EventLogger | None, clock: SimulatedClock
    ) -> None:
        self._ordered = OrderedLogger(given, clock)
        self.logger: EventLogger = self._ordered
        self.open_turns: dict[int, _Turn] = {}
        self.open_questions: int = 0
        self._answerers = answerers
        self._given = given
        self._clock = clock
        # the last one is the current tick
        self._ticks: deque[_Tick] = deque([_Tick()])
        self.most_ticks: int = MOST_TICKS
        self.depends: Depends | None = None
        # the turns that are still to be taken, in their order
        self._late: dict[int, _Turn] = {}
        self._lacks_questions: asyncio.Future[None] | None = None

    @property
    def is_short(self) -> bool:
        """Whether there are too few open questions to keep every slot busy."""
        return self.open_questions < QUESTIONS_PER_SLOT * self._answerers.concurrency

    def must_wait(self, agent: Any) -> bool:
        """Return whether an agent's turn depends on earlier ones that are still to be taken."""
        if not self._late or self.depends is None:
            return False

        return self.depends(agent, (each.agent for each in self._late.values()))

    async def ask(self, agent: Any, question: Put) -> None:
        """Ask one agent's question, and let the open requests make progress."""
        self._open(_Turn(agent, self._clock.moment, question))
        await asyncio.sleep(0)

    def put_off(self, agent: Any, take: Callable[[], Put | None]) -> None:
        """Have an agent take this turn once the turns on which it depends are over.

        Args:
            agent: The agent.
            take: Takes the turn, and returns its question, if any.
        """
        turn, told = _Turn(agent, self._clock.moment), self._ticks[-1].told
        if self.depends is not None:
            self._late[id(turn)] = turn
        self._open(turn, self.open_turns.get(id(agent)), take)
        told += [turn.told, []]
        self._ordered.buffer = told[-1]

    async def settle_next(self) -> None:
        """Wait for the end of the first open turn."""
        tick = self._ticks[0]
        turn = tick.turns[0]
        await turn.over
        tick.turns.popleft()
        # texts are logged after all decisions of their wave
        if len(tick.told) == 1:
            self._ordered.write(turn.waves[0].decisions, at=turn.moment)
        self._keep(tick, turn)
        self._go_on()

    async def settle_next_or_lack(self) -> None:
        """Wait for the end of the first open turn, or until there are too few open questions."""
        over = self._ticks[0].turns[0].over
        if not over.done():
            lacks = self._lacks_questions = asyncio.get_running_loop().create_future()
            await asyncio.wait((over, lacks), return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            await self.settle_next()

    async def end_tick(self) -> None:
        """Begin another tick, once few enough are open."""
        self._ticks.append(_Tick())
        self._go_on()
        while len(self._ticks) > self.most_ticks or self._is_next_over():
            await self.settle_next()

    async def end_round(self) -> None:
        """Settle every open turn."""
        while len(self._ticks) > 1:
            await self.settle_next()

    async def close(self) -> None:
        """Cancel all open requests, and write the buffered events."""
        turns = [turn.over for tick in self._ticks for turn in tick.turns]
        for turn in turns:
            turn.cancel()

        # this also retrieves their exceptions, the first of which the run has already raised
        await asyncio.gather(*turns, return_exceptions=True)
        for tick in self._ticks:
            self._write(tick)
        self._ticks = deque([_Tick()])
        self._late.clear()
        self._ordered.buffer = None

    def _open(
        self, turn: _Turn, before: _Turn | None = None, take: Callable[[], Put | None] | None = None
    ) -> None:
        turn.over = asyncio.create_task(self._carry(turn, before, take))
        self.open_turns[id(turn.agent)] = turn
        self._ticks[-1].turns.append(turn)

    def _is_next_over(self) -> bool:
        turns = self._ticks[0].turns
        return bool(turns) and turns[0].over.done()

    def _keep(self, tick: _Tick, turn: _Turn) -> None:
        """Append the events of a turn's questions to those of their waves."""
        for number, wave in enumerate(turn.waves):
            if number == len(tick.settled):
                tick.settled.append(_Wave())

            kept = tick.settled[number]
            kept.decisions += _moved_to(turn.moment, wave.decisions)
            kept.texts += _moved_to(turn.moment, wave.texts)
            kept.applied += wave.applied

    def _go_on(self) -> None:
        """Write the ticks that are over; buffer the current one while an earlier one is open."""
        while len(self._ticks) > 1 and not self._ticks[0].turns:
            self._write(self._ticks.popleft())

        first, now = self._ticks[0], self._ticks[-1]
        if len(first.told) == 1:
            self._ordered.write(first.told[0])
        is_passed_on = first is now and len(now.told) == 1
        self._ordered.buffer = None if is_passed_on else now.told[-1]

    def _write(self, tick: _Tick) -> None:
        """Write the events of a tick: those of its turns, then those of each wave."""
        waves = ((each.decisions, each.texts, each.applied) for each in tick.settled)
        for told in chain(tick.told, *waves):
            self._ordered.write(told)

    async def _carry(
        self, turn: _Turn, before: _Turn | None, take: Callable[[], Put | None] | None
    ) -> None:
        """Take a turn that was put off, and apply its agent's answers until it asks nothing."""
        if take is not None:
            if before is not None:
                await before.over
            await self._free_of_others(turn)
            with self._writing_to(turn.told, turn.moment):
                turn.question = take()
            self._note_taken(turn)

        question = turn.question
        while question is not None:
            if len(turn.waves) == MOST_WAVES:
                raise still_waits(turn.agent, MOST_WAVES)

            wave = _Wave()
            turn.waves.append(wave)
            logger = OrderedLogger(self._given, self._clock)
            logger.buffer = wave.texts if isinstance(question, TextCall) else wave.decisions
            # the clock may already show a later tick
            asked = replace(question, instant=(turn.moment.round, turn.moment.tick))
            answer = await self._answer(asked, logger)
            with self._writing_to(wave.applied, turn.moment):
                question = self.apply(question, answer)

        if self.open_turns[id(turn.agent)] is turn:
            del self.open_turns[id(turn.agent)]

    async def _free_of_others(self, turn: _Turn) -> None:
        """Wait until a turn depends on no turn that is still to be taken."""
        while turn is not self._next_late() and self._depends_on_earlier(turn):
            turn.may_be_next = asyncio.get_running_loop().create_future()
            await turn.may_be_next

    def _depends_on_earlier(self, turn: _Turn) -> bool:
        if self.depends is None:
            return False

        earlier = takewhile(lambda each: each is not turn, self._late.values())
        return self.depends(turn.agent, (each.agent for each in earlier))

    def _next_late(self) -> _Turn | None:
        return next(iter(self._late.values()), None)

    def _note_taken(self, turn: _Turn) -> None:
        """Note that a turn is taken, and have the next one tried again."""
        self._late.pop(id(turn), None)
        following = self._next_late()
        if following is not None and following.may_be_next is not None:
            _wake(following.may_be_next)

    @contextmanager
    def _writing_to(self, buffer: Buffer, moment: Moment) -> Iterator[None]:
        """Collect the events of a block in a buffer, with the time of the question."""
        before, self._ordered.buffer = self._ordered.buffer, buffer
        clock = self._clock
        try:
            # an answer that comes within the tick of its question needs no other time
            with nullcontext() if clock.moment is moment else clock.at(moment):
                yield
        finally:
            self._ordered.buffer = before

    async def _answer(self, question: Put, logger: OrderedLogger) -> Answer:
        self.open_questions += 1
        try:
            (answer,) = await self._answerers.answers_to([question], logger)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise

            # the run would mistake it for its own cancellation
            raise ReasonerError(
                "the reasoner raised CancelledError, though nobody had cancelled it"
            ) from error
        finally:
            self.open_questions -= 1
            if self._lacks_questions is not None and self.is_short:
                _wake(self._lacks_questions)

        return answer


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def still_waits(owner: object, answers: int) -> SimulationError:
    """Return the error for a step that keeps asking."""
    return SimulationError(
        f"the step of {owner!r} still waits after {answers} answers and messages in one "
        "tick: end it, and continue in the next"
    )


def _moved_to(moment: Moment, told: Buffer) -> Buffer:
    """Return events with another time."""
    return [(moment, level, event, keys) for _, level, event, keys in told]


Event = Mapping[str, Any]
"""One line of a run's log."""


class Decider(Protocol):
    """Anything that can decide the open questions of a run, such as a `BaseReasoner`.

    If it has a ``concurrency`` above 0, it is asked that many questions at the same time.
    """

    async def decide_many(
        self, questions: Sequence[Question], *, logger: EventLogger | None = None
    ) -> list[Decision]:
        """Answer several questions, in their order."""


@runtime_checkable
class Remembering(Protocol):
    """A reasoner whose answers depend on its earlier ones, such as one that replays a log."""

    def remember(self, answer: Event) -> None:
        """Store a decision or a text from before the run was interrupted."""
