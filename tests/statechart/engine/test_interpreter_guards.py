"""Guards and actions that raise."""

import asyncio
from typing import Any

import pytest

from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition
from tests.kit.moves import chart_of, snapshot

S = AgentState


NEVER_CAUGHT = [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]


def broken(agent: Any, context: Any) -> Any:
    raise LookupError("no such post")


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
def test_a_fault_propagates_in_a_strict_chart(agent: Any, move: Any, event: str, state: S) -> None:
    """In a strict chart the exception propagates and nothing has changed."""
    chart = chart_of(move, Transition("on", S.IDLE, S.RESTING), strict=True)
    agent.ticks_in_state = 4
    before = snapshot(agent)
    with pytest.raises(LookupError, match="no such post"):
        chart.fire(agent, "go")
    assert snapshot(agent) == before
    assert chart.fire(agent, "on") is S.RESTING


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
