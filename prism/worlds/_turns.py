"""Turns: which agents have something to do in a tick, in which order, and when they last moved.

`Roster` knows the state of every agent, so that agents without a step or a time-out are not
visited. The classes below it are the kinds of activation (`World.activation`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from typing import Any

from prism.randomness import RandomStream
from prism.randomness._stream import GOLDEN, all_mixed, mixed
from prism.statechart import Configuration
from prism.worlds._agent import begin_streams
from prism.worlds._guest import Proxy
from prism.worlds._host import RunHost
from prism.worlds._kinds import NEVER, Kind, Step

ALWAYS = -1
"""When an agent with a ticked chart is due."""

_BEFORE, _AFTER = -1, 2**64
"""Places before the first turn of a tick, and after the last."""


class Roster:
    """The states of all agents: how many are in each, since when, and who has something to do.

    In a tick every agent has a place: a number of its own, keyed by seed, tick and id, or its place
    in the list. Places are computed only for agents that have a turn. An agent that gets something
    to do has its turn in the same tick if its place is still to come.

    Args:
        agents: The population.
        is_listed: Whether agents act in the order of the list.

    Attributes:
        now: The tick, counted from the beginning of the run.
        at: The place of the current turn.
        newcomers: The agents that got a turn during this tick, with their places.
        kinds: The kinds of agents.
    """

    def __init__(self, agents: Sequence[Any], *, is_listed: bool = False) -> None:
        self.now: int = 0
        self.at: int = _AFTER
        self.newcomers: list[tuple[int, str, Any]] = []
        self._is_listed = is_listed
        self._salt = 0
        self._agents = agents
        self.kinds: list[Kind] = list({id(each._kind): each._kind for each in agents}.values())
        self._visited: dict[int, Any] = {}
        self._due: dict[int, list[Any]] = {}
        self._ticked: list[Any] = []
        self.rebuild(0)

    def rebuild(self, now: int) -> None:
        """Recount all agents, after states were set without `moved` between two ticks.

        Args:
            now: The last tick, counted from the beginning of the run.
        """
        self.now, self.at = now, _AFTER
        self._visited.clear()
        self._due.clear()
        for kind in self.kinds:
            kind.begin_counting()

        self._ticked = [agent for agent in self._agents if agent._kind.is_ticked]
        for agent in self._agents:
            kind = agent._kind
            agent._due = ALWAYS if kind.is_ticked else NEVER
            # an object of another class may change its state unnoticed
            if isinstance(agent, Proxy):
                self._visited[agent._place] = agent
                continue

            kind.counts[agent._state] += 1
            if agent._state in kind.visited:
                self._visited[agent._place] = agent
            if kind.has_limits:
                self._set_due(agent, agent._state)

    def count(self, state: Any) -> int:
        """Return how many agents are in a state."""
        # states of two charts are equal if they have the same text
        cls = type(state.leaves[0] if isinstance(state, Configuration) else state)
        return sum(kind.count(state) for kind in self.kinds if kind.state_type is cls)

    def list_members(self, agents: Iterable[Any]) -> None:
        """List the agents in each state, in the given order."""
        for kind in self.kinds:
            kind.begin_listing()
        for agent in agents:
            self._list(agent, agent._state)

    def place_of(self, agent: Any) -> int:
        """Return an agent's place in this tick."""
        if self._is_listed:
            place: int = agent._place
            return place

        return mixed((agent._keys or agent._host.keys_of(agent))[0] + self._salt)

    def begin_tick(self, now: int, order: int) -> None:
        """Begin a tick.

        Args:
            now: The tick, counted from the beginning of the run.
            order: The number of the order; each number gives a different one.
        """
        self.now, self.at, self._salt = now, _BEFORE, order * GOLDEN
        self.newcomers.clear()

    @contextmanager
    def in_tick(self, now: int) -> Iterator[None]:
        """Make the block belong to an earlier tick, after all of its turns."""
        before = self.now, self.at
        self.now, self.at = now, _AFTER
        try:
            yield
        finally:
            self.now, self.at = before

    def end_turns(self) -> None:
        """Note that all turns are over."""
        self.at = _AFTER

    def acting(self, besides: Iterable[Any] = ()) -> Iterable[tuple[int, Any]]:
        """Return the places and agents that have something to do in this tick, in their order.

        Args:
            besides: Other agents that have a turn.
        """
        return self._in_order([*self._visited.values(), *self._popped(), *besides])

    def timing_out(self) -> Iterable[tuple[int, Any]]:
        """Return the places and agents whose time-out is due in this tick, in their order."""
        return self._in_order(self._popped())

    def _popped(self) -> Iterable[Any]:
        """Return each agent whose time-out is due now, once."""
        noted = self._due.pop(self.now, ())
        due = {each._place: each for each in noted if each._due == self.now}
        return (*self._ticked, *due.values()) if self._ticked else due.values()

    def _in_order(self, agents: Iterable[Any]) -> Iterable[tuple[int, Any]]:
        """Return the places and agents, each agent once, in the order of their places."""
        found = list(agents)
        by_place = dict(zip(self._places_of(found), found, strict=True))
        if len(by_place) < len(found):
            # an agent is listed twice, or two drew one place and act in the order of their ids
            ids = {agent.agent_id: agent for agent in found}
            in_order = sorted((self.place_of(agent), each) for each, agent in ids.items())
            return [(place, ids[each]) for place, each in in_order]

        order = sorted(by_place)
        return zip(order, map(by_place.__getitem__, order), strict=True)

    def _places_of(self, agents: Sequence[Any]) -> Sequence[int]:
        """Return the places of agents, and begin the streams of their steps."""
        if self._is_listed:
            return [agent._place for agent in agents]

        # `place_of`, for all at once
        keys = [(agent._keys or agent._host.keys_of(agent))[0] for agent in agents]
        begin_streams([agent._random for agent in agents])
        return all_mixed(keys, self._salt)

    def moved(self, agent: Any, left: Any, entered: Any) -> int:
        """Record that an agent leaves a state, and return its ticks in it."""
        kind = agent._kind
        kind.counts[left] -= 1
        kind.counts[entered] += 1
        turns = self.now - (not self._has_had_turn(agent))
        dwell: int = turns - agent._since
        agent._since = turns
        if entered in kind.visited:
            self._visited[agent._place] = agent
        else:
            self._visited.pop(agent._place, None)

        if kind.has_limits:
            self._set_due(agent, entered)
        if kind.members:
            self._move_member(agent, left, entered)
        if self.at != _AFTER:
            self._give_turn(agent, entered)

        return dwell

    def ticks_of(self, agent: Any) -> int:
        """Return the number of turns that an agent has had, or could have had, in its state."""
        return self.now - (not self._has_had_turn(agent)) - int(agent._since)

    def set_ticks(self, agent: Any, ticks: int) -> None:
        """Set the number of ticks that an agent has been in its state."""
        agent._since += self.ticks_of(agent) - ticks
        if agent._kind.has_limits:
            self._set_due(agent, agent._state)
            self._give_turn(agent, agent._state)

    def put_off(self, agent: Any) -> None:
        """Retry in the next tick a due time-out that led to no other state."""
        if ALWAYS < agent._due <= self.now:
            self._note_due(agent, self.now + 1)

    def _set_due(self, agent: Any, state: Any) -> None:
        """Record the tick in which an agent times out, if it is still to come."""
        after = agent._kind.due_after.get(state, NEVER)
        if after == NEVER:
            agent._due = NEVER
        else:
            self._note_due(agent, max(agent._since + after, self.now + self._has_had_turn(agent)))

    def _note_due(self, agent: Any, tick: int) -> None:
        agent._due = tick
        # in the current tick, it is among the newcomers
        if tick > self.now or self.at == _BEFORE:
            self._due.setdefault(tick, []).append(agent)

    def _has_had_turn(self, agent: Any) -> bool:
        return self.at == _AFTER or self.place_of(agent) <= self.at

    def _give_turn(self, agent: Any, state: Any) -> None:
        """Give an agent a turn in this tick, if it has something to do and its place is to come."""
        if not (agent._due <= self.now or state in agent._kind.visited):
            return

        place = self.place_of(agent)
        if place > self.at:
            heappush(self.newcomers, (place, agent.agent_id, agent))

    def _move_member(self, agent: Any, left: Any, entered: Any) -> None:
        """Update the lists of agents by state, from which rates draw."""
        kind = agent._kind
        if kind.has_regions:
            for each in kind.listings_in(left):
                each.remove(agent)
            self._list(agent, entered)
            return

        members = kind.members[left]
        last = members.pop()
        if last is not agent:
            members[agent._member] = last
            last._member = agent._member

        self._list(agent, entered)

    def _list(self, agent: Any, state: Any) -> None:
        kind = agent._kind
        if kind.has_regions:
            for each in kind.listings_in(state):
                each.append(agent)
            return

        members = kind.members[state]
        agent._member = len(members)
        members.append(agent)


