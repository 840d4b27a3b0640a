"""What a record keeps of a context."""

import json
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePosixPath
from struct import pack as packed
from types import MappingProxyType, SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.randomness._stream import total_of
from prism.statechart import identify
from prism.statechart._identity import (
    MOST_SHARED_TEXTS,
    pack,
    rounded,
    share,
    shared_texts,
    unpack,
)
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


class Nothing:
    """Has no identifier."""


CONTEXTS: list[tuple[Any, dict[str, Any] | None]] = [
    (None, None),
    ({}, {}),
    ({"post_id": "p1"}, {"post_id": "p1"}),
    ({"post_id": "p1", "rank": 3}, {"post_id": "p1", "rank": 3}),
    ({1: True, Kind.NEWS: None}, {"1": True, "news": None}),
    ({"post": Post("p1")}, {"post": "p1"}),
    ({"item": FeedItem(4, Post("p1"))}, {"item": 4}),
    ({"state": AgentState.IDLE}, {"state": "idle"}),
    ({"nested": {Kind.NEWS: Post("p1")}}, {"nested": {"news": "p1"}}),
    ({"posts": [Post("p1"), (Post("p2"),)]}, {"posts": ["p1", ["p2"]]}),
    pytest.param(
        {"tags": {"b", "a"}, "rest": frozenset({2})}, {"tags": ["a", "b"], "rest": [2]}, id="sets"
    ),
    ({"last": deque(["a"], maxlen=2)}, {"last": ["a"]}),
    (OrderedDict(a=1), {"a": 1}),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ("p1", {"value": "p1"}),
    (AgentState.RESTING, {"value": "resting"}),
    (2.5, {"value": 2.5}),
    (Post("p1"), {"post_id": "p1"}),
    (FeedItem(4), {"feed_item_id": 4}),
    (DirectMessage("d9"), {"direct_message_id": "d9"}),
    (Walker(3), {"walker_id": 3}),
    (Repost("p1", "r1"), {"post_id": "p1"}),
    (SimpleNamespace(id=("a", 1)), {"simple_namespace_id": "('a', 1)"}),
    (Nothing(), {"type": "Nothing"}),
    ({"share": Fraction(1, 2)}, {"share": 0.5}),
    ({"thing": Nothing()}, {"thing": "Nothing"}),
]


@pytest.mark.parametrize(("context", "kept"), CONTEXTS, ids=lambda value: repr(value)[:40])
def test_identify_keeps_identifying_fields(context: Any, kept: dict[str, Any] | None) -> None:
    """A context is reduced to plain data that identifies it."""
    assert identify(context) == kept
    assert json.loads(json.dumps(identify(context))) == kept


@pytest.mark.parametrize(("context", "kept"), CONTEXTS, ids=lambda value: repr(value)[:40])
def test_unpack_undoes_pack(context: Any, kept: dict[str, Any] | None) -> None:
    """Packing a context and unpacking it gives what identify gives."""
    assert unpack(*pack(context)) == kept


def test_one_key_is_packed_bare() -> None:
    """A context with one key costs a record its key and its value, without a container."""
    assert pack({"post_id": "p1"}) == ("post_id", "p1")
    assert pack(Post("p1")) == ("post_id", "p1")
    assert pack({"a": 1, "b": "x"}) == (("a", "b"), (1, "x"))


def test_equal_texts_are_shared() -> None:
    """Agents that saw the same post share one text of its id."""
    spelled = ["".join(["post", "_", "77"]) for _ in range(2)]
    assert spelled[0] is not spelled[1]
    kept = [pack({"post_id": text})[1] for text in spelled] + [pack(Post(spelled[1]))[1]]
    assert kept[0] is kept[1] is kept[2]


def test_unpack_gives_a_new_dict() -> None:
    """Changing an unpacked context does not change the record it came from."""
    keys, value = pack({"a": 1, "b": 2})
    first = unpack(keys, value)
    assert first is not None
    first["a"] = 9
    assert unpack(keys, value) == {"a": 1, "b": 2}


def test_objects_of_one_class_may_be_identified_differently() -> None:
    """Each object is read by the identifier it has, whatever others of its class had."""
    anonymous, post, row = (
        SimpleNamespace(x=1),
        SimpleNamespace(post_id="p1"),
        SimpleNamespace(id=2),
    )
    seen: list[Mapping[str, Any] | None] = [
        identify(item) for item in (anonymous, post, row, post, anonymous)
    ]
    assert seen == [
        {"type": "SimpleNamespace"},
        {"post_id": "p1"},
        {"simple_namespace_id": 2},
        {"post_id": "p1"},
        {"type": "SimpleNamespace"},
    ]


class Detached:
    """Like a database row whose session is gone."""

    @property
    def id(self) -> int:
        raise RuntimeError("detached")


ROUND: dict[str, Any] = {}
ROUND["self"] = ROUND


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        ({"post_id": UUID(int=7)}, {"post_id": "00000000-0000-0000-0000-000000000007"}),
        ({"at": datetime(2026, 1, 2, 3, 4, 5)}, {"at": "2026-01-02T03:04:05"}),
        ({"weight": Decimal("1.50")}, {"weight": "1.50"}),
        ({"file": PurePosixPath("a/b")}, {"file": "a/b"}),
        (UUID(int=7), {"value": "00000000-0000-0000-0000-000000000007"}),
        (Detached(), {"type": "Detached"}),
    ],
)
def test_values_that_are_no_json_are_kept_as_text(context: Any, kept: dict[str, Any]) -> None:
    """Dates, UUIDs, numbers and paths are recorded as text; an object without an id by its type."""
    assert identify(context) == kept


def test_endless_nesting_ends() -> None:
    """A mapping that holds itself is recorded to a bounded depth."""
    assert "dict" in str(identify(ROUND))


def test_what_is_read_from_a_record_is_new() -> None:
    """Changing a context that was read changes no record."""
    keys, value = pack({"tags": ["x"], "more": {"a": [1]}})
    read = unpack(keys, value)
    assert read is not None
    read["tags"].append("z")
    read["more"]["a"].append(2)
    assert unpack(keys, value) == {"tags": ["x"], "more": {"a": [1]}}


def test_sharing_texts_stays_bounded() -> None:
    """However many texts are shared, only so many are kept."""
    for number in range(20_000):
        share(f"post_{number}")
    assert len(shared_texts) <= MOST_SHARED_TEXTS
    one, other = "".join(["po", "st"]), "".join(["pos", "t"])
    assert share(one) is share(other)


@given(st.floats(0, 1) | st.integers(0, 2 * 10**6).map(lambda halves: halves / 2e6))
def test_shares_are_rounded_as_python_rounds_them(share: float) -> None:
    """The faster way to round gives the same bits, at halves, too."""
    told = rounded(["one", "other"], [share, 1 - share])
    assert packed("dd", *told.values()) == packed("dd", round(share, 6), round(1 - share, 6))


@given(st.lists(st.floats(1e-9, 1e9) | st.integers(1, 1000), min_size=1, max_size=4))
def test_weights_of_any_size_are_rounded_as_shares(weights: list[float]) -> None:
    """Each option gets its share of the sum of the weights, rounded as Python rounds it."""
    told = rounded("abcd"[: len(weights)], weights)
    total = total_of(weights)
    expected = [round(weight / total, 6) for weight in weights]
    assert packed("d" * len(weights), *told.values()) == packed("d" * len(weights), *expected)
