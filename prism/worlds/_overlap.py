"""Ticks of a world whose agents continue while others wait for an answer.

Up to its first ``await``, a step runs in the order of the turns, which is the same in all ticks of
a round. The rest runs when the answer arrives, when other agents may already be in the next tick,
so it may only change its own agent. No step may look at another agent, which may still wait for its
answer. An agent that waits takes no turn until its step has ended. As others may see what the turn
does to the world, they wait as well. Only if all are ``"alone"``, they do not: its turn is put off.
A world that can tell which turns depend on others, such as the feed, has those put off, too, while
slots would otherwise be idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from prism.errors import SimulationError
from prism.telemetry.loggers import EventLogger
from prism.worlds._agent import (
    Agent,
    Asked,
    Message,
    Receiving,
    Running,
    Waited,
    continued,
    place_of_step,
    refuse_unawaited,
)
from prism.worlds._asking import Answer, Answerers, AsTheyCome, Put
from prism.worlds._fields import derived, slot_of
from prism.worlds._guest import Proxy
from prism.worlds._host import RunHost
from prism.worlds._kinds import Step
from prism.worlds._phase import OVERLAP_RULE, Phase
from prism.worlds._ticks import Ticks
from prism.worlds._turns import InTurn
from prism.worlds._world import World

TICKS_AHEAD = 2
"""Most ticks by which an agent's turn may be ahead of one that is still to be taken."""


class _Over:
    """Stands in for a step that is over, though its agent still waits for an answer."""

    def close(self) -> None:
        """There is nothing to close."""


_OVER: Any = _Over()


