"""Agents to choose from: one set of them, from which others are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from math import fsum
from operator import attrgetter
from typing import Any, TypeVar, overload

from prism.errors import FieldValueError, SimulationError
from prism.statechart import Configuration

AgentT = TypeVar("AgentT")
KindT = TypeVar("KindT")
ValueT = TypeVar("ValueT")
DefaultT = TypeVar("DefaultT")

_MISSING: Any = object()


class AgentSet(tuple[AgentT, ...]):
    """Agents in a fixed order, to choose from, to draw from, and to look at together.

    ``world.agents`` and ``agent.neighbours`` are such sets, and what they are asked for is another:
    ``world.agents.where(state=Mind.SPREADER).sample(5)``. A set does not change once it is made: it
    does not follow agents that change.

    What it draws comes from the random numbers of the agent whose step it is, else from those of
    the world.
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
        """Return those to which all that is asked for applies, in their order.

        Args:
            chosen: Returns whether an agent is one of them: ``lambda person: person.age > 60``.
            kind: Their class.
            state: Their state, one around it, or several of which theirs is one.
        """
        found: Iterable[Any] = self._listed()
        if state is not None:
            found = in_state(found, state)
        if kind is not None:
            found = [agent for agent in found if isinstance(agent, kind)]
        if chosen is not None:
            found = filter(chosen, found)

        return type(self)(found)

    def sample(self, number: int) -> AgentSet[AgentT]:
        """Draw several, none of them twice.

        Raises:
            ValueError: If there are not so many.
            SimulationError: If nothing may be drawn now.
        """
        return AgentSet(_stream_of(self).sample(self, number) if self or number else ())

    def shuffled(self) -> AgentSet[AgentT]:
        """Return all of them in a random order.

        Raises:
            SimulationError: If nothing may be drawn now.
        """
        return AgentSet(_stream_of(self).shuffled(self._listed()) if self else ())

    def values(self, of: str | Callable[[AgentT], ValueT]) -> list[Any]:
        """Return a value of each.

        Args:
            of: Name of a field, or a function of an agent.
        """
        return list(map(_reader(of), self._listed()))

    def sum(self, of: str | Callable[[AgentT], float]) -> float:
        """Return the sum of a number of each, which their order does not change.

        Args:
            of: Name of a field, or a function of an agent.
        """
        return fsum(map(_reader(of), self))

    @overload
    def mean(self, of: str | Callable[[AgentT], float]) -> float: ...
    @overload
    def mean(
        self, of: str | Callable[[AgentT], float], *, default: DefaultT
    ) -> float | DefaultT: ...
    def mean(self, of: str | Callable[[AgentT], float], *, default: Any = _MISSING) -> Any:
        """Return the mean of a number of each, which their order does not change.

        Args:
            of: Name of a field, or a function of an agent.
            default: The mean of nobody.

        Raises:
            FieldValueError: If there is nobody, and no default.
        """
        if self:
            return self.sum(of) / len(self)
        if default is _MISSING:
            raise FieldValueError(
                f"mean({of!r}) of nobody: say what it is then, mean({of!r}, default=0)"
            )

        return default

    def group(self, by: str | Callable[[AgentT], ValueT]) -> dict[Any, AgentSet[AgentT]]:
        """Return a set for each value, in the order in which the values appear.

        Args:
            by: Name of a field, or a function of an agent.
        """
        groups: dict[Any, list[AgentT]] = {}
        for agent, value in zip(self._listed(), self.values(by), strict=True):
            groups.setdefault(value, []).append(agent)

        return {value: type(self)(agents) for value, agents in groups.items()}

    def count(self, state: Any) -> int:
        """Return how many are in a state."""
        return len(in_state(self, state))

    def _listed(self) -> Iterator[AgentT]:
        """Go through them in their order, whatever loops do."""
        return super().__iter__()

    def __repr__(self) -> str:
        """Show how many there are, and the first."""
        shown = [*map(repr, self[:3]), *["..."] * (len(self) > 3)]
        return f"<{len(self)} agents{': ' * bool(self)}{', '.join(shown)}>"


class Backwards(AgentSet[AgentT]):
    """The same agents at the same places, through which loops go from the last to the first.

    A world in which that changes anything depends on the order in which its agents were listed.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[AgentT]:
        """Begin with the last."""
        return reversed(tuple(self._listed()))


def in_state(agents: Iterable[Any], state: Any) -> list[Any]:
    """Return the agents in a state, or one of several, or inside of it."""
    agents = tuple(agents)
    # by identity, as states of two charts with one text are equal
    if isinstance(state, Configuration):
        own = type(state.leaves[0])
        return [
            agent
            for agent in agents
            if agent.state == state and agent._chart.definition.state_type is own
        ]
    if isinstance(state, Enum):
        found = [agent for agent in agents if agent.state is state]
        if found or not agents:
            return found
        state = (state,)

    charts = {id(agent._chart): agent._chart.definition for agent in agents}.values()
    states = tuple(state)
    inside = (leaf for chart in charts for each in states for leaf in chart.leaves_of(each))
    wanted = {*map(id, states), *map(id, inside)}

    return [agent for agent in agents if not wanted.isdisjoint(map(id, _leaves(agent.state)))]


def _leaves(state: Any) -> tuple[Any, ...]:
    return state.leaves if isinstance(state, Configuration) else (state,)


def _reader(of: Any) -> Callable[[Any], Any]:
    return attrgetter(of) if isinstance(of, str) else of


def _stream_of(agents: AgentSet[Any]) -> Any:
    """Return the random numbers of the agent whose step it is, else of the world."""
    host = getattr(agents[0], "_host", None) if agents else None
    if host is None:
        raise SimulationError(
            "agents can be sampled only in a run: elsewhere, use the sample of a stream"
        )

    return host.world_stream() if host.acting is None else host.acting.random
