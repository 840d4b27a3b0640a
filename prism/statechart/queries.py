"""Questions about a population of agents, each one pass over it (specification, FR-7)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

from prism.errors import UnknownStateError
from prism.statechart.names import agent_name
from prism.statechart.states import AgentState, state_text

if TYPE_CHECKING:
    from prism.statechart.statechart import Statechart


def agents_in_state(
    state: Enum, agents: Iterable[Any], *, chart: Statechart[Any] | None = None
) -> int:
    """Count the agents that are in a state.

    Args:
        state: The state asked about.
        agents: Any objects with a ``state``.
        chart: Their chart, if the state may be a composite: agents in a state inside it are in it.
    """
    return sum(one.state == state if chart is None else chart.is_in(one, state) for one in agents)


def state_distribution(
    agents: Iterable[Any],
    states: Iterable[Enum] | None = None,
    *,
    chart: Statechart[Any] | None = None,
) -> dict[Any, int]:
    """Count the agents in every state.

    Args:
        agents: Any objects with a ``state``.
        states: The states to report, in this order. By default those without states inside of
            ``chart``, or else all members of the enum that the first agent's state belongs to
            (`AgentState` for no agents or plain texts).
        chart: The agents' chart, if it has states inside states: an agent counts in all of
            ``states`` that it is in.

    Returns:
        ``{state: count}`` with an entry for every state, including those without agents. An agent
        in several regions counts in each of them.

    Raises:
        UnknownStateError: If an agent is in a state that is not reported; the counts would not add
            up.
    """
    population = list(agents)
    if states is None:
        first = population[0].state if population else None
        enum = type(first) if isinstance(first, Enum) else AgentState
        states = enum if chart is None else chart.definition.states
    counts = dict.fromkeys(states, 0)
    for agent in population:
        active = {agent.state} if chart is None else {*chart.active(agent.state)}
        if counts.keys().isdisjoint(active):
            listing = ", ".join(map(state_text, counts))
            problem = f"is in state {agent.state!r}, which is not among those counted ({listing})"
            raise UnknownStateError(f"agent {agent_name(agent)!r} {problem}: name all in 'states'")
        for state in counts.keys() & active:
            counts[state] += 1
    return counts