class OverlapTicks(Ticks):
    """Runs the ticks of an overlap world whose answers come at once: after the turns of all.

    Args:
        world: The world.
        host: Its run.
        answerers: The reasoner and the writer.
        logger: Where events go.
    """

    def __init__(
        self, world: World[Any], host: RunHost, answerers: Answerers, logger: EventLogger | None
    ) -> None:
        super().__init__(world, host, answerers, logger)
        self._in_turn = InTurn(self.roster, self._time_out)
        # the object that an agent represents has one step, whatever its state
        self._proxied: dict[Any, Step] = {
            kind: next(iter(kind.steps.values()))
            for kind in self.roster.kinds
            if issubclass(kind.cls, Proxy)
        }
        # what the steps of proxies do is seen by others
        self._is_alone = world.overlap == "alone" and not self._proxied
        self._ordered_for = -1
        self._ordered: list[Any] = []
        host.sends = _refuse_message
        # the steps of proxies are written by those who know the objects
        own = [kind for kind in self.roster.kinds if not issubclass(kind.cls, Proxy)]
        guarded = {kind: _guarded(kind.cls) for kind in own}
        for agent in host.agents:
            agent.__class__ = guarded.get(agent._kind, agent.__class__)

    async def run(self) -> None:
        """Give every agent its turn, then ask their questions."""
        with self._giving_turns():
            self._turns_of_all()

        await self._settle()

    async def last_steps(self, step: Step) -> None:
        """Let every agent take a step at the end of a round, in the order of that round.

        Args:
            step: The step.
        """
        self._host.enter(Phase.STEPPING)
        for agent in self._everybody():
            self._step(agent, step)

        await self._settle()
        self._host.enter(Phase.ENDING)

    async def end_round(self) -> None:
        """Wait for every open question."""

    async def close(self) -> None:
        """Cancel open questions, and leave no step running."""
        for left in self._waiting:
            left.running.close()
        self._waiting.clear()

    @contextmanager
    def _giving_turns(self) -> Iterator[None]:
        """Let agents take their turns inside the block."""
        host = self._host
        host.enter(Phase.STEPPING)
        if self._is_alone:
            host.enter(Phase.GOING_ON)
        # an agent changes only itself, so no agent gets a turn during another's
        self.roster.begin_tick(host.ticks, host.round)
        try:
            with host.explaining():
                yield
        finally:
            host.acting = None
            host.enter(Phase.WAITING)

    def _turns_of_all(self) -> None:
        host, world = self._host, self._world
        proxied, step_of = self._proxied, self._in_turn.step_of
        for agent in self._in_order_of_places():
            step = proxied.get(agent._kind) or step_of(agent)
            if step is None:
                continue

            # as `_step`, without a call for every turn
            host.acting = agent
            running = step(world, agent)
            if type(running) is Asked and running.then is not None:
                self._wait(agent, running)
            elif running is not None:
                self._advance(agent, running, None)
            elif host.unawaited is not None:
                refuse_unawaited(host, step)

    def _in_order_of_places(self, waiting: Iterable[Any] = ()) -> Iterable[Any]:
        """Return the agents that may have something to do, in their order.

        Args:
            waiting: Agents that wait for an answer, and have their turn once they have continued.
        """
        host = self._host
        if self._proxied:
            return self._all_in_order()

        away = host.gone | host.asleep
        ordered = self._in_turn.agents(waiting)
        return (each for each in ordered if each._place not in away) if away else ordered

    def _everybody(self) -> Sequence[Any]:
        """Return all agents, in one order per round."""
        host, place_of = self._host, self.roster.place_of
        if self._ordered_for != host.round:
            self._ordered_for = host.round
            self._ordered = sorted(host.agents, key=lambda each: (place_of(each), each.agent_id))

        return self._ordered

    def _all_in_order(self) -> Iterable[Any]:
        """Return all agents that are present and awake, in one order per round."""
        host, everybody = self._host, self._everybody()
        away = host.gone | host.asleep
        if not away:
            return everybody

        return [each for each in everybody if each._place not in away]

    def _step(self, agent: Any, step: Step) -> None:
        """Let an agent take a step until it waits or ends."""
        host = self._host
        host.acting = agent
        running = step(self._world, agent)
        if type(running) is Asked and running.then is not None:
            self._wait(agent, running)
        elif running is not None:
            self._advance(agent, running, None)
        elif host.unawaited is not None:
            refuse_unawaited(host, step)

    def _advance(self, owner: Any, running: Running, value: Any) -> None:
        """Continue a step until it waits or ends; no guest awaits the event loop here."""
        waited = continued(self._host, owner, running, value)
        if waited is None:
            return
        if waited.agent is not owner or isinstance(waited, Receiving):
            where = place_of_step(running)
            running.close()
            raise SimulationError(
                f"{where}the step of {owner!r} still waits for another agent: {OVERLAP_RULE}"
            )

        self._waiting.append(waited)

    def _wait(self, agent: Any, asked: Asked) -> None:
        """Let an agent wait though its step is over, which takes a third of a coroutine's time."""
        asked.owner, asked.running = agent, _OVER
        self._waiting.append(asked)

    async def _settle(self) -> None:
        """Ask all that is open, and let the steps continue, until none waits."""
        host = self._host
        host.enter(Phase.STEPPING)
        try:
            await self._waves()
        finally:
            host.acting = None
            host.enter(Phase.WAITING)

    def _open(self, wave: Sequence[Waited]) -> set[int]:
        # an agent asks only for itself, so nobody is asked twice
        for each in wave:
            each.is_open = True

        return set()

    async def _go_on(self, wave: Sequence[Waited], _late: set[int]) -> None:
        self._continue(wave)

    def _continue(self, wave: Iterable[Waited]) -> None:
        """Carry out answers, and let the steps continue with them."""
        host, value_of = self._host, self._value_of
        for each in wave:
            host.acting = owner = each.owner
            if type(each) is Asked and each.then is not None:
                value_of(each)
                each.then(each)
                continue
            if isinstance(owner, Proxy):
                # not the user's code: without context managers, for which every answer would pay
                self._advance(owner, each.running, value_of(each))
                continue

            with self._going_on(owner):
                self._advance(owner, each.running, value_of(each))

    @contextmanager
    def _going_on(self, agent: Any) -> Iterator[None]:
        """Let the step of an agent continue inside the block, with what its own tick was."""
        host = self._host
        with host.in_phase(Phase.GOING_ON), self.roster.in_tick(host.ticks):
            host.acting = agent
            try:
                with host.explaining():
                    yield
            finally:
                host.acting = None


