"""Agents ahead of each other: a task for each turn, which waits for the turns it depends on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any

from prism.errors import SimulationError
from prism.runlog import SimulatedClock
from prism.runlog._writer import Moment
from prism.telemetry.instruments import Level
from prism.telemetry.loggers import EventLogger, report
from prism.worlds._turns import Turns
from prism.worlds._waiting import Asked, Receiving
from prism.worlds._waves import advance, ask, outside, value_of


@dataclass(slots=True)
class Turn:
    """A turn that is under way, and the events that it has logged.

    Args:
        agent: The agent.
        tick: The tick, counted from the beginning of the run.
        moment: Its time.
        lines: Level, name and keys of each event.
    """

    agent: Any
    tick: int
    moment: Moment
    lines: list[tuple[Level, str, dict[str, Any]]] = field(default_factory=list)


UNDER_WAY: ContextVar[Turn | None] = ContextVar("prism_turn", default=None)
"""The turn whose task is running, if agents are ahead of each other."""


class TurnLogger:
    """Passes events on, or keeps those of a turn until all earlier turns are over.

    Args:
        logger: Where the events go.
        clock: The run's clock.

    Attributes:
        relays: Marks a logger of this kind.
    """

    relays = True

    def __init__(self, logger: EventLogger | None, clock: SimulatedClock) -> None:
        self._logger, self._clock = logger, clock

    def write(self, turn: Turn) -> None:
        """Pass on the events of a turn."""
        with self._clock.at(turn.moment):
            for level, event, keys in turn.lines:
                report(self._logger, level, event, **keys)

    def _log(self, level: Level, event: str, /, **keys: Any) -> None:
        """Pass an event on, or keep it if a turn is under way."""
        turn = UNDER_WAY.get()
        if turn is None:
            report(self._logger, level, event, **keys)
        else:
            turn.lines.append((level, event, keys))

    info = partialmethod(_log, "info")
    warning = partialmethod(_log, "warning")
    error = partialmethod(_log, "error")


class TurnsAhead(Turns):
    """Gives turns to agents that depend on few others, each as soon as those have had theirs."""

    @property
    def now(self) -> int:
        """The tick of the turn whose task is running."""
        turn = UNDER_WAY.get()
        return self._begun if turn is None else turn.tick

    @now.setter
    def now(self, tick: int) -> None:
        self._begun = tick

    def seconds(self) -> float:
        """Return the time of the turn whose task is running."""
        turn = UNDER_WAY.get()
        return super().seconds() if turn is None else turn.moment.seconds

    async def round(self, moments: Sequence[Moment]) -> None:
        """Run the ticks of a round, whose times are given.

        The events are logged in the order of the turns.
        """
        logger: Any = self.events.logger
        agents = self.population.everybody()
        most = max(8 * self.answers.concurrency, 4 * len(agents))
        last: dict[Any, asyncio.Task[None]] = {}
        queue: deque[tuple[Turn, asyncio.Task[None]]] = deque()

        async def write_next() -> None:
            turn, task = queue.popleft()
            await task
            logger.write(turn)

        try:
            for moment in moments:
                self.clock.show(moment)
                self.begin_tick()
                for _, agent in self.in_order(agents):
                    turn = Turn(agent, self.now, moment)
                    depends = (agent, *self.world.depends(agent))
                    before = [last[each] for each in depends if each in last]
                    last[agent] = task = asyncio.create_task(self._whole(turn, before))
                    queue.append((turn, task))
                    while len(queue) > most or (queue and queue[0][1].done()):
                        await write_next()
            while queue:
                await write_next()
        finally:
            for _, task in queue:
                task.cancel()
            await asyncio.gather(*(task for _, task in queue), return_exceptions=True)

    async def _whole(self, turn: Turn, before: Sequence[asyncio.Task[None]]) -> None:
        """Take a whole turn, when those before it are over.

        Raises:
            SimulationError: If its step waits for another agent.
        """
        for each in before:
            await each
        UNDER_WAY.set(turn)
        agent = turn.agent
        waiting = None if agent.has_left else await outside(self, self.take(agent))
        while waiting is not None:
            _, running, waits = waiting
            if type(waits) is Receiving or waits.agent is not agent:
                running.close()
                raise SimulationError(
                    f"the step of {agent!r} waits for another agent, in an independent world"
                )
            await (ask(self, [waits], ()) if type(waits) is Asked else ask(self, (), [waits]))
            waiting = await outside(self, advance(self, agent, running, value_of(self, waits)))
