"""``prism memory`` as a user runs it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from prism.programs.thinking import Memory
from tests.kit.commands import Prism

DOCUMENT = {
    "working_memory": {"alice": "adventurous", "friends": ["bob", "carol"]},
    "note": "by hand",
    "storage": {"plot_1": "Alice finds a letter", "plot_2": "Bob follows the map"},
    "state": "executing",
    "thinking_log_001": "Where does the letter lead?",
    "prism": {"schema": 2, "cycle": 4, "next_thought": 2, "used": {"alice": 3}},
}


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """Return a memory."""
    path = tmp_path / "memory"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_show(prism: Prism, memory: Path) -> None:
    """State, sizes and tokens of each memory, the thoughts, and storage are shown."""
    ended = prism("memory", "show", memory)
    assert (ended.status, ended.err) == (0, "")
    for text in (
        *("executing", "alice", "adventurous", "friends", '["bob","carol"]'),
        *("thinking_log_001", "Where does the letter lead?", "plot_2", "Bob follows the map"),
    ):
        assert text in ended.out


def test_show_as_json(prism: Prism, memory: Path) -> None:
    """The same as data."""
    listing: Any = prism("memory", "show", memory, "--json").rows
    assert (listing["state"], listing["cycle"]) == ("executing", 4)
    assert [(each["where"], each["tag"]) for each in listing["entries"]] == [
        *(("working memory", "alice"), ("working memory", "friends")),
        ("thought", "thinking_log_001"),
        *(("storage", "plot_1"), ("storage", "plot_2")),
    ]


def test_search(prism: Prism, memory: Path) -> None:
    """Working memory, thoughts and storage are searched, and the best match comes first."""
    ended = prism("memory", "search", memory, "letter", "alice", "--json")
    assert ended.status == 0
    first, *others = ended.rows
    assert (first["where"], first["tag"]) == ("storage", "plot_1")
    assert {each["tag"] for each in others} == {"alice", "thinking_log_001"}
    assert "adventurous" in prism("memory", "search", memory, "alice").out
    assert len(prism("memory", "search", memory, "letter", "--json", "--most", 1).rows) == 1


def test_search_without_matches(prism: Prism, memory: Path) -> None:
    """Nothing found is exit status 1."""
    ended = prism("memory", "search", memory, "nothing")
    assert (ended.status, ended.out) == (1, "")
    assert "nothing in the memory" in ended.err
    assert prism("memory", "search", memory, "nothing", "--json").rows == []


@pytest.mark.parametrize("command", ["show", "search"])
def test_there_is_no_memory(prism: Prism, command: str) -> None:
    """A memory that does not exist is refused by each command, and none is made."""
    words = ["alice"] if command == "search" else []
    ended = prism("memory", command, "nothing.json", *words)
    assert ended.status == 2
    assert "nothing.json: this memory does not exist" in ended.err
    assert list(prism.folder.iterdir()) == []


def test_a_damaged_memory(prism: Prism, memory: Path) -> None:
    """A damaged memory is shown from its backup, with a line that names both files."""
    with Memory.open(memory) as opened:
        opened.end_cycle()
        opened.commit()
    memory.write_bytes(b"{")
    ended = prism("memory", "show", memory)
    assert ended.status == 0
    assert ended.err.startswith("prism: ")
    assert "memory, line 1: is not valid JSON" in ended.err
    assert "memory.bak" in ended.err
    assert len(ended.err.splitlines()) == 1
    for backup in prism.folder.glob("*.bak"):
        backup.unlink()
    assert prism("memory", "show", memory).status == 2


def test_hostile_memories(prism: Prism) -> None:
    """What a memory says reaches no terminal as it is."""
    evil = "\x1b]0;x\x07\x1b[31m\u202e"
    path = prism.folder / os.fsdecode(b"m\xe9.json")
    path.write_text(
        json.dumps(
            {
                "working_memory": {"a": evil},
                "storage": {"b": evil},
                "state": evil,
                evil: 1,
                "thinking_log_001": evil,
            }
        )
    )
    for line in (("show", path), ("search", path, "x", "a", "b", "31m")):
        ended = prism("memory", *line)
        assert ended.status == 0
        assert "x" in ended.out
        assert not any(letter in ended.out for letter in "\x1b\x07\u202e")


def test_one_memory_is_shown_whole(prism: Prism) -> None:
    """With a tag the whole value is shown, and its versions."""
    with Memory.open(prism.folder / "memory.json") as memory:
        memory.save("alice", "young " * 60)
        memory.end_cycle()
        memory.end_cycle()
        memory.save("alice", "old " * 60)
        memory.commit()
    shown = prism("memory", "show", "memory.json", "alice", "--json").rows
    values = [(row["where"], row["value"]) for row in shown]
    assert values == [("storage", "old " * 60), ("version 1", "young " * 60)]
    assert prism("memory", "show", "memory.json", "bob").status == 1
