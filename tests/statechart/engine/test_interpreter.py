"""Committing a transition, and letting time pass."""

from collections import deque
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition
from tests.kit.moves import chart_of, snapshot

S = AgentState


def test_a_move_is_committed_whole(agent: Any) -> None:
    """A transition sets the state, resets the ticks, appends a record and returns the state."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), clock=lambda: 1769767200.0)
    agent.ticks_in_state = 4
    assert chart.fire(agent, "go", {"post_id": "p1"}) is S.SCROLLING
    assert (agent.state, agent.ticks_in_state) == (S.SCROLLING, 0)
    (entry,) = agent.state_history
    assert entry.to_dict() == {
        "from_state": "idle",
        "to_state": "scrolling",
        "trigger": "go",
        "timestamp": "2026-01-30T10:00:00Z",
        "context": {"post_id": "p1"},
    }


def test_the_action_runs_before_the_commit(agent: Any) -> None:
    """An action sees the agent in the source state, with its ticks and without the new record."""
    seen: list[Any] = []
    chart = chart_of(
        Transition(
            "go", S.IDLE, S.SCROLLING, action=lambda agent, _post: seen.append(snapshot(agent))
        )
    )
    agent.ticks_in_state = 4
    chart.fire(agent, "go")
    assert seen == [(S.IDLE, 4, [])]
    assert agent.state is S.SCROLLING


def test_history_is_pruned_first_in_first_out(agent: Any) -> None:
    """The history is a deque that holds the last max_history_depth moves."""
    agent.max_history_depth = 3
    chart = chart_of(Transition("go", S.IDLE, S.RESTING), Transition("go", S.RESTING, S.IDLE))
    for number in range(5):
        chart.fire(agent, "go", {"number": number})
    assert isinstance(agent.state_history, deque)
    assert [entry.context["number"] for entry in agent.state_history] == [2, 3, 4]


@pytest.mark.parametrize("with_action", [True, False])
def test_a_self_transition_only_runs_its_action(
    agent: Any, with_action: bool, events: list[Any]
) -> None:
    """It returns the state, whose time begins anew; nothing is recorded or logged."""
    ran: list[Any] = []
    action = (lambda *_: ran.append(1)) if with_action else None
    chart = chart_of(
        Transition("again", S.IDLE, S.IDLE, action=action), Transition("go", S.IDLE, S.RESTING)
    )
    chart.fire(type(agent)(), "go")
    events.clear()
    agent.ticks_in_state = 4
    for _ in range(2):
        assert chart.fire(agent, "again") is S.IDLE
    assert len(ran) == 2 * with_action
    assert snapshot(agent) == (S.IDLE, 0, [])
    assert events == []


@pytest.mark.parametrize(
    ("timeouts", "threshold", "ticks"), [({}, 3, 4), ({S.IDLE: 2}, 5, 3), ({S.RESTING: 1}, 3, 4)]
)
def test_a_timeout_fires_strictly_after_the_limit(
    agent: Any, timeouts: Any, threshold: int, ticks: int
) -> None:
    """The time-out fires on the first tick above the chart's limit, else the agent's own."""
    chart = chart_of(Transition("timeout", S.IDLE, S.SCROLLING), timeouts=timeouts)
    agent.timeout_threshold = threshold
    results = [chart.tick(agent, {"tick": number + 1}) for number in range(ticks)]
    assert results == [None] * (ticks - 1) + [S.SCROLLING]
    assert (agent.state, agent.ticks_in_state) == (S.SCROLLING, 0)
    assert agent.state_history[0].context == {"tick": ticks}


# Binding


@pytest.fixture
def declared() -> Statechart[S]:
    """Return a chart as a class declares it: without logger and clock."""
    return chart_of(
        Transition("go", S.IDLE, S.SCROLLING),
        Transition("ends", S.SCROLLING, S.IDLE, fails),
        clock=lambda: 0.0,
    )


def fails(agent: Any, context: Any) -> bool:
    raise LookupError("no such post")


def test_a_bound_chart_writes_to_its_own_log_at_its_own_time(
    declared: Statechart[S], agent: Any
) -> None:
    """A bound chart has its own name, logger and clock, and the other one keeps its own."""
    capture = LogCapture()
    bound = declared.bound("own", structlog.wrap_logger(None, [capture]), lambda: 60.0)
    bound.fire(agent, "go")
    bound.fire(agent, "ends")
    bound.machine.events["ends"].trigger(agent)
    assert agent.state_history[0].to_dict()["timestamp"] == "1970-01-01T00:01:00Z"
    assert [(entry["event"], entry["chart"]) for entry in capture.entries] == [
        ("statechart.transition", "own"),
        ("statechart.guard_failed", "own"),
        ("statechart.event_refused", "own"),
        ("statechart.guard_failed", "own"),
        ("statechart.event_refused", "own"),
    ]
    assert (declared.name, bound.name) == ("statechart", "own")
    assert bound.extended(name="statechart") == declared