class Activation(ABC):
    """Gives turns in a tick, in which an agent takes the step of its state unless it is due.

    Args:
        roster: The states of the agents.
        time_out: The turn of an agent whose time-out is due.
    """

    def __init__(self, roster: Roster, time_out: Step) -> None:
        self._roster = roster
        self._time_out = time_out

    @abstractmethod
    def batches(self) -> Iterator[Iterable[Any]]:
        """Yield batches of agents; their questions are answered before the next batch."""

    def step_of(self, agent: Any) -> Step | None:
        """Return the time-out if one is due, or else the agent's own step; None for nothing."""
        return self._time_out if agent._due <= self._roster.now else self.own_step_of(agent)

    def own_step_of(self, agent: Any) -> Step | None:
        """Return the step that an agent takes if no time-out is due, or it was refused."""
        step: Step | None = agent._kind.steps.get(agent._state)
        return step


class InTurn(Activation):
    """All agents that have something to do, in the order of their places."""

    def batches(self) -> Iterator[Iterable[Any]]:
        """Yield all agents in one batch, since they ask together."""
        yield self.agents()

    def agents(self, besides: Iterable[Any] = ()) -> Iterator[Any]:
        """Yield agents in their order, including those that get something to do meanwhile.

        Args:
            besides: Other agents that have a turn.
        """
        roster, last = self._roster, None
        newcomers = roster.newcomers
        for place, agent in roster.acting(besides):
            while newcomers and newcomers[0] < (place, agent.agent_id):
                roster.at, _, newcomer = heappop(newcomers)
                if newcomer is not last:
                    yield newcomer
                last = newcomer

            roster.at = place
            # an agent that left a state and came back has one place
            if agent is not last:
                yield agent
            last = agent

        while newcomers:
            roster.at, _, agent = heappop(newcomers)
            if agent is not last:
                yield agent
            last = agent

        roster.end_turns()


