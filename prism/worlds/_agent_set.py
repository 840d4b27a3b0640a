"""Sets of agents, from which you choose, draw and count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from itertools import pairwise
from math import fsum
from operator import attrgetter
from typing import Any, TypeVar, overload

from prism.errors import FieldValueError, SimulationError
from prism.randomness import RandomStream
from prism.statechart import Configuration

AgentT = TypeVar("AgentT")
KindT = TypeVar("KindT")
ValueT = TypeVar("ValueT")
DefaultT = TypeVar("DefaultT")

_MISSING: Any = object()
_NUMBER = re.compile("([0-9]+)")

_id_of: Callable[[Any], str] = attrgetter("agent_id")


class AgentSet(tuple[AgentT, ...]):
    """Agents in a fixed order, from which you can select, draw and compute sums.

    ``world.agents`` and ``agent.neighbours`` are such sets, and their methods return further sets:
    ``world.agents.where(state=Mind.SPREADER).sample(5)``. A set never changes, even if its agents
    do.

    Draws use the random stream of the agent whose step is running, or else the world's. They depend
    on the agents' ids, and on the order in which agents were given only if the world's ``order`` is
    ``"listed"``.
    """

    __slots__ = ()

    @overload
    def where(
        self,
        chosen: Callable[[AgentT], object] | None = None,
        *,
        kind: type[KindT],
        state: Enum | Iterable[Enum] | None = None,
    ) -> AgentSet[KindT]: ...
    @overload
    def where(
        self,
        chosen: Callable[[AgentT], object] | None = None,
        *,
        state: Enum | Iterable[Enum] | None = None,
    ) -> AgentSet[AgentT]: ...
    def where(
        self,
        chosen: Callable[[Any], object] | None = None,
        *,
        kind: type[Any] | None = None,
        state: Enum | Iterable[Enum] | None = None,
    ) -> AgentSet[Any]:
        """Return the agents that meet all conditions, in their order.

        Args:
            chosen: A condition: ``lambda person: person.age > 60``.
            kind: Their class.
            state: Their state or one that contains it, or several of these.

        Raises:
            UnknownStateError: If no agent's chart has such a state.
        """
        found = self if state is None else self._in_state(state)
        if kind is not None:
            found = found._some(agent for agent in found._listed() if isinstance(agent, kind))
        if chosen is not None:
            found = found._some(filter(chosen, found._listed()))

        return found

    def sample(self, number: int) -> AgentSet[AgentT]:
        """Draw several agents without replacement.

        Raises:
            ValueError: If there are fewer.
            SimulationError: If nothing may be drawn at the moment.
        """
        if number and not self:
            raise ValueError(f"cannot draw {number} of 0 items")

        return AgentSet(_stream_of(self).sample(self, number) if self else ())

    def shuffled(self) -> AgentSet[AgentT]:
        """Return all agents in random order.

        Raises:
            SimulationError: If nothing may be drawn now.
        """
        return AgentSet(_stream_of(self).shuffled(self._drawn()) if self else ())

    def values(self, of: str | Callable[[AgentT], ValueT]) -> list[Any]:
        """Return a value of each agent.

        Args:
            of: Name of a field, or a function of an agent.
        """
        return list(map(_reader(of), self._listed()))

    def sum(self, of: str | Callable[[AgentT], float]) -> float:
        """Return the sum of a number of each agent. It does not depend on their order.

        Args:
            of: Name of a field, or a function of an agent.
        """
        return fsum(self.values(of))

    @overload
    def mean(self, of: str | Callable[[AgentT], float]) -> float: ...
    @overload
    def mean(
        self, of: str | Callable[[AgentT], float], *, default: DefaultT
    ) -> float | DefaultT: ...
    def mean(self, of: str | Callable[[AgentT], float], *, default: Any = _MISSING) -> Any:
        """Return the mean of a number of each agent. It does not depend on their order.

        Args:
            of: Name of a field, or a function of an agent.
            default: The mean of an empty set.

        Raises:
            FieldValueError: If the set is empty and there is no default.
        """
        if self:
            return self.sum(of) / len(self)
        if default is _MISSING:
            raise FieldValueError(
                f"mean({of!r}) of an empty set: give a default, mean({of!r}, default=0)"
            )

        return default

    def group(self, by: str | Callable[[AgentT], ValueT]) -> dict[Any, AgentSet[AgentT]]:
        """Return a set of agents for each value, in the order in which the values appear.

        Args:
            by: Name of a field, or a function of an agent.
        """
        groups: dict[Any, list[AgentT]] = {}
        for agent, value in zip(self._listed(), self.values(by), strict=True):
            groups.setdefault(value, []).append(agent)

        return {value: self._some(agents) for value, agents in groups.items()}

    def count(self, state: Any) -> int:
        """Return the number of agents in a state.

        Raises:
            UnknownStateError: If no agent's chart has it.
        """
        return len(self._in_state(state))

    def _in_state(self, state: Any) -> AgentSet[AgentT]:
        return self._some(in_state(self._listed(), self._known(state)))

    def _known(self, state: Any) -> Any:
        """Return a state, or a tuple of several, after checking that the run's charts have them."""
        is_one = isinstance(state, (Enum, str, Configuration))
        states = (state,) if is_one else tuple(state)
        host = getattr(self[0], "_host", None) if self else None
        if host is not None:
            for each in states:
                host.require_state(each)

        return state if is_one else states

    def _some(self, agents: Iterable[AgentT]) -> AgentSet[AgentT]:
        """Return a set of some of these agents."""
        return type(self)(agents)

    def _listed(self) -> Iterator[AgentT]:
        """Iterate over the agents in their own order, even if the class loops in another."""
        return super().__iter__()

    def _drawn(self) -> AgentSet[AgentT]:
        """Return the agents in the order by which they are drawn."""
        return self

    def __repr__(self) -> str:
        """Show the number of agents, and the first few."""
        shown = [*map(repr, self[:3]), *["..."] * (len(self) > 3)]
        return f"<{len(self)} agents{': ' * bool(self)}{', '.join(shown)}>"


