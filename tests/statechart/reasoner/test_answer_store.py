"""Keeping replies from one run to the next."""

import json
from typing import Any

import pytest

from prism.statechart.reasoner._answer_store import ReplyCache
from prism.statechart.reasoner._model_client import Reply

REPLY = Reply("yes", {"q0": {"a": 1.0}})


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


def test_a_stored_reply_is_read_again() -> None:
    """A stored reply is read again, by another run with the same store, too."""
    store = Store()
    cache = ReplyCache(store, None)
    key = cache.key("m1", "what next?")
    assert cache.get(key) is None
    cache.put(key, REPLY)
    assert ReplyCache(store, None).get(key) == REPLY


def test_a_key_depends_on_every_part() -> None:
    """Keys of different parts differ, however the parts are cut."""
    cache = ReplyCache(Store(), None)
    parts: list[tuple[Any, ...]] = [
        ("a", "b"),
        ("ab",),
        ("a", "b", None),
        ("a", "b", 0),
        (["a", "b"],),
    ]
    assert len({cache.key(*part) for part in parts}) == len(parts)
    assert cache.key("a", "b") == ReplyCache(Store(), None).key("a", "b")


def test_replies_that_were_stored_with_their_cost_are_read() -> None:
    """A stored text that holds more than a reply, as earlier versions wrote, is one."""
    store = Store()
    cache = ReplyCache(store, None)
    key = cache.key("what next?")
    store[key] = json.dumps({"text": "yes", "answers": {"q0": {"a": 1.0}}, "attempts": 2})
    assert cache.get(key) == REPLY


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
def test_a_text_that_is_not_a_reply_counts_as_none(text: str) -> None:
    """A text in the store that is not a reply counts as none, and is replaced by the next."""
    store = Store()
    cache = ReplyCache(store, None)
    key = cache.key("what next?")
    store[key] = text
    assert cache.get(key) is None
    cache.put(key, REPLY)
    assert json.loads(store[key])["text"] == "yes"


@pytest.mark.parametrize("failing", ["get", "put"])
def test_a_store_that_raises_is_reported_once_and_used_no_more(
    failing: str, logger: Any, capture: Any
) -> None:
    """A store that raises never raises here: one warning says so, and it is not used again."""
    store = Store(failing)
    cache = ReplyCache(store, logger)
    key = cache.key("what next?")
    for _ in range(3):
        assert cache.get(key) is None
        cache.put(key, REPLY)
    assert store.used == (1 if failing == "get" else 2)
    assert capture.entries == [
        {"event": "reasoner.cache_failed", "log_level": "warning", "error": "OSError: disk full"}
    ]
