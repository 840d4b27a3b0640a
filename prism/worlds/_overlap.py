"""Ticks of a world whose agents go on while others wait for an answer.

Until its first ``await`` a step is carried out in the order of the agents. What comes after it is
carried out when the answer arrives, while other agents may already be in the next tick; so it may
change the agent alone whose step it is. No step may look at another agent, whose answer may be out.
An agent that waits takes no turn before its step has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prism.errors import SimulationError
from prism.telemetry._loggers import EventLogger
from prism.worlds._agent import Agent, Message, Writing
from prism.worlds._asking import Answer, Answerers, Asked, Asking, TickByTick
from prism.worlds._fields import Fields, slot_of
from prism.worlds._host import RunHost, drawing_nowhere_else
from prism.worlds._ticks import Ticks, Waiting, asked_by
from prism.worlds._world import World

_RULE = (
    "in an overlap world agents go on while others wait, so that a step looks at its own agent "
    "alone; leave  overlap = True  out, or let a hook such as round_begins do it"
)


class OverlapTicks(Ticks):
    """Runs the ticks of a world whose agents go on while others wait for an answer.

    Args:
        world: The world.
        host: Its run.
        answerers: Who decides and writes.
        logger: Where events go.
        asking: What is done with open questions.
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
        asking.apply = self._answered
        self._asking = asking
        self._running: dict[int, Waiting] = {}
        host.sends = _refuse_message
        guarded = {kind: _guarded(kind.cls) for kind in {agent._kind for agent in host.agents}}
        for agent in host.agents:
            agent.__class__ = guarded[agent._kind]

    @property
    def open_questions(self) -> int:
        """Number of questions without an answer; other threads may look."""
        return self._asking.open_questions

    @open_questions.setter
    def open_questions(self, number: int) -> None:
        """Take the 0 of the beginning; the asking counts itself."""

    async def run(self) -> None:
        """Give every agent its turn, and ask what they ask."""
        asking = self._asking
        if isinstance(asking, TickByTick):
            # nothing else goes on meanwhile whose random numbers could be taken for the world's
            with drawing_nowhere_else():
                await self._turns_of_all()
        else:
            await self._turns_of_all()

        await asking.end_tick()

    async def end_round(self) -> None:
        """Settle every question that is still open."""
        await self._asking.end_round()

    async def close(self) -> None:
        """Cancel what is still being asked; nothing is left running."""
        await self._asking.close()
        for left in self._running.values():
            left.running.close()
        self._running.clear()

    async def _turns_of_all(self) -> None:
        asking = self._asking
        for agent, steps, limits in self._turns:
            if agent is asking.next_agent:
                await asking.settle_next()

            question = self._turn(agent, steps, limits)
            if question is not None:
                await asking.ask(question)

    def _turn(self, agent: Any, steps: Any, limits: Any) -> Asked | None:
        """Let an agent take its turn; return what it asks, if it does."""
        ticks = agent._ticks_in_state = agent._ticks_in_state + 1
        if limits is not None and self._times_out(agent, limits, ticks):
            return None

        step = steps.get(agent._state)
        if step is None:
            return None

        with self._acting(agent):
            running = step(self._world, agent)
            if running is not None:
                self._advance(agent, running, None)
            elif self._host.unawaited is not None:
                self._refuse_unawaited()

        return self._asked_next()

    def _answered(self, question: Asked, answer: Answer) -> Asked | None:
        """Let a step go on with its answer; return what it asks next, if it does."""
        self.counts.add(answer)
        waiting = self._running.pop(id(question))
        host = self._host
        host.late = "after its first await a step changes its own agent alone: " + _RULE
        try:
            with self._acting(waiting.owner), drawing_nowhere_else():
                if isinstance(waiting.wanted, Writing):
                    value: Any = self._wrote(waiting.wanted, answer)
                else:
                    value = self._apply(waiting.wanted, answer)  # type: ignore[arg-type]
                self._advance(waiting.owner, waiting.running, value)
        finally:
            host.late = None

        return self._asked_next()

    def _asked_next(self) -> Asked | None:
        """Return what the step that has just gone on asks."""
        if not self._waiting:
            return None

        waiting = self._waiting.pop()
        waiting.is_open = True
        question = asked_by(waiting)
        if question is None or waiting.wanted.agent is not waiting.owner:
            waiting.running.close()
            raise SimulationError(f"the step of {waiting.owner!r} waits for another agent: {_RULE}")

        self._running[id(question)] = waiting
        return question

    @contextmanager
    def _acting(self, agent: Any) -> Iterator[None]:
        host = self._host
        host.acting, host.may_ask = agent, True
        try:
            with host.explaining():
                yield
        finally:
            host.acting, host.may_ask = None, False


def _refuse_message(message: Message, to: Any) -> None:
    raise SimulationError(
        f"agent {message.sender.agent_id!r} sends {to.agent_id!r} a message: {_RULE}"
    )


def _guarded(cls: type[Agent]) -> type:
    """Return a class of the same agents that no step of another agent can look at."""

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

    body = {
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "state": property(state_of),
        **{name: own_only(name) for name in ("fire", "decide", "write", "receive")},
        **{name: guard(name) for name in cls.fields if name not in Agent.fields},
    }

    return Fields(cls.__name__, (cls,), body)


def _require_own(agent: Any, name: str) -> None:
    acting = agent._host.acting
    if acting is not None and acting is not agent:
        raise SimulationError(
            f"the step of {acting.agent_id!r} looks at {name} of {agent.agent_id!r}: {_RULE}"
        )