NOBODY: AgentSet[Any] = AgentSet()
"""The empty set."""


class ById(AgentSet[AgentT]):
    """Agents in the order of a list, from which others are drawn by their ids.

    So draws are the same for another list of the same agents, as are those from sets made of it.
    """

    @cached_property
    def _ranks(self) -> Mapping[str, int]:
        """The place of each id in natural order; a derived set shares those of its origin."""
        ids = sorted(map(_id_of, self._listed()), key=natural_order)
        return {each: rank for rank, each in enumerate(ids)}

    @cached_property
    def _by_id(self) -> AgentSet[AgentT]:
        ranks = self._ranks
        return AgentSet(sorted(self, key=lambda agent: ranks[_id_of(agent)]))

    def _drawn(self) -> AgentSet[AgentT]:
        return self._by_id

    def _some(self, agents: Iterable[AgentT]) -> AgentSet[AgentT]:
        made = type(self)(agents)
        made._ranks = self._ranks

        return made


class Backwards(AgentSet[AgentT]):
    """The same agents at the same places, but loops go from the last to the first.

    If that changes anything in a world, the world depends on the order of its agents.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[AgentT]:
        """Iterate from the last to the first."""
        return reversed(tuple(self._listed()))

    def _drawn(self) -> AgentSet[AgentT]:
        return AgentSet(self._listed())


class BackwardsById(ById[AgentT], Backwards[AgentT]):
    """The same, but agents are drawn by their ids, which are sorted from the last agent on."""


class StreamById(RandomStream):
    """A random stream of a run in which agents are drawn by their ids."""

    __slots__ = ()

    def choice(self, items: Sequence[ValueT]) -> ValueT:
        """Draw one of several items, all equally likely."""
        drawn: Sequence[ValueT] = _as_drawn(items)
        return super().choice(drawn)

    def shuffled(self, items: Iterable[ValueT]) -> list[ValueT]:
        """Return a new list of the items in a random order."""
        return super().shuffled(_as_drawn(items))

    def sample(self, items: Iterable[ValueT], number: int) -> list[ValueT]:
        """Draw several of the items, none of them twice."""
        return super().sample(_as_drawn(items), number)


def natural_order(name: str) -> Any:
    """Return a key for sorting that puts ``p_2`` before ``p_10``."""
    parts: list[Any] = _NUMBER.split(name)
    # a number is its length and its digits, since Python refuses to convert thousands of digits
    numbers = (digits.lstrip("0") for digits in parts[1::2])
    parts[1::2] = [(len(digits), digits) for digits in numbers]

    return parts, name


def are_in_order(agents: Iterable[Any]) -> bool:
    """Return whether agents are in the natural order of their ids."""
    ids = map(_id_of, agents)
    return all(one <= other for one, other in pairwise(map(natural_order, ids)))


def in_state(agents: Iterable[Any], state: Any) -> list[Any]:
    """Return the agents in a state, in one of several, or in one nested inside."""
    agents = tuple(agents)
    # by identity, since states of two charts are equal if they have the same text
    if isinstance(state, Configuration):
        own = type(state.leaves[0])
        return [
            agent
            for agent in agents
            if agent.state == state and agent._chart.definition.state_type is own
        ]
    if isinstance(state, Enum):
        found = [agent for agent in agents if agent.state is state]
        return found or _inside(agents, (state,))

    return _inside(agents, tuple(state))


def _inside(agents: Sequence[Any], states: Sequence[Any]) -> list[Any]:
    """Return the agents in one of several states, or in one nested inside of these."""
    charts = {id(agent._chart): agent._chart.definition for agent in agents}.values()
    inside = (leaf for chart in charts for each in states for leaf in chart.leaves_of(each))
    wanted = {*map(id, states), *map(id, inside)}

    return [agent for agent in agents if not wanted.isdisjoint(map(id, leaves_in(agent.state)))]


def leaves_in(state: Any) -> frozenset[Any]:
    """Return the innermost states of a state, which may be a configuration."""
    return frozenset(state.leaves if isinstance(state, Configuration) else (state,))


def _as_drawn(items: Any) -> Any:
    return items._drawn() if isinstance(items, AgentSet) else items


def _reader(of: Any) -> Callable[[Any], Any]:
    return attrgetter(of) if isinstance(of, str) else of


def _stream_of(agents: AgentSet[Any]) -> Any:
    """Return the random stream of the agent whose step is running, or else the world's."""
    host = getattr(agents[0], "_host", None) if agents else None
    if host is None:
        raise SimulationError(
            "agents can be sampled only in a run: elsewhere, use the sample of a stream"
        )

    return host.world_stream() if host.acting is None else host.acting.random
