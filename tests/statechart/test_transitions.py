"""Transitions, the records they leave, and what these keep of a context."""

import json
import pickle
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, StrEnum
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from prism.errors import FieldValueError
from prism.statechart import Statechart, identify
from prism.statechart.states import AgentState
from prism.statechart.transitions import StateTransition, Transition

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
    """Times of any zone, and naive ones, are kept as aware UTC, and so are those of a clock."""
    for kept in (record(timestamp=given), recorded_at(given)):
        assert kept.timestamp == datetime(2026, 1, 30, 12, 0, 0, 123456, tzinfo=UTC)
        assert kept.timestamp.tzinfo is UTC


def recorded_at(time: Any) -> StateTransition:
    """Return what a chart records when its clock returns a time."""
    chart = Statechart(S, [Transition("go", S.IDLE, S.SCROLLING)], S.IDLE, clock=lambda: time)
    agent = chart.adopt(SimpleNamespace(state=S.IDLE))
    chart.fire(agent, "go")
    (kept,) = agent.state_history
    assert isinstance(kept, StateTransition)
    return kept


@pytest.mark.parametrize("time", [None, float("nan"), 1.7e12, "noon"])
def test_what_is_no_time_of_a_clock_is_named(time: Any) -> None:
    """A record cannot say when it was made if its clock counts milliseconds, for instance."""
    kept = recorded_at(time)
    with pytest.raises(FieldValueError, match=f"the clock returned {time!r}: .* seconds since"):
        kept.to_dict()


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


Door = StrEnum("Door", ["OPEN", "SHUT", "LOCKED", "GONE"])
"""A door, and where it ends."""


def arrows(chart: Statechart[Door]) -> list[str]:
    return [str(item) for item in chart.transitions]


def test_a_transition_may_have_several_sources() -> None:
    """A list of sources stands for one transition from each."""
    given = [Transition("kicked", [Door.SHUT, Door.LOCKED], Door.OPEN)]
    chart = Statechart(Door, given, Door.OPEN, final_states=[Door.GONE])
    assert arrows(chart) == ["shut --kicked--> open", "locked --kicked--> open"]
    assert str(given[0]) == "shut, locked --kicked--> open"
    one: Any = [Door.SHUT], [Door.OPEN]
    assert Transition("opened", *one) == Transition("opened", Door.SHUT, Door.OPEN)
    assert Statechart.from_dict(chart.to_dict()).transitions == chart.transitions
    assert pickle.loads(pickle.dumps(chart)) == chart


class Kind(str, Enum):  # noqa: UP042 - the older kind of enum, whose str() is not its text
    NEWS = "news"


def thing(name: str, base: str = "Thing", **fields: Any) -> Any:
    """Return an object of a class of that name, whose base class has another one."""
    return type(name, (type(base, (SimpleNamespace,), {}),), {})(**fields)


POST = thing("Post", post_id="p1", text="a long text that no record needs")
NOTHING = thing("Nothing")
DETACHED = type("Detached", (), {"id": property(lambda row: 1 / 0)})()

CONTEXTS: list[tuple[Any, dict[str, Any] | None]] = [
    (None, None),
    ({"post_id": "p1"}, {"post_id": "p1"}),
    ({1: True, Kind.NEWS: None}, {"1": True, "news": None}),
    ({"post": POST}, {"post": "p1"}),
    ({"state": AgentState.IDLE}, {"state": "idle"}),
    ({"nested": {Kind.NEWS: POST}}, {"nested": {"news": "p1"}}),
    ({"posts": [POST, (POST,)]}, {"posts": ["p1", ["p1"]]}),
    pytest.param(
        {"tags": {"b", "a"}, "rest": frozenset({2})}, {"tags": ["a", "b"], "rest": [2]}, id="sets"
    ),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ("p1", {"value": "p1"}),
    (AgentState.RESTING, {"value": "resting"}),
    (POST, {"post_id": "p1"}),
    (thing("FeedItem", id=4, post=POST), {"feed_item_id": 4}),
    (thing("DirectMessage", direct_message_id="d9", id="row 7"), {"direct_message_id": "d9"}),
    (thing("Walker", unique_id=3), {"walker_id": 3}),
    (thing("Repost", post_id="p1", id="r1"), {"post_id": "p1"}),
    (thing("RankedRepost", "Repost", post_id="p1", id="r1"), {"post_id": "p1"}),
    (thing("UrgentTicket", "Ticket", ticket_id=7), {"ticket_id": 7}),
    (SimpleNamespace(id=("a", 1)), {"simple_namespace_id": "('a', 1)"}),
    (NOTHING, {"type": "Nothing"}),
    ({"share": Fraction(1, 2)}, {"share": 0.5}),
    ({"rich": np.bool_(True), "poor": [np.bool_(False)]}, {"rich": True, "poor": [False]}),
    ({"prices": np.array([1, 2]), "now": np.array(1.5)}, {"prices": [1, 2], "now": 1.5}),
    ({"day": np.datetime64("2026-01-02")}, {"day": "2026-01-02"}),
    (thing("Row", row_id=np.int64(3)), {"row_id": 3}),
    ({"thing": NOTHING}, {"thing": "Nothing"}),
    ({"row": DETACHED, "post": POST}, {"row": "Detached", "post": "p1"}),
    ({"at": datetime(2026, 1, 2, 3, 4, 5)}, {"at": "2026-01-02T03:04:05"}),
    (UUID(int=7), {"value": "00000000-0000-0000-0000-000000000007"}),
]


@pytest.mark.parametrize(("context", "kept"), CONTEXTS, ids=lambda value: repr(value)[:40])
def test_identify_keeps_identifying_fields(context: Any, kept: dict[str, Any] | None) -> None:
    """A context is reduced to plain data that identifies it."""
    assert identify(context) == kept
    assert json.loads(json.dumps(identify(context))) == kept
