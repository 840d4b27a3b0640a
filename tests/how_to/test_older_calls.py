"""Calls written for an engine with another order of arguments."""

import asyncio
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from prism.statechart import AgentState

Load = Callable[..., ModuleType]


@pytest.fixture
def agent() -> SimpleNamespace:
    """Return an agent in its initial state."""
    return SimpleNamespace(state=AgentState.IDLE)


def test_an_older_call_shows_the_new_call(load: Load, agent: SimpleNamespace) -> None:
    """An older call is refused with the call of the guide, which works."""
    before, after = load("older-calls", "-"), load("older-calls")
    vars(before)["chart"] = after.chart
    with pytest.raises(TypeError, match=r"write chart\.fire\(agent, 'feed_ready', context\)"):
        before.step(agent)
    assert agent.state is AgentState.IDLE
    assert after.step(agent) is agent.state is AgentState.SCROLLING


def test_assigning_what_fire_returned_changes_nothing(load: Load) -> None:
    """A caller that also assigns the returned state records nothing twice."""
    chart = load("older-calls").chart
    agent = SimpleNamespace(state=AgentState.IDLE, state_history=[], ticks_in_state=3)
    agent.state = chart.fire(agent, "feed_ready")
    assert (agent.state, agent.ticks_in_state, len(agent.state_history)) == (
        AgentState.SCROLLING,
        0,
        1,
    )


def test_two_values_for_the_agent_are_refused_by_python(load: Load, agent: SimpleNamespace) -> None:
    """A trigger in place of the agent, with agent= as well, is a TypeError of Python."""
    with pytest.raises(TypeError, match="multiple values for argument 'agent'"):
        load("older-calls").chart.fire("feed_ready", agent=agent)
    assert agent.state is AgentState.IDLE


def test_a_state_as_text_is_recognised_by_the_trigger_after_it(load: Load) -> None:
    """A state as text is recognised by the trigger after it, else it counts as an event."""
    chart, agent = load("older-calls").chart, SimpleNamespace(state="idle")
    with pytest.raises(TypeError, match=r"write chart\.fire\(agent, 'feed_ready', context\)"):
        chart.fire(agent, agent.state, "feed_ready")
    assert chart.fire(agent, agent.state, "about") is None
    assert agent.state == "idle"


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ({}, "needs a reasoner"),
        ({"current_state": AgentState.IDLE, "context": None}, "takes no current state"),
    ],
)
def test_afire_without_a_reasoner_shows_the_call(
    named: dict[str, Any], problem: str, load: Load, agent: SimpleNamespace
) -> None:
    """afire without a reasoner raises an error that shows the call to write."""
    with pytest.raises(
        TypeError,
        match=rf"afire {problem}.* write await chart\.afire\(agent, 'feed_ready', context, reaso",
    ):
        asyncio.run(load("older-calls").chart.afire(trigger="feed_ready", agent=agent, **named))


def test_a_context_may_be_a_state(load: Load, agent: SimpleNamespace) -> None:
    """A state may be passed as context."""
    assert load("older-calls").chart.fire(agent, "feed_ready", agent.state) is AgentState.SCROLLING
