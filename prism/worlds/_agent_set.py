"""Sets of agents, from which you choose, draw and count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from math import fsum
from operator import attrgetter
from typing import Any, SupportsIndex, TypeVar, overload

from prism.errors import FieldValueError, SimulationError
from prism.statechart import Configuration

AgentT = TypeVar("AgentT")
KindT = TypeVar("KindT")
OtherT = TypeVar("OtherT")
ValueT = TypeVar("ValueT")
DefaultT = TypeVar("DefaultT")

_MISSING: Any = object()


class AgentSet(tuple[AgentT, ...]):
    """Agents in a fixed order, from which you can select, draw and compute sums.

    ``world.agents`` and ``agent.neighbours`` are such sets, and their methods return further sets:
    ``world.agents.where(state=Mind.SPREADER).sample(5)``. A set never changes, even if its agents
    do.

    Draws use the random stream of the agent whose step is running, or else the world's.
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
            found = AgentSet(agent for agent in found if isinstance(agent, kind))
        if chosen is not None:
            found = AgentSet(filter(chosen, found))

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
        return AgentSet(_stream_of(self).shuffled(self) if self else ())

    def values(self, of: str | Callable[[AgentT], ValueT]) -> list[Any]:
        """Return a value of each agent.

        Args:
            of: Name of a field, or a function of an agent.
        """
        return list(map(_reader(of), self))

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
        for agent, value in zip(self, self.values(by), strict=True):
            groups.setdefault(value, []).append(agent)

        return {value: AgentSet(agents) for value, agents in groups.items()}

    def count(self, state: Any) -> int:
        """Return the number of agents in a state.

        Raises:
            UnknownStateError: If no agent's chart has it.
        """
        return len(self._in_state(state))

    def _in_state(self, state: Any) -> AgentSet[AgentT]:
        return AgentSet(in_state(self, self._known(state)))

    def _known(self, state: Any) -> Any:
        """Return a state, or a tuple of several, after checking that the run's charts have them."""
        is_one = isinstance(state, (Enum, str, Configuration))
        states = (state,) if is_one else tuple(state)
        host = getattr(self[0], "_host", None) if self else None
        if host is not None:
            for each in states:
                host.require_state(each)

        return state if is_one else states

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> AgentT: ...
    @overload
    def __getitem__(self, place: slice, /) -> AgentSet[AgentT]: ...
    def __getitem__(self, place: Any, /) -> Any:
        """Return an agent by its place, or the set of the agents in a slice."""
        found = super().__getitem__(place)
        return AgentSet(found) if isinstance(place, slice) else found

    @overload
    def __add__(self, others: tuple[AgentT, ...], /) -> AgentSet[AgentT]: ...
    @overload
    def __add__(self, others: tuple[OtherT, ...], /) -> AgentSet[AgentT | OtherT]: ...
    def __add__(self, others: Any, /) -> Any:
        """Return the set of these agents and of others."""
        return AgentSet(super().__add__(others))

    def __repr__(self) -> str:
        """Show the number of agents, and the first few."""
        shown = [*map(repr, self[:3]), *["..."] * (len(self) > 3)]
        return f"<{len(self)} agents{': ' * bool(self)}{', '.join(shown)}>"


NOBODY: AgentSet[Any] = AgentSet()
"""The empty set."""


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
