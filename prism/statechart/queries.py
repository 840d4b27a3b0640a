"""Questions about a population of agents, each one pass over it (specification, FR-7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import Any, TypeVar, overload

from prism.errors import UnknownStateError
from prism.statechart._identity import agent_name
from prism.statechart.states import AgentState, state_text

EnumT = TypeVar("EnumT", bound=Enum)


def agents_in_state(state: Enum, agents: Iterable[Any]) -> int:
    """Count the agents that are in a state.

    Args:
        state: The state asked about.
        agents: Any objects with a ``state``.
    """
    return sum(1 for agent in agents if agent.state == state)


@overload
def state_distribution(agents: Iterable[Any], states: None = None) -> dict[Any, int]: ...


@overload
def state_distribution(agents: Iterable[Any], states: Iterable[EnumT]) -> dict[EnumT, int]: ...


def state_distribution(
    agents: Iterable[Any], states: Iterable[Enum] | None = None
) -> dict[Any, int]:
    """Count the agents in every state.

    Args:
        agents: Any objects with a ``state``.
        states: The states to report, in this order. By default all members of the enum that the
            first agent's state belongs to (`AgentState` for no agents or plain texts).

    Returns:
        ``{state: count}`` with an entry for every state, also those that no agent is in.

    Raises:
        UnknownStateError: If an agent is in a state that is not reported; the counts would not add
            up.
    """
    population = list(agents)
    counts = dict.fromkeys(_enum_of(population) if states is None else states, 0)
    found = Counter(agent.state for agent in population)
    unknown = [state for state in found if state not in counts]
    if unknown:
        stray = next(agent for agent in population if agent.state == unknown[0])
        raise UnknownStateError(
            f"agent {agent_name(stray)!r} is in state {unknown[0]!r}, which is not among the "
            f"states counted ({', '.join(map(state_text, counts))}): name all states in 'states'"
        )

    for state, count in found.items():
        counts[state] += count

    return counts


def _enum_of(population: list[Any]) -> Iterable[Enum]:
    if population and isinstance(population[0].state, Enum):
        return type(population[0].state)
    return AgentState
