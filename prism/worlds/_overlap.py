"""Ticks of a world whose agents continue while others wait for an answer.

Up to its first ``await``, a step runs in the order of the turns, which is the same in all ticks of
a round. The rest runs when the answer arrives, when other agents may already be in the next tick,
so it may only change its own agent. No step may look at another agent, which may still wait for its
answer. An agent that waits takes no turn until its step has ended. As others may see what the turn
does to the world, they wait as well. Only if all are ``"alone"``, they do not: its turn is put off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from prism.errors import SimulationError
from prism.statechart import Decision
from prism.telemetry._loggers import EventLogger
from prism.worlds._agent import Agent, Asked, Message, Running, Waited, continued, refuse_unawaited
from prism.worlds._asking import Answer, Answerers, Asking, AsTheyCome, Put
from prism.worlds._fields import derived, slot_of
from prism.worlds._guest import Proxy
from prism.worlds._host import RunHost
from prism.worlds._kinds import Step
from prism.worlds._phase import OVERLAP_RULE, Phase
from prism.worlds._ticks import Ticks
from prism.worlds._turns import InTurn
from prism.worlds._world import World


class OverlapTicks(Ticks):
    """Runs the ticks of a world whose agents continue while others wait for an answer.

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
        asking: Asking,
    ) -> None:
        super().__init__(world, host, answerers, logger)
        # if agents continue while others wait, a policy is asked like any reasoner
        host.draws = None
        asking.apply = self._answered
        self._asking = asking
        self._running: dict[int, Waited] = {}
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

    @property
    def open_questions(self) -> int:
        """The number of questions without an answer. Other threads may read it."""
        return self._asking.open_questions

    @open_questions.setter
    def open_questions(self, number: int) -> None:
        """Accept the initial 0; the asking keeps its own count."""

    async def run(self) -> None:
        """Give every agent its turn, and ask their questions."""
        asking, host = self._asking, self._host
        host.enter(Phase.STEPPING)
        if self._is_alone:
            host.enter(Phase.GOING_ON)
        try:
            with host.explaining():
                # other tasks may run meanwhile, whose random numbers are not the world's
                guarding = nullcontext() if isinstance(asking, AsTheyCome) else host.guarding()
                with guarding:
                    await self._turns_of_all()
        finally:
            host.acting = None
            host.enter(Phase.WAITING)

        await asking.end_tick()

    async def last_steps(self, step: Callable[[Any, Any], Any]) -> None:
        """Let every agent take a step at the end of a round, and answer its questions.

        Args:
            step: The step.
        """
        self._host.enter(Phase.STEPPING)
        for agent in self._host.agents:
            question = self._step(agent, step)
            if question is not None:
                await self._asking.ask(agent, question)

        await self._asking.end_tick()
        await self._asking.end_round()
        self._host.enter(Phase.ENDING)

    async def end_round(self) -> None:
        """Wait for every open question."""
        await self._asking.end_round()

    async def close(self) -> None:
        """Cancel all open requests; nothing is left running."""
        await self._asking.close()
        for left in self._running.values():
            left.running.close()
        self._running.clear()

    async def _turns_of_all(self) -> None:
        asking, open_turns, proxied = self._asking, self._asking.open_turns, self._proxied
        is_alone = self._is_alone
        # an agent changes only itself, so no agent gets a turn during another's
        self.roster.begin_tick(self._host.ticks, self._host.round)
        for agent in self._in_order_of_places():
            if is_alone and id(agent) in open_turns:
                asking.put_off(agent, partial(self._late_turn, agent))
                continue

            # others may see what this turn does, so they wait as well
            while open_turns and id(agent) in open_turns:
                await asking.settle_next()

            step = proxied.get(agent._kind) or self._in_turn.step_of(agent)
            question = None if step is None else self._step(agent, step)
            if question is not None:
                await asking.ask(agent, question)

    def _in_order_of_places(self) -> Iterable[Any]:
        """Return the agents that may have something to do, in their order."""
        host = self._host
        if self._proxied:
            return self._all_in_order()

        # agents that wait for an answer have their turn once they have continued
        away = host.gone | host.asleep
        waiting = [turn.agent for turn in self._asking.open_turns.values()]
        ordered = self._in_turn.agents(waiting)
        return (each for each in ordered if each._place not in away) if away else ordered

    def _all_in_order(self) -> Iterable[Any]:
        """Return all agents that are present and awake, in one order per round."""
        host, place_of = self._host, self.roster.place_of
        if self._ordered_for != host.round:
            self._ordered_for = host.round
            self._ordered = sorted(host.agents, key=lambda each: (place_of(each), each.agent_id))

        away = host.gone | host.asleep
        if not away:
            return self._ordered

        return [each for each in self._ordered if each._place not in away]

    def _step(self, agent: Any, step: Any) -> Put | None:
        """Let an agent take a step, and return its question, if any."""
        host = self._host
        host.acting = agent
        running = step(self._world, agent)
        if running is not None:
            self._advance(agent, running, None)
        elif host.unawaited is not None:
            refuse_unawaited(host)

        host.acting = None
        return self._asked_next() if self._waiting else None

    def _answered(self, question: Put, answer: Answer) -> Put | None:
        """Let a step continue with its answer, and return its next question, if any."""
        self.counts.add((answer,))
        waiting = self._running.pop(id(question))
        if isinstance(waiting.owner, Proxy):
            self._go_on_with(waiting, answer)
            return self._asked_next() if self._waiting else None

        with self._going_on(waiting.owner):
            self._advance_with(waiting, answer)

        return self._asked_next()

    def _late_turn(self, agent: Any) -> Put | None:
        """Let an agent take an earlier tick's turn, and return its question, if any."""
        with self._going_on(agent):
            step = self._in_turn.step_of(agent)
            return None if step is None else self._step(agent, step)

    @contextmanager
    def _going_on(self, agent: Any) -> Iterator[None]:
        """Let an agent act in an earlier tick inside the block."""
        host = self._host
        in_its_tick = self.roster.in_tick(host.ticks)
        going_on = self._acting(agent)
        with going_on, host.explaining(), in_its_tick, host.guarding():
            yield

    def _go_on_with(self, waiting: Waited, answer: Answer) -> None:
        """Continue the step of a proxy, the rest of which is not the user's code."""
        # without context managers, whose calls every answer would pay for
        host = self._host
        before = host.phase
        host.enter(Phase.STEPPING)
        host.acting = waiting.owner
        try:
            self._advance_with(waiting, answer)
        finally:
            host.acting = None
            host.enter(before)

    def _advance_with(self, waiting: Waited, answer: Answer) -> None:
        if isinstance(waiting, Asked) and isinstance(answer, Decision):
            waiting.decision = answer
            waiting.answer = answer.chosen
        else:
            waiting.answer = answer
        value = self._value_of(waiting)

        self._advance(waiting.owner, waiting.running, value)

    def _advance(self, owner: Any, running: Running, value: Any) -> None:
        """Continue a step until it waits or ends; no guest awaits the event loop here."""
        waited = continued(self._host, owner, running, value)
        if waited is not None:
            self._waiting.append(waited)

    def _asked_next(self) -> Put | None:
        """Return the question of the step that just continued."""
        if not self._waiting:
            return None

        waiting = self._waiting.pop()
        waiting.is_open = True
        question: Put | None = waiting.put()
        if question is None or waiting.agent is not waiting.owner:
            waiting.running.close()
            raise SimulationError(
                f"the step of {waiting.owner!r} waits for another agent: {OVERLAP_RULE}"
            )

        self._running[id(question)] = waiting
        return question

    @contextmanager
    def _acting(self, agent: Any) -> Iterator[None]:
        """Let a step that has its answer continue inside the block."""
        host = self._host
        with host.in_phase(Phase.GOING_ON):
            host.acting = agent
            try:
                yield
            finally:
                host.acting = None


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
        # `checked` is called, too
        _prism_calls=cls._prism_calls + 1,
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