class OpenTicks(OverlapTicks):
    """Runs the ticks of an overlap world whose agents continue while others wait for an answer.

    Args:
        world: The world.
        host: Its run.
        answerers: The reasoner and the writer.
        logger: Where events go.
        asking: Handles open questions.
    """

    def __init__(
        self,
        world: World[Any],
        host: RunHost,
        answerers: Answerers,
        logger: EventLogger | None,
        asking: AsTheyCome,
    ) -> None:
        super().__init__(world, host, answerers, logger)
        # a policy beside a writer is asked like any reasoner
        host.draws = None
        asking.apply = self._answered
        self._asking = asking
        self._running: dict[int, Waited] = {}
        asking.depends = world._prism_depends()
        self._goes_ahead = asking.depends is not None
        if self._goes_ahead:
            asking.most_ticks = 2 + TICKS_AHEAD

    @property
    def open_questions(self) -> int:
        """The number of questions without an answer. Other threads may read it."""
        return self._asking.open_questions

    @open_questions.setter
    def open_questions(self, number: int) -> None:
        """Accept the initial 0; the asking keeps its own count."""

    async def run(self) -> None:
        """Give every agent its turn, and ask its question at once."""
        with self._giving_turns():
            await self._turns_while_others_wait()

        await self._asking.end_tick()

    async def last_steps(self, step: Step) -> None:
        """Let every agent take a step at the end of a round, in the order of that round.

        Args:
            step: The step.
        """
        self._host.enter(Phase.STEPPING)
        for agent in self._everybody():
            await self._take_turn(agent, step)

        await self._asking.end_tick()
        await self._asking.end_round()
        self._host.enter(Phase.ENDING)

    async def end_round(self) -> None:
        """Wait for every open question."""
        await self._asking.end_round()

    async def close(self) -> None:
        """Cancel all open requests; nothing is left running."""
        await self._asking.close()
        await super().close()
        for left in self._running.values():
            left.running.close()
        self._running.clear()

    async def _turns_while_others_wait(self) -> None:
        asking, open_turns, proxied = self._asking, self._asking.open_turns, self._proxied
        waiting = [turn.agent for turn in open_turns.values()]
        for agent in self._in_order_of_places(waiting):
            if self._is_alone and id(agent) in open_turns:
                asking.put_off(agent, partial(self._late_turn, agent))
                continue
            if self._goes_ahead and not await self._is_free(agent):
                asking.put_off(agent, partial(self._late_turn, agent))
                continue

            # others may see what this turn does, so they wait as well
            while id(agent) in open_turns:
                await asking.settle_next()

            step = proxied.get(agent._kind) or self._in_turn.step_of(agent)
            if step is not None:
                await self._take_turn(agent, step)

    async def _is_free(self, agent: Any) -> bool:
        """Wait until an agent's turn can be taken, or slots would be idle if all waited for it.

        Returns:
            Whether it can be taken.
        """
        asking = self._asking
        while id(agent) in asking.open_turns or asking.must_wait(agent):
            if asking.is_short:
                return False
            await asking.settle_next_or_lack()

        return True

    async def _take_turn(self, agent: Any, step: Step) -> None:
        self._step(agent, step)
        self._host.acting = None
        question = self._asked_next()
        if question is not None:
            await self._asking.ask(agent, question)

    def _late_turn(self, agent: Any) -> Put | None:
        """Let an agent take an earlier tick's turn, and return its question, if any."""
        proxied = self._proxied.get(agent._kind)
        if proxied is not None:
            with self._host.in_phase(Phase.STEPPING), self._host.explaining():
                self._step(agent, proxied)
            self._host.acting = None
            return self._asked_next()

        with self._going_on(agent):
            step = self._in_turn.step_of(agent)
            if step is not None:
                self._step(agent, step)

        return self._asked_next()

    def _answered(self, question: Put, answer: Answer) -> Put | None:
        """Let a step continue with its answer, and return its next question, if any."""
        self.counts.add((answer,))
        waited = self._running.pop(id(question))
        waited.take(answer)
        with self._host.in_phase(Phase.STEPPING):
            self._continue([waited])

        return self._asked_next()

    def _asked_next(self) -> Put | None:
        """Return the question of the step that just took its turn or continued."""
        if not self._waiting:
            return None

        waited = self._waiting.pop()
        waited.is_open = True
        question: Put = waited.put()
        self._running[id(question)] = waited

        return question


def _refuse_message(message: Message, to: Any) -> None:
    raise SimulationError(
        f"agent {message.sender.agent_id!r} sends {to.agent_id!r} a message: {OVERLAP_RULE}"
    )


def _guarded(cls: type[Agent]) -> type:
    """Return a class of the same agents that refuses access by other agents' steps."""

    def guard(name: str) -> property:
        slot = slot_of(cls, name)

        def read(self: Any) -> Any:
            _require_own(self, name)
            return slot.__get__(self)

        def write(self: Any, value: Any) -> None:
            _require_own(self, name)
            slot.__set__(self, value)

        return property(read, write)

    def state_of(self: Any) -> Any:
        _require_own(self, "state")
        return self._state

    def own_only(name: str) -> Callable[..., Any]:
        method = getattr(cls, name)

        def checked(self: Any, *arguments: Any, **options: Any) -> Any:
            _require_own(self, name)
            return method(self, *arguments, **options)

        return checked

    guarded: type = derived(
        cls,
        state=property(state_of),
        **{name: own_only(name) for name in ("fire", "decide", "write", "receive")},
        **{name: guard(name) for name in cls.fields if name not in Agent.fields},
    )
    return guarded


def _require_own(agent: Any, name: str) -> None:
    acting = agent._host.acting
    if acting is not None and acting is not agent:
        raise SimulationError(
            f"the step of {acting.agent_id!r} looks at {name} of {agent.agent_id!r}: {OVERLAP_RULE}"
        )
