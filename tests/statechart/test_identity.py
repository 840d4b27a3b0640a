"""What a record keeps of a context."""

import json
from dataclasses import dataclass
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


@dataclass
class Post:
    post_id: str
    text: str = "a long text that no record needs"


@dataclass
class FeedItem:
    id: int
    post: Post | None = None


@dataclass
class DirectMessage:
    direct_message_id: str
    id: str = "row 7"


@dataclass
class Walker:
    unique_id: int


@dataclass
class Repost:
    post_id: str
    id: str


class RankedRepost(Repost):
    """Is named by its base class."""


@dataclass
class Ticket:
    ticket_id: int


class UrgentTicket(Ticket):
    """Is named by its base class."""


class Nothing:
    """Has no identifier."""


CONTEXTS: list[tuple[Any, dict[str, Any] | None]] = [
    (None, None),
    ({"post_id": "p1"}, {"post_id": "p1"}),
    ({1: True, Kind.NEWS: None}, {"1": True, "news": None}),
    ({"post": Post("p1")}, {"post": "p1"}),
    ({"state": AgentState.IDLE}, {"state": "idle"}),
    ({"nested": {Kind.NEWS: Post("p1")}}, {"nested": {"news": "p1"}}),
    ({"posts": [Post("p1"), (Post("p2"),)]}, {"posts": ["p1", ["p2"]]}),
    pytest.param(
        {"tags": {"b", "a"}, "rest": frozenset({2})}, {"tags": ["a", "b"], "rest": [2]}, id="sets"
    ),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ("p1", {"value": "p1"}),
    (AgentState.RESTING, {"value": "resting"}),
    (Post("p1"), {"post_id": "p1"}),
    (FeedItem(4), {"feed_item_id": 4}),
    (DirectMessage("d9"), {"direct_message_id": "d9"}),
    (Walker(3), {"walker_id": 3}),
    (Repost("p1", "r1"), {"post_id": "p1"}),
    (RankedRepost("p1", "r1"), {"post_id": "p1"}),
    (UrgentTicket(7), {"ticket_id": 7}),
    (SimpleNamespace(id=("a", 1)), {"simple_namespace_id": "('a', 1)"}),
    (Nothing(), {"type": "Nothing"}),
    ({"share": Fraction(1, 2)}, {"share": 0.5}),
    ({"thing": Nothing()}, {"thing": "Nothing"}),
    ({"at": datetime(2026, 1, 2, 3, 4, 5)}, {"at": "2026-01-02T03:04:05"}),
    (UUID(int=7), {"value": "00000000-0000-0000-0000-000000000007"}),
]


@pytest.mark.parametrize(("context", "kept"), CONTEXTS, ids=lambda value: repr(value)[:40])
def test_identify_keeps_identifying_fields(context: Any, kept: dict[str, Any] | None) -> None:
    """A context is reduced to plain data that identifies it."""
    assert identify(context) == kept
    assert json.loads(json.dumps(identify(context))) == kept
