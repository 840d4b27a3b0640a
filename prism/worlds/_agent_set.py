"""Sets of agents, from which you choose, draw and count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from math import fsum
from operator import attrgetter
from typing import Any, SupportsIndex, TypeVar, overload

from prism.errors import SimulationError, UnknownStateError
from prism.randomness import RandomStream
from prism.statechart import Configuration

AgentT = TypeVar("AgentT")
KindT = TypeVar("KindT")
OtherT = TypeVar("OtherT")


class AgentSet(tuple[AgentT, ...]):
    """Agents in a fixed order, from which you can select, draw and compute sums.

    ``world.agents`` and ``agent.neighbours`` are such sets, and their methods return further sets:
    ``world.agents.where(state=Mind.SPREADER).sample(5)``. A set never changes, even if its agents
    do. Draws use the random stream of the agent whose step is running, or else the world's, and do
    not depend on the order of the set.
    """

    __slots__ = ()

    def where(
        self,
        chosen: Callable[[AgentT], object] | None = None,
        *,
        state: Enum | Iterable[Enum] | None = None,
    ) -> AgentSet[AgentT]:
        """Return the agents that meet all conditions, in their order.

        Args:
            chosen: A condition: ``lambda person: person.age > 60``.
            state: Their state or one that contains it, or several of these.

        Raises:
            UnknownStateError: If no agent's chart has such a state.
        """
        agents = self if state is None else AgentSet(in_state(self, state))
        return agents if chosen is None else AgentSet(filter(chosen, agents))

    def of(self, kind: type[KindT]) -> AgentSet[KindT]:
        """Return the agents of a class, in their order."""
        return AgentSet(agent for agent in self if isinstance(agent, kind))

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
        stream, agents = _drawing_from(self)
        return AgentSet(stream.sample(agents, number))

    def shuffled(self) -> AgentSet[AgentT]:
        """Return all agents in random order."""
        stream, agents = _drawing_from(self)
        return AgentSet(stream.shuffled(agents))

    def mean(self, of: str | Callable[[AgentT], float]) -> float:
        """Return the mean of a number of each agent. It does not depend on their order.

        Args:
            of: Name of a field, or a function of an agent.

        Raises:
            SimulationError: If there are no agents.
        """
        if not self:
            raise SimulationError(f"no agents, so no mean of {of!r}: a measure may return None")
        return fsum(map(attrgetter(of) if isinstance(of, str) else of, self)) / len(self)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> AgentT: ...
    @overload
    def __getitem__(self, index: slice, /) -> AgentSet[AgentT]: ...
    def __getitem__(self, index: Any, /) -> Any:
        """Return an agent by its place, or the set of the agents in a slice."""
        chosen = tuple.__getitem__(self, index)
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
    if not agents:
        return []
    population = agents[0].world._run_turns.population
    charts, is_leaf = population.definitions, population.is_flat and isinstance(state, Enum)
    # by identity, since states of two charts are equal if they have the same text
    if is_leaf and (matching := [each for each in agents if each.state is state]):
        return matching
    wanted: set[int] = set()
    for each in (state,) if isinstance(state, (Enum, str)) else state:
        leaves = [leaf for chart in charts for leaf in chart.leaves_of(each)]
        if not leaves:
            raise unknown_state(each, charts)
        wanted.update(map(id, leaves))
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


def _drawing_from(agents: AgentSet[Any]) -> tuple[RandomStream, Sequence[Any]]:
    """Return the stream of the agent whose step is running, or else the world's, and agents.

    Their order does not depend on that of the set.
    """
    if not agents:
        return RandomStream(0), ()
    turns = agents[0].world._run_turns
    drawing: Any = turns.world if turns.acting is None else turns.acting
    return drawing.random, turns.population.canonical(agents)
