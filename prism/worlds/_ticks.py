"""A tick: the steps of the agents that have a turn, then waves of answers until none waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, cast

from prism.reasoner._recollection import stay_in_words
from prism.statechart import Decision, PolicyReasoner, Written
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT
from prism.telemetry.events import ANSWER_DISCARDED
from prism.telemetry.loggers import EventLogger, active_logger
from prism.worlds._agent import (
    WAITING,
    Asked,
    Receiving,
    Running,
    Waited,
    Writing,
    begin_streams,
    continued,
    refuse_unawaited,
)
from prism.worlds._asking import MOST_WAVES, Answerers, still_waits
from prism.worlds._guest import Guest
from prism.worlds._host import RunHost, last_record
from prism.worlds._phase import Phase
from prism.worlds._rates import ByRate
from prism.worlds._results import fallback_group
from prism.worlds._turns import Activation, Drawn, DrawnPair, InTurn, Roster
from prism.worlds._world import World, defines

Advance = Callable[[Any, Running, Any], None]


@dataclass(slots=True)
class Counts:
    """Counts of a round.

    Attributes:
        decisions_asked: Questions put to the reasoner.
        decisions_answered: Those that it answered itself; the others took the fallback.
        texts: Texts by their source, or ``declined``.
        fallbacks: Decisions that took the fallback, by the kind of reason and the server.
        fallback_examples: One reason of each kind, in full.
    """

    decisions_asked: int = 0
    decisions_answered: int = 0
    texts: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)
    fallback_examples: dict[str, str] = field(default_factory=dict)

    def add(self, answers: Iterable[Decision | Written]) -> None:
        """Count decisions and texts."""
        for answer in answers:
            if isinstance(answer, Written):
                self.texts["declined" if answer.was_declined else answer.source] += 1
                continue

            self.decisions_asked += 1
            if answer.source != "fallback":
                self.decisions_answered += 1
                continue

            host = None if answer.cost is None else answer.cost.host
            group, example = fallback_group(answer.reason, host)
            self.fallbacks[group] += 1
            # answers may come in any order
            known = self.fallback_examples.get(group, example)
            self.fallback_examples[group] = min(known, example)


class Ticks:
    """Runs the ticks of a world.

    Args:
        world: The world.
        host: Its run.
        answerers: The reasoner and the writer.
        logger: Where events go.

    Attributes:
        roster: The states of the agents.
        counts: The counts of this round.
        open_questions: Number of questions without an answer. Other threads may read it.
    """

    def __init__(
        self, world: World[Any], host: RunHost, answerers: Answerers, logger: EventLogger | None
    ) -> None:
        self.roster: Roster = Roster(host.agents, is_listed=world.order == "listed")
        self.counts: Counts = Counts()
        self.open_questions: int = 0
        self._world = world
        self._host = host
        self._answerers = answerers
        self._logger = logger
        self._waiting: list[Waited] = []
        self._elsewhere = Elsewhere()
        self._is_by_event = world.activation == "rate"
        self._has_beginning = defines(type(world), "tick_begins")
        self._has_end = defines(type(world), "tick_ends")
        self._activation = self._activated_by()
        host.roster = self.roster
        host.draws = answerers.policy

    def _activated_by(self) -> Activation:
        """Return how the world gives turns."""
        activation, roster, host = self._world.activation, self.roster, self._host
        if activation == "rate":
            return ByRate(roster, self._time_out, host)
        if activation == "all":
            return InTurn(roster, self._time_out)

        return (DrawnPair if activation == "pair" else Drawn)(roster, self._time_out, host)

    async def run(self) -> None:
        """Run one tick, and leave no task running."""
        host, world = self._host, self._world
        with host.explaining():
            try:
                host.enter(Phase.BEGINNING)
                self.roster.begin_tick(host.ticks, host.ticks)
                if self._has_beginning:
                    # otherwise it would follow the events of the tick
                    beginning = host.within_tick(0) if self._is_by_event else nullcontext()
                    with beginning:
                        world.tick_begins()

                for agents in self._activation.batches():
                    host.enter(Phase.STEPPING)
                    await self._take_turns(agents)
                    await self._waves()
                    if host.stopped is not None or (self._is_by_event and host.is_to_end()):
                        break

                host.enter(Phase.ENDING)
                host.acting = None
                self._finish()
                if self._has_end:
                    world.tick_ends()
            finally:
                host.enter(Phase.ENDING)
                self.roster.end_turns()
                self._elsewhere.close()
                for left in self._waiting:
                    left.running.close()
                self._waiting.clear()

        host.acting = None

    async def close(self) -> None:
        """Cancel open questions, and leave no task running."""

    async def _take_turns(self, agents: Iterable[Any]) -> None:
        if not self._host.has_guests:
            self._steps(agents)
            return

        # one after another, since an object of another class may await something that changes the
        # world
        for agent in agents:
            self._steps((agent,))
            await self._elsewhere.settle(self._advance)

    def _steps(self, agents: Iterable[Any]) -> None:
        host, world, step_of = self._host, self._world, self._activation.step_of
        is_in_turn, now = type(self._activation) is InTurn, self.roster.now
        takes = self._elsewhere.takes
        for agent in agents:
            # look up now, since an earlier agent may have changed this one's state; and here in the
            # usual case, since most turns are that
            is_usual = is_in_turn and agent._due > now
            step = agent._kind.steps.get(agent._state) if is_usual else step_of(agent)
            if step is None:
                continue

            host.acting = agent
            running = step(world, agent)
            if running is not None:
                # as `_advance`, without a call for every turn
                waited = continued(host, agent, running, None, takes)
                if waited is not None:
                    self._waiting.append(waited)
            elif host.unawaited is not None:
                refuse_unawaited(host, step)

    def _time_out(self, world: Any, agent: Any) -> Any:
        """Fire the time-out that is due; if no transition applies, run the step instead."""
        if agent._kind.is_ticked:
            # the step is that of the state in which the turn begins
            step = self._activation.own_step_of(agent)
            self._tick(agent)
            return None if step is None else step(world, agent)

        state = agent._state
        has_fired = agent._chart.fire(agent, TIMEOUT) is not None
        # it stays due after a transition to the same state, or if a guard blocks every transition
        self.roster.put_off(agent)
        if has_fired:
            self._host.count_timeout(state)
            return None

        step = self._activation.own_step_of(agent)

        return None if step is None else step(world, agent)

    def _tick(self, agent: Any) -> None:
        """Let a tick pass for an agent whose chart has timers, rates or eventless transitions."""
        chart, before = agent._chart, last_record(agent)
        if not chart.has_timers:
            return

        chart.let_pass(agent, agent.ticks_in_state, by_chance=not self._is_by_event)
        for record in takewhile(lambda each: each is not before, reversed(agent._state_history)):
            if record.trigger == TIMEOUT:
                self._host.count_timeout(record.from_state)

    def _finish(self) -> None:
        """Carry out what was deferred to the end of the tick."""

    def _advance(self, owner: Any, running: Running, value: Any) -> None:
        """Continue a step until it waits or ends."""
        waited = continued(self._host, owner, running, value, self._elsewhere.takes)
        if waited is not None:
            self._waiting.append(waited)

    async def _waves(self) -> None:
        for _ in range(MOST_WAVES):
            if not self._waiting:
                return

            wave, self._waiting = self._in_order(self._waiting), []
            try:
                await self._wave(wave)
            except BaseException:
                # steps that have continued are already closed, or wait
                for each in wave:
                    each.running.close()
                raise

        raise still_waits(self._waiting[0].owner, MOST_WAVES)

    async def _wave(self, wave: Sequence[Waited]) -> None:
        """Ask for all decisions and texts, then continue the steps in the order of the turns."""
        late = self._open(wave)
        policy = self._host.draws
        if policy is None:
            await self._ask(wave)
        else:
            self._draw(policy, wave)
            await self._ask([each for each in wave if type(each) is Writing])

        await self._go_on(wave, late)

    def _draw(self, policy: PolicyReasoner, wave: Sequence[Waited]) -> None:
        """Have the policy draw all decisions of a wave."""
        self._host.acting = None
        asked = [each for each in wave if type(each) is Asked and each.is_open]
        # who asks for another object has that draw from its own stream
        begin_streams([each.agent._decision_random for each in asked if each.question is None])
        drawn = policy.choose([each.question or each for each in asked], self._logger)
        for each, chosen in zip(asked, drawn, strict=True):
            each.answer = chosen

        self.counts.decisions_asked += len(asked)
        self.counts.decisions_answered += len(asked)

    async def _go_on(self, wave: Sequence[Waited], late: set[int]) -> None:
        # agents that wait for a message that nobody will send get None
        is_quiet = all(type(each) is Receiving and not each.agent.inbox for each in wave)
        host, elsewhere = self._host, self._elsewhere

        for each in wave:
            stays = type(each) is Receiving and not (is_quiet or each.agent.inbox)
            if stays or id(each) in late:
                self._waiting.append(each)
                continue

            host.acting = each.owner
            self._advance(each.owner, each.running, self._value_of(each))
            if elsewhere.is_open:
                await elsewhere.settle(self._advance)

    def _value_of(self, waited: Waited) -> Any:
        """Carry out a decision, and return the value with which the step continues."""
        if type(waited) is Asked and waited.is_open:
            return self._apply(waited, waited.answer)

        return self._wrote(waited) if type(waited) is Writing else waited.answer

    def _open(self, wave: Sequence[Waited]) -> set[int]:
        """Choose the questions of a wave, one per agent, and return those that must wait.

        A second question to an agent waits for the first one's answer. If the agent has moved by
        then, it is not asked at all.
        """
        taken: set[int] = set()
        late: set[int] = set()
        for each in wave:
            if type(each) is not Asked:
                continue
            if id(each.agent) in taken:
                each.was_late = True
                late.add(id(each))
                continue

            each.is_open = True
            if each.was_late:
                self._host.acting = each.owner
                each.answer = None if _has_moved(each) else self._host.settle(each)
                each.is_open = each.answer is each

            if each.is_open:
                taken.add(id(each.agent))

        return late

    async def _ask(self, wave: Sequence[Waited]) -> None:
        """Ask the reasoner or the writer, and store each answer with its question."""
        asked = {id(each): put for each in wave if (put := each.put()) is not None}
        if not asked:
            return

        self.open_questions = len(asked)
        # the agent whose step continued last is unrelated to the one that decides now
        self._host.acting = None
        self._host.enter(Phase.WAITING)
        try:
            answers = await self._answerers.answers_to([*asked.values()], self._logger)
        finally:
            self.open_questions = 0
            self._host.enter(Phase.STEPPING)

        self.counts.add(answers)
        told = iter(answers)
        for each in wave:
            if id(each) in asked:
                each.take(next(told))

    def _apply(self, asked: Asked, chosen: Any) -> Any:
        """Carry out an answer, and return the state, or None if the agent moved meanwhile."""
        host, agent = self._host, asked.agent
        if asked.since is not WAITING and _has_moved(asked):
            self._discard(asked, chosen)
            return None

        if host.remembers:
            self._remember_staying(asked, chosen)

        subject = agent._subject if host.has_proxies else agent
        return agent._chart.fire_to(
            subject, asked.trigger, chosen, asked.context, asked_in=asked.state
        )

    def _remember_staying(self, asked: Asked, chosen: Any) -> None:
        if chosen == asked.state:
            stays = stay_in_words(asked.state, asked.trigger, asked.context)
            self._host.remember(asked.agent, stays)

    def _wrote(self, writing: Writing) -> Written:
        """Remember an agent's text, if prompts contain what agents remember."""
        written: Written = writing.answer
        if isinstance(written.value, str):
            self._host.remember(writing.agent, f'You wrote: "{written.value}"')

        return written

    def _discard(self, asked: Asked, chosen: Any) -> None:
        # two agents may address the same agent in a tick, which deserves no warning
        logger, agent = active_logger(self._logger), asked.agent
        if logger is None:
            return

        logger.warning(
            ANSWER_DISCARDED,
            chart=agent._chart.name,
            agent_id=agent.agent_id,
            trigger=asked.trigger,
            asked_in=state_text(asked.state),
            now_in=state_text(agent._state),
            chosen=state_text(chosen),
            reason="moved",
        )

    def _in_order(self, waiting: list[Waited]) -> list[Waited]:
        """Return the waiting agents in the order of their turns, in which they continue."""
        return waiting


