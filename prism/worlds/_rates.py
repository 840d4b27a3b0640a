"""Events that happen at rates, in continuous time whose unit is a round."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from math import isfinite, log1p
from typing import Any

from prism.errors import SimulationError
from prism.randomness import RandomStream, index_at, total_of
from prism.statechart.states import state_text
from prism.worlds._host import RunHost
from prism.worlds._kinds import Channel, Step
from prism.worlds._turns import Activation, Roster


class ByRate(Activation):
    """One event after another, each at its own time (Gillespie 1977, the direct method).

    Waiting times are exponential with the sum of all rates, and each event is chosen with a
    probability proportional to its rate. Such times have no memory, so it does not matter that a
    tick ends before the next event. Rates that are functions are evaluated after every event, so
    they are exact whatever they depend on.

    Args:
        roster: The states of the agents.
        time_out: The turn of an agent whose time-out is due.
        host: The run.
    """

    def __init__(self, roster: Roster, time_out: Step, host: RunHost) -> None:
        super().__init__(roster, time_out)
        self._host = host
        # the order of kinds must not depend on the list, either
        kinds = dict.fromkeys(agent._kind for agent in host.canonical())
        self._channels = [channel for kind in kinds for channel in kind.channels]
        self._step: Step | None = None
        # if each agent has its own rate: the cumulative sums of the rates
        self._sums: dict[int, list[float]] = {}

    def batches(self) -> Iterator[Iterable[Any]]:
        """Yield the agents that time out, then those to which events happen, one by one."""
        host, roster = self._host, self._roster
        roster.end_turns()
        if host.tick == 1:
            # so a run that is resumed between two rounds finds them in the same order
            roster.list_members(host.canonical())

        due = [agent for _, agent in roster.timing_out()]
        if due:
            self._step = self._time_out
            with host.within_tick(0):
                yield due

        stream = host.turn_stream()
        for part in self._times(stream):
            with host.within_tick(part):
                yield (self._draw(stream),)

    def step_of(self, _agent: Any) -> Step | None:
        """Return the current event."""
        return self._step

    def own_step_of(self, _agent: Any) -> None:
        """Return None, since other events are drawn."""

    def _times(self, stream: RandomStream) -> Iterator[float]:
        """Yield the time of each event in the tick, from 0 to 1."""
        part, ticks = 0.0, self._host.ticks_per_round
        while True:
            self._weights = [self._weight(place) for place in range(len(self._channels))]
            total = total_of(self._weights)
            if not total:
                return

            part -= log1p(-stream.random()) / total * ticks
            if part >= 1:
                return

            yield part

    def _weight(self, place: int) -> float:
        """Return the total rate of an event for all agents to which it can happen."""
        channel = self._channels[place]
        members = channel.kind.members[channel.state]
        if not callable(channel.rate):
            return self._checked(channel, self._constant(channel)) * len(members)

        world, rate = self._host.world, channel.rate
        rates = (self._checked(channel, rate(world, agent), agent) for agent in members)
        sums = self._sums[place] = list(accumulate(rates))

        return sums[-1] if sums else 0.0

    def _constant(self, channel: Channel) -> Any:
        rate = channel.rate
        return getattr(self._host.world, rate) if isinstance(rate, str) else rate

    def _draw(self, stream: RandomStream) -> Any:
        """Draw the event and its agent."""
        place = index_at(stream.random(), self._weights)
        channel = self._channels[place]
        self._step = channel.step
        members = channel.kind.members[channel.state]
        if not callable(channel.rate):
            return members[stream.index(len(members))]

        sums = self._sums[place]
        found = bisect_right(sums, stream.random() * sums[-1])
        return members[min(found, len(members) - 1)]

    def _checked(self, channel: Channel, rate: Any, agent: Any = None) -> float:
        if isinstance(rate, (int, float)) and isfinite(rate) and rate >= 0:
            return rate

        whose = f" of {agent.agent_id!r}" if agent is not None else ""
        raise SimulationError(
            f"{type(self._host.world).__name__}.{channel.step.__name__}: the rate{whose} in "
            f"{state_text(channel.state)!r} must be a number, 0 or more, got {rate!r}"
        )
