"""Questions about a population."""

from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import UnknownStateError
from prism.statechart.queries import agents_in_state, state_distribution
from prism.statechart.states import AgentState
from tests.statechart.nested.phone import Day, day

S = AgentState


def population(*states: Any) -> list[Any]:
    return [
        SimpleNamespace(state=state, agent_id=f"a{number}") for number, state in enumerate(states)
    ]


def test_every_state_is_in_the_distribution() -> None:
    """The distribution has every state in definition order, also those without an agent."""
    counts = state_distribution(iter(population(S.RESTING, S.IDLE, S.RESTING)))
    assert list(counts) == list(S)
    assert (counts[S.IDLE], counts[S.RESTING], counts[S.COMPOSING]) == (1, 2, 0)
    assert sum(counts.values()) == 3


def test_an_agent_outside_the_states_is_an_error() -> None:
    """An agent in a state that is not counted is an error with its name and the states."""
    message = (
        r"agent 'a1' is in state .*resting.*, which is not among the states counted \(idle\): "
        r"name all in"
    )
    with pytest.raises(UnknownStateError, match=message):
        state_distribution(population(S.IDLE, S.RESTING), [S.IDLE])


def test_composites_count_with_all_that_is_inside() -> None:
    """With their chart, agents count in every state that is active and counted."""
    chart, agents = day(), population(*[Day.ASLEEP] * 3)
    for agent in agents[1:]:
        chart.fire(agent, "wakes")
    chart.fire(agents[2], "opens")
    assert agents_in_state(Day.AWAKE, agents, chart=chart) == 2
    assert agents_in_state(Day.FEED, agents, chart=chart) == 1
    tops = [Day.ASLEEP, Day.AWAKE]
    assert state_distribution(agents, tops, chart=chart) == {Day.ASLEEP: 1, Day.AWAKE: 2}
    leaves = state_distribution(agents, chart=chart)
    assert [*leaves] == [*chart.definition.states] == [*state_distribution([], chart=chart)]
    counted = {Day.ASLEEP: 1, Day.IDLE: 1, Day.FEED: 1, Day.FRESH: 2}
    assert {state: count for state, count in leaves.items() if count} == counted
