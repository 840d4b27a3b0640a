"""Sets of agents, from which you choose, draw and count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from math import fsum
from operator import attrgetter
from typing import Any, SupportsIndex, TypeVar, overload

from prism.errors import FieldValueError, SimulationError, UnknownStateError
from prism.statechart import Configuration

AgentT = TypeVar("AgentT")
KindT = TypeVar("KindT")
OtherT = TypeVar("OtherT")
ValueT = TypeVar("ValueT")


class AgentSet(tuple[AgentT, ...]):
    """Agents in a fixed order, from which you can select, draw and compute sums.

    ``world.agents`` and ``agent.neighbours`` are such sets, and their methods return further sets:
    ``world.agents.where(state=Mind.SPREADER).sample(5)``. A set never changes, even if its agents
    do. Draws use the random stream of the agent whose step is running, or else the world's, and do
    not depend on the order of the set.
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
        agents: AgentSet[Any] = self if state is None else AgentSet(in_state(self, state))
        if kind is not None:
            agents = AgentSet(agent for agent in agents if isinstance(agent, kind))
        return agents if chosen is None else AgentSet(filter(chosen, agents))

    def count(self, state: Any) -> int:
        """Return the number of agents in a state.

        Raises:
            UnknownStateError: If no agent's chart has it.
        """
        return len(in_state(self, state))

    def sample(self, number: int) -> AgentSet[AgentT]:
        """Draw several agents without replacement.

        Raises:
            ValueError: If there are fewer.
        """
        if number and not self:
            raise ValueError(f"cannot draw {number} of 0 agents")
        return AgentSet(_stream_of(self).sample(_in_own_order(self), number) if self else ())

    def shuffled(self) -> AgentSet[AgentT]:
        """Return all agents in random order."""
        return AgentSet(_stream_of(self).shuffled(_in_own_order(self)) if self else ())

    def values(self, of: str | Callable[[AgentT], ValueT]) -> list[Any]:
        """Return a value of each agent: of a field by its name, or of a function."""
        return [*map(attrgetter(of) if isinstance(of, str) else of, self)]

    def sum(self, of: str | Callable[[AgentT], float]) -> float:
        """Return the sum of a number of each agent. It does not depend on their order."""
        return fsum(self.values(of))

    def mean(self, of: str | Callable[[AgentT], float]) -> float:
        """Return the mean of a number of each agent. It does not depend on their order.

        Args:
            of: Name of a field, or a function of an agent.

        Raises:
            FieldValueError: If the set is empty.
        """
        if not self:
            raise FieldValueError(f"mean({of!r}) of an empty set")
        return self.sum(of) / len(self)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> AgentT: ...
    @overload
    def __getitem__(self, index: slice, /) -> AgentSet[AgentT]: ...
    def __getitem__(self, index: Any, /) -> Any:
        """Return an agent by its place, or the set of the agents in a slice."""
        chosen = super().__getitem__(index)
        return AgentSet(chosen) if isinstance(index, slice) else chosen

    def __add__(self, others: tuple[OtherT, ...], /) -> AgentSet[AgentT | OtherT]:
        """Return the set of these agents and of others, as `count` of a tuple would be 0."""
        return AgentSet(super().__add__(others))

    def __repr__(self) -> str:
        """Show the number of agents, and the first few."""
        parts = [*map(repr, self[:3]), *["..."] * (len(self) > 3)]
        return f"<{len(self)} agents{': ' * bool(self)}{', '.join(parts)}>"


NOBODY: AgentSet[Any] = AgentSet()
"""The empty set."""


def in_state(agents: Sequence[Any], state: Any) -> list[Any]:
    """Return the agents in a state, in one of several, or in one nested inside.

    Raises:
        UnknownStateError: If no chart of theirs has the state.
    """
    if isinstance(state, Enum):
        # by identity, since states of two charts are equal if they have the same text
        matching = [agent for agent in agents if agent.state is state]
        if matching:
            return matching
    if isinstance(state, Configuration):
        cls = type(state.leaves[0])
        return [
            agent for agent in agents if agent.state == state and type(agent.state.leaves[0]) is cls
        ]

    states = (state,) if isinstance(state, (Enum, str)) else tuple(state)
    if not agents:
        return []
    charts = {type(agent): type(agent).chart.definition for agent in agents}.values()
    inside = [[*chart.leaves_of(each)] for chart in charts for each in states]
    for each in states:
        if not any(chart.leaves_of(each) for chart in agents[0].world.charts):
            raise unknown_state(each, agents[0].world.charts)
    wanted = {id(leaf) for leaves in inside for leaf in leaves}

    return [agent for agent in agents if not wanted.isdisjoint(map(id, leaves_in(agent.state)))]


def unknown_state(state: Any, charts: Iterable[Any]) -> UnknownStateError:
    """Return the error for a state that no chart has, with those that there are."""
    nodes = (node.state for chart in charts for node in chart.hierarchy.nodes[1:])
    names = (f"{type(each).__name__}.{getattr(each, 'name', each)}" for each in nodes)
    listed = ", ".join(dict.fromkeys(names))
    return UnknownStateError(f"no agent's chart has the state {state!r}: there are {listed}")


def leaves_in(state: Any) -> tuple[Any, ...]:
    """Return the innermost states of a state, which may be a configuration."""
    return tuple(state.leaves) if isinstance(state, Configuration) else (state,)


def _in_own_order(agents: AgentSet[Any]) -> Sequence[Any]:
    """Return agents in an order that does not depend on that of the set."""
    ordered: Sequence[Any] = agents[0].world._run_turns.population.canonical(agents)
    return ordered


def _stream_of(agents: AgentSet[Any]) -> Any:
    """Return the random stream of the agent whose step is running, or else the world's."""
    turns = getattr(agents[0].world, "_run_turns", None)
    if turns is None:
        raise SimulationError("agents can be drawn only in a run, whose seed decides")

    return turns.world.random if turns.acting is None else turns.acting.random
