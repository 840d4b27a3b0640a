"""``prism memory`` as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.kit.commands import Prism

DOCUMENT = {
    "working_memory": {"alice": "adventurous", "friends": ["bob", "carol"]},
    "storage": {"plot_1": "Alice finds a letter", "plot_2": "Bob follows the map"},
    "state": "executing",
    "thinking_log_001": "Where does the letter lead?",
    "prism": {"cycle": 4, "next_thought": 2, "used": {"alice": 3}},
}


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """Return a memory."""
    path = tmp_path / "memory.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def test_show(prism: Prism, memory: Path) -> None:
    """State, working memory, thoughts and storage are shown, or what stands under one tag."""
    ended = prism("memory", "show", memory)
    assert (ended.status, ended.err) == (0, "")
    for text in ("executing", "adventurous", "carol", "Where does the letter lead?", "plot_2"):
        assert text in ended.out
    one = prism("memory", "show", memory, "plot 1", "--json").rows
    assert one["entries"] == [
        {"where": "storage", "tag": "plot_1", "value": "Alice finds a letter"}
    ]
    none = prism("memory", "show", memory, "nobody")
    assert (none.status, "nothing under 'nobody'" in none.err) == (1, True)
    memory.write_text("{}")
    empty = prism("memory", "show", memory)
    assert (empty.status, "the memory is empty" in empty.err) == (0, True)


def test_search(prism: Prism, memory: Path) -> None:
    """Matches in storage come best first; without any, the status is 1."""
    ended = prism("memory", "search", memory, "a", "letter", "--json")
    assert ended.rows[0]["tag"] == "plot_1"
    assert prism("memory", "search", memory, "nothing").status == 1


def test_a_memory_that_cannot_be_read_is_one_line(prism: Prism, tmp_path: Path) -> None:
    """A missing file is named, with status 2."""
    ended = prism("memory", "show", tmp_path / "none.json")
    assert ended.status == 2
    assert "none.json" in ended.err
