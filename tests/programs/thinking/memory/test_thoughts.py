"""Thoughts that were moved to storage, and come back."""

from pathlib import Path
from typing import Any

import pytest

from prism.programs.thinking import Memory


def test_a_thought_comes_back_to_its_place(tmp_path: Path) -> None:
    """The log is in the order of its numbers again, and is so in the file."""
    with Memory.open(tmp_path / "memory") as memory:
        keys = [
            memory.think(entry, key_prefix="thinking_log_", max_entries=9)
            for entry in ("first", "second", "third")
        ]
        for key in keys[:2]:
            memory.page_out(key)
        assert memory.page_in(keys[1], as_thought=True)
        assert [*memory.thoughts.values()] == ["second", "third"]
        assert memory.page_in(keys[0], as_thought=True)
        assert [key for key in memory.to_dict() if key in keys] == keys
        memory.commit()
    with Memory.open(tmp_path / "memory") as memory:
        assert [*memory.thoughts.items()] == [*zip(keys, ("first", "second", "third"), strict=True)]
        assert memory.working == {}
        assert memory.think("fourth", key_prefix="thinking_log_", max_entries=9)[-3:] == "004"


@pytest.mark.parametrize(
    ("tag", "value"), [("thinking_log_007", 7), ("thinking_log_notes", "x"), ("plan_007", "x")]
)
def test_only_a_thought_comes_back_as_one(tag: str, value: Any) -> None:
    """A value that is no text, or whose tag is no thought's key, is a memory."""
    memory = Memory.in_memory({"storage": {tag: value}})
    assert memory.page_in(tag, as_thought=True)
    assert (dict(memory.working), dict(memory.thoughts)) == ({tag: value}, {})


def test_what_is_in_the_log_is_not_replaced() -> None:
    """Where a thought was shortened, its whole text comes back as a memory."""
    memory = Memory.in_memory({"thinking_log_001": "a long thought"})
    memory.shorten("thinking_log_001", 6)
    assert memory.page_in("thinking_log_001", as_thought=True)
    assert dict(memory.thoughts) == {"thinking_log_001": "a long …"}
    assert memory.working == {"thinking_log_001": "a long thought"}