class Drawn(Activation):
    """The agents that time out, and one agent that is drawn.

    Args:
        roster: The states of the agents.
        time_out: The turn of an agent whose time-out is due.
        host: The run.
    """

    def __init__(self, roster: Roster, time_out: Step, host: RunHost) -> None:
        super().__init__(roster, time_out)
        self._host = host
        # the order must not depend on the list
        self._agents = host.canonical()
        self._drawn: Any = None

    def batches(self) -> Iterator[Iterable[Any]]:
        """Yield the agents that time out, then the drawn one unless its turn is over."""
        roster = self._roster
        roster.end_turns()
        drawn = self._drawn = self._draw(self._host.turn_stream())
        due = [agent for _, agent in roster.timing_out()]
        if due:
            yield due
        if drawn is not None and drawn not in due:
            yield (drawn,)

    def own_step_of(self, agent: Any) -> Step | None:
        """Return the step of the drawn agent; no other agent has one."""
        return super().own_step_of(agent) if agent is self._drawn else None

    def _draw(self, stream: RandomStream) -> Any:
        return self._agents[stream.index(len(self._agents))]


class DrawnPair(Drawn):
    """The agents that time out, and a drawn pair, the first of which has a turn."""

    _other: Any = None

    def own_step_of(self, agent: Any) -> Step | None:
        """Return the step of the first agent with the second."""
        meet, other = super().own_step_of(agent), self._other
        if meet is None:
            return None

        return lambda world, agent: meet(world, agent, other)

    def _draw(self, stream: RandomStream) -> Any:
        agents = self._agents
        place = stream.index(len(agents))
        one = agents[place]
        if self._host.has_network:
            self._other = stream.choice(one.neighbours) if one.neighbours else None
        else:
            # one of the others, all equally likely
            others = len(agents) - 1
            self._other = agents[place - 1 - stream.index(others)] if others else None

        return None if self._other is None else one
