"""Guards and actions that raise."""

import asyncio
import logging
from typing import Any

import pytest

from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition

S = AgentState


NEVER_CAUGHT = [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]


def broken(agent: Any, context: Any) -> Any:
    raise LookupError("no such post")


def chart_of(*moves: Transition[S], **options: Any) -> Statechart[S]:
    return Statechart(S, moves, S.IDLE, **options)


def snapshot(agent: Any) -> tuple[Any, ...]:
    """Return all that a move could change."""
    return agent.state, agent.ticks_in_state, list(agent.state_history)


FAULTS = pytest.mark.parametrize(
    ("move", "event", "state"),
    [
        (Transition("go", S.IDLE, S.SCROLLING, guard=broken), "statechart.guard_failed", S.IDLE),
        (
            Transition("go", S.IDLE, S.SCROLLING, action=broken),
            "statechart.action_failed",
            S.SCROLLING,
        ),
    ],
)


@FAULTS
def test_a_fault_is_logged_by_configured_structlog(
    agent: Any, move: Any, event: str, state: S, events: list[Any]
) -> None:
    """A fault is logged once with the exception and the place, whatever the agent does next."""
    chart_of(move, name="c").fire(agent, "go")
    (entry,) = [entry for entry in events if entry["log_level"] == "error"]
    assert isinstance(entry.pop("exc_info"), LookupError)
    assert entry == {
        "event": event,
        "log_level": "error",
        "error": "LookupError: no such post",
        "chart": "c",
        "agent_id": "a1",
        "from_state": "idle",
        "to_state": "scrolling",
        "trigger": "go",
    }
    assert agent.state is state


@FAULTS
def test_a_fault_is_logged_by_standard_logging(
    agent: Any, move: Any, event: str, state: S, caplog: pytest.LogCaptureFixture
) -> None:
    """Without structlog a fault reaches the logger prism.statechart with its traceback."""
    chart_of(move).fire(agent, "go")
    (entry,) = caplog.records
    assert (entry.name, entry.levelno) == ("prism.statechart", logging.ERROR)
    assert event in caplog.text
    assert "in broken" in caplog.text


@FAULTS
def test_a_fault_propagates_in_a_strict_chart(agent: Any, move: Any, event: str, state: S) -> None:
    """In a strict chart the exception propagates and nothing has changed."""
    chart = chart_of(move, Transition("on", S.IDLE, S.RESTING), strict=True)
    agent.ticks_in_state = 4
    before = snapshot(agent)
    with pytest.raises(LookupError, match="no such post"):
        chart.fire(agent, "go")
    assert snapshot(agent) == before
    assert chart.fire(agent, "on") is S.RESTING


def test_a_result_that_has_no_truth_value_counts_as_false(
    agent: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A guard whose result raises when its truth is asked is a guard that raised."""

    class Unclear:
        def __bool__(self) -> bool:
            raise ValueError("ambiguous")

    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING, lambda *_: Unclear()))
    assert chart.fire(agent, "go") is None
    assert chart.enabled_targets(agent, "go") == []
    assert caplog.text.count("ValueError: ambiguous") == 2


@pytest.mark.parametrize("error", NEVER_CAUGHT)
@pytest.mark.parametrize("where", ["guard", "action"])
@pytest.mark.parametrize("strict", [True, False])
def test_what_must_stop_the_program_always_propagates(
    agent: Any, error: Any, where: str, strict: bool
) -> None:
    """Interrupts, exits and cancellations propagate, log nothing and change nothing."""

    def stop(agent: Any, context: Any) -> Any:
        raise error

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, **{where: stop}),
        Transition("on", S.IDLE, S.RESTING),
        strict=strict,
    )
    agent.ticks_in_state = 4
    before = snapshot(agent)
    with pytest.raises(error):
        chart.fire(agent, "go")
    assert snapshot(agent) == before
    assert chart.fire(agent, "on") is S.RESTING
