"""Other ways to give turns: events at rates in continuous time, and agents ahead of each other."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from itertools import accumulate
from math import inf, log1p
from typing import Any

from prism.errors import SimulationError
from prism.randomness import RandomStream, index_at, total_of
from prism.runlog.writer import Moment
from prism.statechart.memory import plain_number
from prism.statechart.states import state_text
from prism.worlds._events import UNDER_WAY, Turn
from prism.worlds._turns import Turns
from prism.worlds._waves import outside, wave
from prism.worlds.decisions import Receiving
from prism.worlds.kinds import Channel

_MANY = 100
"""Agents for which a function may cost 3 times as much as a number does."""

_logger = logging.getLogger("prism.worlds")


async def events_at_rates(turns: Any, end: Moment) -> None:
    """Let events of one tick happen, one after another, each at its own time.

    This is the direct method (Gillespie 1977): waiting times are exponential with the sum of all
    rates, and each event is chosen with a probability proportional to its rate. Such times have no
    memory, so it does not matter that a tick ends before the next event. Rates that are functions
    are evaluated after every event for all agents, or, with a largest rate, for the chosen one, so
    they are exact whatever they depend on.

    The clock stays where the run is stopped, and otherwise goes to the end of the tick.
    """
    # time-outs that are due
    await turns.give()
    turns.end_if_over()
    population = turns.population
    members = population.members
    stream = RandomStream(turns.seed, "turn", "", f"{turns.world.round}.{end.tick}")
    part, ticks = 0.0, turns.ticks_per_round
    while turns.stopped is None:
        channels = [each for kind in population.kinds.values() for each in kind.channels]
        totals = [_total(turns, channel, members.of(channel)) for channel in channels]
        weights = [weight for weight, _ in totals]
        total = total_of(weights)
        if not total:
            break
        part -= log1p(-stream.random()) / total * ticks
        if part >= 1:
            break

        number = index_at(stream.random(), weights)
        channel, (_, sums) = channels[number], totals[number]
        agents = members.of(channel)
        if sums:
            index = bisect_right(sums, stream.random() * sums[-1])
            agent = agents[min(index, len(agents) - 1)]
        else:
            agent = agents[stream.index(len(agents))]
            # thinning (Lewis and Shedler 1979): one rate is evaluated, not those of all agents
            if channel.most is not None:
                rate = _checked(turns, channel, channel.rate(turns.world, agent), agent)
                if stream.random() * channel.most >= rate:
                    continue
        go_to(turns, end, part)
        await turns.happen(agent, channel.step)
        turns.end_if_over()
    if turns.stopped is None:
        go_to(turns, end, 1.0)


def go_to(turns: Any, end: Moment, part: float) -> None:
    """Let the clock show a time within a tick, of which a part has passed."""
    left = turns.clock.seconds_per_tick * (1 - part)
    turns.clock.show(Moment(end.time - timedelta(seconds=left), end.round, end.tick))
    turns.part_of_tick = part


def _total(turns: Any, channel: Channel, agents: Sequence[Any]) -> tuple[float, list[float]]:
    """Return the total rate of an event for agents, and its sums up to each if they differ."""
    world, rate = turns.world, channel.rate
    if isinstance(rate, str):
        rate = getattr(world, rate)
    if channel.most is not None:
        return channel.most * len(agents), []
    if not callable(rate):
        return _checked(turns, channel, rate) * len(agents), []
    if len(agents) > _MANY and not channel.is_reported:
        channel.is_reported = True
        _logger.warning(
            "%s: its rate is a function, which is called for each of %d agents after every event; "
            "most=, the largest rate, in @during(..., rate=..., most=...) spares all calls but one",
            *(_name_of(turns, channel), len(agents)),
        )
    rates = [_checked(turns, channel, rate(world, agent), agent) for agent in agents]
    sums = [*accumulate(rates)]
    return (sums[-1] if sums else 0.0), sums


def _checked(turns: Any, channel: Channel, rate: Any, agent: Any = None) -> float:
    """Return a rate.

    Raises:
        SimulationError: If it is no number from 0 to the largest.
    """
    most = inf if channel.most is None else channel.most
    number = plain_number(rate)
    if isinstance(number, (int, float)) and 0 <= number <= most and number < inf:
        return number

    whose = f" of {agent.agent_id!r}" if agent is not None else ""
    raise SimulationError(
        f"{_name_of(turns, channel)}: the rate{whose} in {state_text(channel.state)!r} must be a "
        f"number from 0 to {most}, got {rate!r}"
    )


def _name_of(turns: Any, channel: Channel) -> str:
    name = getattr(channel.step, "__name__", "an event of the chart")
    return f"{type(turns.world).__name__}.{name}"


# Agents ahead of each other


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

    async def round(self) -> None:
        """Run the ticks of a round. The events are logged in the order of the turns."""
        agents = self.population.everybody()
        most = max(8 * self.answers.concurrency, 4 * len(agents))
        last: dict[Any, asyncio.Task[None]] = {}
        queue: deque[tuple[Turn, asyncio.Task[None]]] = deque()

        async def write_next() -> None:
            turn, task = queue.popleft()
            await task
            self.events.write(turn)

        try:
            for _ in range(self.ticks_per_round):
                self.clock.advance()
                self.begin_tick()
                for _, agent in self.in_order(agents):
                    turn = Turn(agent, self.now, self.clock.moment)
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
        first = await outside(self, self.take(turn.agent))
        waiting = [] if first is None else [first]
        while waiting:
            ((agent, running, waits),) = waiting
            if type(waits) is Receiving or waits.agent is not agent:
                running.close()
                raise SimulationError(
                    f"the step of {agent!r} waits for another agent, in an independent world"
                )
            waiting = await wave(self, waiting)
