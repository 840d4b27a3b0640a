"""What a record keeps of a context."""

import json
from datetime import datetime
from enum import Enum
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from prism.statechart import identify
from prism.statechart.states import AgentState


class Kind(str, Enum):  # noqa: UP042 - the older kind of enum, whose str() is not its text
    NEWS = "news"


def made(name: str, base: str = "Thing", **fields: Any) -> Any:
    """Return an object of a class of that name, whose base class has another one."""
    return type(name, (type(base, (SimpleNamespace,), {}),), {})(**fields)


POST = made("Post", post_id="p1", text="a long text that no record needs")
NOTHING = made("Nothing")

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
    (made("FeedItem", id=4, post=POST), {"feed_item_id": 4}),
    (made("DirectMessage", direct_message_id="d9", id="row 7"), {"direct_message_id": "d9"}),
    (made("Walker", unique_id=3), {"walker_id": 3}),
    (made("Repost", post_id="p1", id="r1"), {"post_id": "p1"}),
    (made("RankedRepost", "Repost", post_id="p1", id="r1"), {"post_id": "p1"}),
    (made("UrgentTicket", "Ticket", ticket_id=7), {"ticket_id": 7}),
    (SimpleNamespace(id=("a", 1)), {"simple_namespace_id": "('a', 1)"}),
    (NOTHING, {"type": "Nothing"}),
    ({"share": Fraction(1, 2)}, {"share": 0.5}),
    ({"thing": NOTHING}, {"thing": "Nothing"}),
    ({"at": datetime(2026, 1, 2, 3, 4, 5)}, {"at": "2026-01-02T03:04:05"}),
    (UUID(int=7), {"value": "00000000-0000-0000-0000-000000000007"}),
]


@pytest.mark.parametrize(("context", "kept"), CONTEXTS, ids=lambda value: repr(value)[:40])
def test_identify_keeps_identifying_fields(context: Any, kept: dict[str, Any] | None) -> None:
    """A context is reduced to plain data that identifies it."""
    assert identify(context) == kept
    assert json.loads(json.dumps(identify(context))) == kept
