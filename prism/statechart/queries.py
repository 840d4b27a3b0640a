"""Questions about a population of agents, each one pass over it (specification, FR-7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any

from prism.errors import FieldValueError, UnknownStateError
from prism.statechart._nesting import State
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
    if chart is not None:
        return sum(1 for agent in agents if chart.is_in(agent, state))
    return sum(1 for agent in agents if agent.state == state)


def state_distribution(
    agents: Iterable[Any],
    states: Iterable[Enum] | None = None,
    *,
    chart: Statechart[Any] | None = None,
    depth: int | None = None,
) -> dict[Any, int]:
    """Count the agents in every state.

    Args:
        agents: Any objects with a ``state``.
        states: The states to report, in this order. By default all members of the enum that the
            first agent's state belongs to (`AgentState` for no agents or plain texts).
        chart: The agents' chart, instead of ``states``: its states are reported.
        depth: The level of the chart's tree to report: 1 for the outermost states. A state without
            states inside is reported on every level below its own. By default the innermost states.

    Returns:
        ``{state: count}`` with an entry for every state, including those without agents. An agent
        in several regions counts in each of them.

    Raises:
        UnknownStateError: If an agent is in a state that is not reported; the counts would not add
            up.
        FieldValueError: If the depth is less than 1, or is given without a chart.
    """
    if depth is not None and (chart is None or depth < 1):
        raise FieldValueError(f"depth needs a chart, and is 1 or more, got {depth!r}")
    population = list(agents)
    reported: Iterable[Any] = AgentState if states is None else states
    if chart is not None:
        reported = _level(chart.definition.hierarchy.states, depth or inf)
    elif states is None and population and isinstance(population[0].state, Enum):
        reported = type(population[0].state)

    counts = dict.fromkeys(reported, 0)
    for agent in population:
        active = (agent.state,) if chart is None else chart.active(agent.state)
        counted = counts.keys() & {*active}
        if not counted:
            raise UnknownStateError(
                f"agent {agent_name(agent)!r} is in state {agent.state!r}, which is not among the "
                f"states counted ({', '.join(map(state_text, counts))}): name all in 'states'"
            )
        for state in counted:
            counts[state] += 1
    return counts


def _level(states: Iterable[Any], depth: float) -> Iterator[Any]:
    """Yield the states on a level of a tree, and those above it that have none inside."""
    for each in states:
        if isinstance(each, State) and each.states and depth > 1:
            yield from _level(each.states, depth - 1)
        else:
            yield each.state if isinstance(each, State) else each
