"""Agents and triggers that cannot be meant."""

import asyncio
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest

from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition

S = AgentState
POST = {"post_id": "p1"}


class Post:
    """Something that an event is about."""


class Event(StrEnum):
    """Triggers as an enum of their own."""

    GO = "go"
    NONE = "nothing"


@pytest.fixture
def chart() -> Statechart[S]:
    """Return a chart with one move out of IDLE, which may be ambiguous."""
    return Statechart(
        S,
        [Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.IDLE, S.RESTING)],
        S.IDLE,
        decision_states=[S.IDLE],
    )


@pytest.fixture
def agent() -> SimpleNamespace:
    """Return an agent that has not moved."""
    return SimpleNamespace(state=S.IDLE, state_history=[], ticks_in_state=4)


def test_a_call_in_another_order_moves_nobody(
    chart: Any, agent: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    """What is no agent is refused; what is no trigger of the chart is told."""
    with pytest.raises(AttributeError, match="'str' object has no attribute 'state'"):
        chart.fire("go", agent)
    with pytest.raises(TypeError, match="current_state"):
        chart.fire(agent, "go", current_state=S.IDLE)
    with pytest.raises(TypeError, match="reasoner"):
        asyncio.run(chart.afire(agent, "go"))
    for misplaced in (S.IDLE, POST, Post(), 3, None):
        assert chart.fire(agent, misplaced, "go") is None
        assert f"no transition has the trigger {misplaced!r}" in caplog.text
    assert vars(agent) == {"state": S.IDLE, "state_history": [], "ticks_in_state": 4}


def test_a_trigger_may_be_of_an_enum(chart: Statechart[S], agent: SimpleNamespace) -> None:
    """Triggers of a text enum are triggers, those that do not apply included."""
    assert chart.fire(agent, Event.NONE, "about") is None
    assert chart.fire(agent, Event.GO, "about") is S.SCROLLING
