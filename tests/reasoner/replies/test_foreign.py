"""Replies that models gave to other programs, as public threads show them.

``tests/data/foreign_replies.jsonl`` has one reply a line, with the address of its thread; its first
line says how they were collected and labelled.
"""

import json
from pathlib import Path
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner._replies._reading import read_choice

_ABOUT, *REPLIES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "foreign_replies.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
LEAST_REPLIES = 150


def read(case: dict[str, Any]) -> str | None:
    """Return the option that is read in a reply; None if it is refused."""
    key, labels = case.get("key", "next_state"), case.get("labels")
    try:
        return str(read_choice(case["reply"], case["options"], key=key, labels=labels))
    except ReasonerError:
        return None


def test_no_foreign_reply_is_misread() -> None:
    """A reply to another program is read as a careful person reads it, or is refused."""
    assert [case for case in REPLIES if read(case) not in (case["expected"], None)] == []


def test_foreign_replies_are_many_and_have_addresses() -> None:
    """There are many replies, none twice, from many threads, each in one half only."""
    asked = {(case["reply"], tuple(case["options"])) for case in REPLIES}
    halves: dict[str, set[str]] = {}
    for case in REPLIES:
        halves.setdefault(case["thread"], set()).add(case["half"])
    assert len(REPLIES) >= LEAST_REPLIES
    assert len(asked) == len(REPLIES)
    assert all(address.startswith("https://github.com/") for address in halves)
    assert all(len(half) == 1 for half in halves.values())
