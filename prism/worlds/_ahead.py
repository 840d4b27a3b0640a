"""Agents ahead of each other: a task for each turn, which waits for the turns it depends on."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from prism.errors import SimulationError
from prism.runlog._writer import Moment
from prism.worlds._decisions import Asked, Receiving, ask
from prism.worlds._events import UNDER_WAY, Turn
from prism.worlds._turns import Turns
from prism.worlds._waves import advance, outside, value_of


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

    @property
    def moment(self) -> Moment:
        """The time of the turn whose task is running."""
        turn = UNDER_WAY.get()
        return super().moment if turn is None else turn.moment

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
            self.end_tick()
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
        waiting = await outside(self, self.take(agent))
        while waiting is not None:
            _, running, waits = waiting
            if type(waits) is Receiving or waits.agent is not agent:
                running.close()
                raise SimulationError(
                    f"the step of {agent!r} waits for another agent, in an independent world"
                )
            await (ask(self, [waits], ()) if type(waits) is Asked else ask(self, (), [waits]))
            waiting = await outside(self, advance(self, agent, running, value_of(self, waits)))
