"""Keeping replies from one run to the next."""

import json
from typing import Any

import pytest

from prism.statechart.reasoner._answer_store import KeptReplies
from prism.statechart.reasoner._clients import Reply

REPLY = Reply("yes", {"q0": {"a": 1.0}}, "m1", "h1", 2, 30, 4)


class Store(dict[str, str]):
    """A store that fails in the given methods, and counts how often it is used."""

    def __init__(self, *failing: str) -> None:
        super().__init__()
        self.failing, self.used = failing, 0

    def get(self, key: str, default: Any = None) -> str | None:
        self._use("get")
        return super().get(key)

    def put(self, key: str, value: str) -> None:
        self._use("put")
        self[key] = value

    def _use(self, method: str) -> None:
        self.used += 1
        if method in self.failing:
            raise OSError("disk full")


def test_a_reply_is_kept_whole() -> None:
    """What was put comes back equal, to another run with the same store, too."""
    store = Store()
    kept = KeptReplies(store, None)
    key = kept.key("m1", "what next?")
    assert kept.get(key) is None
    kept.put(key, REPLY)
    assert KeptReplies(store, None).get(key) == REPLY


def test_a_key_depends_on_every_part() -> None:
    """Keys of different parts differ, however the parts are cut."""
    kept = KeptReplies(Store(), None)
    parts: list[tuple[Any, ...]] = [
        ("a", "b"),
        ("ab",),
        ("a", "b", None),
        ("a", "b", 0),
        (["a", "b"],),
    ]
    assert len({kept.key(*part) for part in parts}) == len(parts)
    assert kept.key("a", "b") == KeptReplies(Store(), None).key("a", "b")


def test_without_a_store_nothing_is_kept() -> None:
    """Without a store there are no keys and no replies."""
    kept = KeptReplies(None, None)
    key = kept.key("what next?")
    kept.put(key, REPLY)
    assert (key, kept.get(key)) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "null",
        "[]",
        "3",
        '{"words": "yes"}',
        '{"text": 3}',
        '{"answers": null}',
        '{"text": "yes"',
    ],
)
def test_what_cannot_be_read_is_not_kept(text: str) -> None:
    """A text in the store that is no reply counts as nothing, and is replaced by the next reply."""
    store = Store()
    kept = KeptReplies(store, None)
    key = kept.key("what next?")
    store[key or ""] = text
    assert kept.get(key) is None
    kept.put(key, REPLY)
    assert json.loads(store[key or ""])["text"] == "yes"


@pytest.mark.parametrize("failing", ["get", "put"])
def test_a_store_that_fails_is_reported_once_and_left(
    failing: str, logger: Any, capture: Any
) -> None:
    """A store that raises never raises here: one warning says so, and it is not used again."""
    store = Store(failing)
    kept = KeptReplies(store, logger)
    key = kept.key("what next?")
    for _ in range(3):
        assert kept.get(key) is None
        kept.put(key, REPLY)
    assert store.used == (1 if failing == "get" else 2)
    assert capture.entries == [
        {"event": "reasoner.cache_failed", "log_level": "warning", "error": "OSError: disk full"}
    ]
