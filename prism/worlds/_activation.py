"""Other ways to give turns: events at rates in continuous time, and agents ahead of each other."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from itertools import accumulate
from math import inf, log1p
from typing import Any

from prism._numbers import plain_number
from prism.errors import SimulationError
from prism.randomness import RandomStream, index_at, total_of
from prism.runlog.writer import Moment
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge
from prism.worlds._agent import Agent
from prism.worlds._agent_set import leaves_in
from prism.worlds._events import UNDER_WAY, Turn
from prism.worlds._turns import Turns
from prism.worlds._waves import outside, wave
from prism.worlds.decisions import Answers, Receiving
from prism.worlds.kinds import Channel, is_by_rate, runs_ahead
from prism.worlds.world import World

_MANY = 100
"""Agents for which a function may cost 3 times as much as a number does."""

_logger = logging.getLogger("prism.worlds")


def turns_for(cls: type[World[Any]], answers: Answers) -> type[Turns]:
    """Return what gives turns to the agents of a world."""
    if is_by_rate(cls):
        return TurnsAtRates
    # without answers to wait for, nobody gets ahead
    return TurnsAhead if runs_ahead(cls) and answers.concurrency else Turns


class TurnsAtRates(Turns):
    """Lets the events of a tick happen, one after another, each at its own time.

    This is the direct method (Gillespie 1977): waiting times are exponential with the sum of all
    rates, and each event is chosen with a probability proportional to its rate. Such times have no
    memory, so it does not matter that a tick ends before the next event. Rates that are functions
    are evaluated after every event for all agents, or, with a largest rate, for the chosen one, so
    they are exact whatever they depend on.

    The clock stays where the run is stopped, and otherwise goes to the end of the tick.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # the agents of each kind in each state, and the index of each there
        self._inside: defaultdict[tuple[type, Any], list[Any]] = defaultdict(list)
        self._indices: dict[tuple[Any, Any], int] = {}

    def begin(self, agents: Sequence[Any]) -> None:
        """Count the states in an order that the list of agents does not decide."""
        super().begin(self.population.canonical(agents))

    def count(self, agent: Agent, change: int) -> None:
        """Count an agent that joins, 1, or leaves, -1."""
        super().count(agent, change)
        (self._enter if change > 0 else self._leave_state)(agent, agent.state)

    def moved(self, agent: Any, edge: Edge) -> int:
        """Note a transition that the engine has made; return the ticks of the whole stay."""
        dwell = super().moved(agent, edge)
        self._leave_state(agent, edge.from_state)
        self._enter(agent, edge.to_state)
        return dwell

    def _enter(self, agent: Any, state: Any) -> None:
        for leaf in leaves_in(state):
            agents = self._inside[type(agent), leaf]
            self._indices[agent, leaf] = len(agents)
            agents.append(agent)

    def _leave_state(self, agent: Any, state: Any) -> None:
        for leaf in leaves_in(state):
            agents = self._inside[type(agent), leaf]
            index, last = self._indices.pop((agent, leaf)), agents.pop()
            if last is not agent:
                agents[index] = last
                self._indices[last, leaf] = index

    def advance(self) -> None:
        """Let the clock stand at the beginning of the next tick."""
        super().advance()
        self._end = self.clock.moment
        self._go_to(0.0)

    async def tick(self) -> None:
        """Let the events of a tick happen."""
        # time-outs that are due
        await self.give()
        self.end_if_over()
        stream = RandomStream(self.seed, "turn", "", f"{self.world.round}.{self._end.tick}")
        part, ticks = 0.0, self.ticks_per_round
        while self.stopped is None:
            channels = [each for kind in self.population.kinds.values() for each in kind.channels]
            totals = [self._total(channel) for channel in channels]
            weights = [weight for weight, _ in totals]
            total = total_of(weights)
            if not total:
                break
            part -= log1p(-stream.random()) / total * ticks
            if part >= 1:
                break

            number = index_at(stream.random(), weights)
            channel, (_, sums) = channels[number], totals[number]
            agents = self._inside[channel.kind.cls, channel.state]
            if sums:
                index = bisect_right(sums, stream.random() * sums[-1])
                agent = agents[min(index, len(agents) - 1)]
            else:
                agent = agents[stream.index(len(agents))]
                # thinning (Lewis and Shedler 1979): one rate is evaluated, not those of all agents
                if channel.most is not None:
                    rate = self._checked(channel, channel.rate(self.world, agent), agent)
                    if stream.random() * channel.most >= rate:
                        continue
            self._go_to(part)
            await self.happen(agent, channel.step)
            self.end_if_over()
        if self.stopped is None:
            self._go_to(1.0)

    def _go_to(self, part: float) -> None:
        """Let the clock show a time within the tick, of which a part has passed."""
        end, left = self._end, self.clock.seconds_per_tick * (1 - part)
        self.clock.show(Moment(end.time - timedelta(seconds=left), end.round, end.tick))
        self.part_of_tick = part

    def _total(self, channel: Channel) -> tuple[float, list[float]]:
        """Return the total rate of an event, and its sums up to each agent if they differ."""
        world, rate = self.world, channel.rate
        agents = self._inside[channel.kind.cls, channel.state]
        if isinstance(rate, str):
            rate = getattr(world, rate)
        if channel.most is not None:
            return channel.most * len(agents), []
        if not callable(rate):
            return self._checked(channel, rate) * len(agents), []
        if len(agents) > _MANY and not channel.is_reported:
            channel.is_reported = True
            _logger.warning(
                "%s: its rate is a function, which is called for each of %d agents after every "
                "event; most=, the largest rate, in @during(..., rate=..., most=...) spares all "
                "calls but one",
                self._name_of(channel),
                len(agents),
            )
        sums = [*accumulate(self._checked(channel, rate(world, each), each) for each in agents)]
        return (sums[-1] if sums else 0.0), sums

    def _checked(self, channel: Channel, rate: Any, agent: Any = None) -> float:
        """Return a rate.

        Raises:
            SimulationError: If it is no number from 0 to the largest.
        """
        most = inf if channel.most is None else channel.most
        number = plain_number(rate)
        if isinstance(number, (int, float)) and 0 <= number <= most and number < inf:
            return number

        whose = f" of {agent.agent_id!r}" if agent is not None else ""
        what = f"{self._name_of(channel)}: the rate{whose} in {state_text(channel.state)!r}"
        raise SimulationError(f"{what} must be a number from 0 to {most}, got {rate!r}")

    def _name_of(self, channel: Channel) -> str:
        return f"{type(self.world).__name__}.{channel.step.__name__}"


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

    async def round(self, _pace: Callable[[], Awaitable[object]]) -> None:
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
                self.advance()
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
                problem = "waits for another agent, in an independent world"
                raise SimulationError(f"the step of {agent!r} {problem}")
            waiting = await wave(self, waiting)