def _has_moved(asked: Asked) -> bool:
    """Return whether an agent has moved since it was asked, even if it has returned."""
    agent, since = asked.agent, asked.since
    # as `last_record`, without a call for every answer
    history = agent._state_history
    if (history[-1] if history else None) is since:
        return False

    return bool(agent._chart.has_moved(agent, asked.state, asked.trigger, history, since))


class Elsewhere:
    """The turn of a guest that awaits something of the event loop, such as a process.

    The run waits for it before any other agent continues, so events and changes do not depend on
    how long it takes.

    Attributes:
        is_open: Whether there is one.
    """

    def __init__(self) -> None:
        self.is_open: bool = False
        self._turn: tuple[Any, Running, Any] | None = None

    def takes(self, owner: Any, running: Running, wanted: Any) -> bool:
        """Record what a turn awaits, and return whether this class waits for it."""
        # asyncio.sleep(0) awaits None
        if not isinstance(owner, Guest) or not (wanted is None or asyncio.isfuture(wanted)):
            return False

        self._turn, self.is_open = (owner, running, wanted), True
        return True

    async def settle(self, advance: Advance) -> None:
        """Wait, and continue the turn until it ends or waits for the run."""
        while self._turn is not None:
            owner, running, wanted = self._turn
            try:
                await (asyncio.sleep(0) if wanted is None else asyncio.wait([wanted]))
            except asyncio.CancelledError as error:
                # meant for asyncio.timeout inside the turn, or for the run: the turn can tell
                self._turn, running = None, cast(Running, _Cancelled(running, error))
            else:
                self._turn = None

            advance(owner, running, None)

        self.is_open = False

    def close(self) -> None:
        """Close the turn, if there is one."""
        if self._turn is not None:
            self._turn[1].close()
        self._turn, self.is_open = None, False


class _Cancelled:
    """A turn into which a cancellation is thrown when it continues."""

    def __init__(self, running: Running, error: BaseException) -> None:
        self._running = running
        self._error: BaseException | None = error

    def send(self, value: Any) -> Any:
        error, self._error = self._error, None
        return self._running.send(value) if error is None else self._running.throw(error)

    def close(self) -> None:
        self._running.close()
