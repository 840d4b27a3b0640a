"""Calls written for an engine with another order of arguments."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

from prism.statechart import AgentState

Load = Callable[..., ModuleType]


@pytest.fixture
def agent() -> SimpleNamespace:
    """Give an agent that has not moved."""
    return SimpleNamespace(state=AgentState.IDLE)


def test_the_call_before_tells_the_call_after(load: Load, agent: SimpleNamespace) -> None:
    """The older call is refused with the very call that the guide puts in its place, which moves the agent."""
    before, after = load("older-calls", "-"), load("older-calls")
    vars(before)["chart"] = after.chart
    with pytest.raises(TypeError, match=r"write chart\.fire\(agent, 'feed_ready', context\)"):
        before.step(agent)
    assert agent.state is AgentState.IDLE
    assert after.step(agent) is agent.state is AgentState.SCROLLING


def test_assigning_what_fire_returned_changes_nothing(load: Load) -> None:
    """A caller that goes on to assign the returned state records nothing twice."""
    chart = load("older-calls").chart
    agent = SimpleNamespace(state=AgentState.IDLE, state_history=[], ticks_in_state=3)
    agent.state = chart.fire(agent, "feed_ready")
    assert (agent.state, agent.ticks_in_state, len(agent.state_history)) == (AgentState.SCROLLING, 0, 1)


def test_two_values_for_the_agent_are_refused_by_python(load: Load, agent: SimpleNamespace) -> None:
    """A trigger in the agent's place besides a named agent is a TypeError, and the agent stays."""
    with pytest.raises(TypeError, match="multiple values for argument 'agent'"):
        load("older-calls").chart.fire("feed_ready", agent=agent)
    assert agent.state is AgentState.IDLE


def test_a_context_may_be_a_state(load: Load, agent: SimpleNamespace) -> None:
    """A state as context is a call like any other."""
    assert load("older-calls").chart.fire(agent, "feed_ready", agent.state) is AgentState.SCROLLING
