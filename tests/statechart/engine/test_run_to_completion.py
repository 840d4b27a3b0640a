"""Fires from inside an action wait until the transition has committed."""

from typing import Any

import pytest

from prism.errors import RunawayError
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition
from tests.kit.moves import chart_of, moves_of

S = AgentState


def test_a_fire_inside_an_action_is_queued(agent: Any) -> None:
    """A fire inside an action returns None and runs after the commit of the outer one."""
    seen: list[Any] = []

    def go_on(agent: Any, context: Any) -> None:
        seen.append(chart.fire(agent, "on", {"post_id": "p2"}))
        seen.append(agent.state)

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=go_on),
        Transition("on", S.SCROLLING, S.RESTING),
    )
    assert chart.fire(agent, "go", {"post_id": "p1"}) is S.RESTING
    assert seen == [None, S.IDLE]
    assert moves_of(agent) == [("idle", "go", "scrolling"), ("scrolling", "on", "resting")]
    assert [entry.context for entry in agent.state_history] == [
        {"post_id": "p1"},
        {"post_id": "p2"},
    ]


def test_queued_fires_run_in_order(agent: Any) -> None:
    """Queued fires run first in, first out, and those that no longer apply are dropped."""

    def fire_three(agent: Any, context: Any) -> None:
        for trigger in ("on", "nonsense", "on"):
            chart.fire(agent, trigger)

    def fire_last(agent: Any, context: Any) -> None:
        chart.fire(agent, "last")

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=fire_three),
        Transition("on", S.SCROLLING, S.EVALUATING, action=fire_last),
        Transition("on", S.EVALUATING, S.COMPOSING),
        Transition("last", S.EVALUATING, S.IDLE),
        Transition("last", S.COMPOSING, S.RESTING),
    )
    assert chart.fire(agent, "go") is S.RESTING
    assert [trigger for _, trigger, _ in moves_of(agent)] == ["go", "on", "on", "last"]


def test_an_endless_chain_is_stopped(agent: Any) -> None:
    """Endless fires from actions end in an error that names chart, agent, trigger and cure."""

    def again(agent: Any, context: Any) -> None:
        chart.fire(agent, "go")

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=again),
        Transition("go", S.SCROLLING, S.IDLE, action=again),
        Transition("stop", "*", S.RESTING),
        name="c",
    )
    with pytest.raises(
        RunawayError,
        match=r"chart 'c': .* agent 'a1' fired 1000 .* 'go': make one of the actions stop",
    ):
        chart.fire(agent, "go")
    assert chart.fire(agent, "stop") is S.RESTING
    assert chart.fire(agent, "stop") is S.RESTING


def test_an_interrupt_inside_a_chain_keeps_what_was_committed(agent: Any) -> None:
    """An exception in a queued fire keeps earlier transitions and drops the rest of the queue."""

    def stop(agent: Any, context: Any) -> None:
        raise KeyboardInterrupt

    def queue_two(agent: Any, context: Any) -> None:
        chart.fire(agent, "on")
        chart.fire(agent, "later")

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=queue_two),
        Transition("on", S.SCROLLING, S.EVALUATING, action=stop),
        Transition("later", "*", S.COMPOSING),
        Transition("rest", "*", S.RESTING),
    )
    with pytest.raises(KeyboardInterrupt):
        chart.fire(agent, "go")
    assert agent.state is S.SCROLLING
    assert chart.fire(agent, "rest") is S.RESTING
    assert len(agent.state_history) == 2
