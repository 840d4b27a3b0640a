"""Transitions and the records they leave."""

import pickle
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest

from prism.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import (
    StateTransition,
    Transition,
)

S = AgentState
NOON = datetime(2026, 1, 30, 12, 0, tzinfo=UTC)


def record(**changes: Any) -> StateTransition:
    fields = {"from_state": S.IDLE, "to_state": S.SCROLLING, "trigger": "go"}
    fields |= {"timestamp": NOON, "context": None}
    return StateTransition(**{**fields, **changes})


@pytest.mark.parametrize(
    "given",
    [
        datetime(2026, 1, 30, 12, 0, 0, 123456),
        datetime(2026, 1, 30, 12, 0, 0, 123456, tzinfo=UTC),
        datetime(2026, 1, 30, 14, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_record_keeps_time_as_utc(given: datetime) -> None:
    """Times of any zone, and naive ones, are kept as aware UTC to the microsecond."""
    kept = record(timestamp=given).timestamp
    assert kept == datetime(2026, 1, 30, 12, 0, 0, 123456, tzinfo=UTC)
    assert kept.tzinfo is UTC


def test_record_is_a_dataclass() -> None:
    """Tools for dataclasses know its fields; none of them can be assigned."""
    entry = record(context={"post_id": "p1"})
    names = ["from_state", "to_state", "trigger", "timestamp", "context"]
    assert [each.name for each in fields(entry)] == names
    assert replace(entry, trigger="no", context=None) == record(trigger="no")
    match entry:
        case StateTransition(from_state=S.IDLE, context={"post_id": post}):
            assert post == "p1"
    with pytest.raises(AttributeError):
        entry.trigger = "no"  # type: ignore[misc]


class Door(StrEnum):
    """A door, and where it ends."""

    OPEN = "open"
    SHUT = "shut"
    LOCKED = "locked"
    GONE = "gone"


def arrows(chart: Statechart[Door]) -> list[str]:
    return [str(item) for item in chart.transitions]


def test_a_transition_may_have_several_sources() -> None:
    """A list of sources stands for one transition from each."""
    given = [Transition("kicked", [Door.SHUT, Door.LOCKED], Door.OPEN)]
    chart = Statechart(Door, given, Door.OPEN, final_states=[Door.GONE])
    assert arrows(chart) == ["shut --kicked--> open", "locked --kicked--> open"]
    assert str(given[0]) == "shut, locked --kicked--> open"
    assert Statechart.from_dict(chart.to_dict()).transitions == chart.transitions
    assert pickle.loads(pickle.dumps(chart)) == chart
