"""The memory: one file, written whole, with a backup, a lock, versions and a search."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from prism.errors import FieldTypeError, FieldValueError, InputError
from prism.programs.thinking import Memory

tags = st.sampled_from(["a", "b", "c"])
values = st.sampled_from(["one", "two", "train to Rome", 3, None, [1, "x"], {"k": "v"}])


class Remembering(RuleBasedStateMachine):
    """A memory beside plain dictionaries, reopened at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory.in_memory()
        self.working: dict[str, Any] = {}
        self.stored: dict[str, Any] = {}
        self.thoughts: list[str] = []

    @rule(tag=tags, value=values)
    def add(self, tag: str, value: Any) -> None:
        self.memory.add(tag, value)
        self.working[tag] = value

    @rule(tag=tags)
    def remove(self, tag: str) -> None:
        assert self.memory.remove(tag) is (tag in self.working)
        self.working.pop(tag, None)

    @rule(tag=tags)
    def load(self, tag: str) -> None:
        assert self.memory.load(tag) is (tag in self.stored)
        if tag in self.stored:
            self.working.setdefault(tag, self.stored[tag])

    @rule(tag=tags, value=values.filter(lambda value: value is not None))
    def save(self, tag: str, value: Any) -> None:
        assert self.memory.save(tag, value)
        self.stored[tag] = value
        if tag in self.working:
            self.working[tag] = value

    @rule(tag=tags)
    def page_out(self, tag: str) -> None:
        self.memory.page_out(tag)
        if tag in self.working:
            self.stored[tag] = self.working.pop(tag)

    @rule(text=st.sampled_from(["x", "y"]))
    def think(self, text: str) -> None:
        self.memory.think(text, key_prefix="thinking_log_", max_entries=3)
        self.thoughts = [*self.thoughts, text][-3:]

    @rule()
    def reopen(self) -> None:
        found = self.memory.search("train rome one two", 9)
        document = json.loads(json.dumps(self.memory.to_dict()))
        self.memory = Memory.in_memory(document)
        assert self.memory.to_dict() == document
        assert self.memory.search("train rome one two", 9) == found

    @invariant()
    def is_the_same(self) -> None:
        assert dict(self.memory.working) == self.working
        assert self.memory.to_dict()["storage"] == self.stored
        assert [*self.memory.thoughts.values()] == self.thoughts
        assert {match.tag for match in self.memory.search("one", 9)} == {
            tag for tag, value in self.stored.items() if value == "one"
        }


TestRemembering = Remembering.TestCase
TestRemembering.settings = settings(
    max_examples=4 * settings.default.max_examples, stateful_step_count=25
)


def test_the_file_has_the_specifications_shape(tmp_path: Path) -> None:
    """Keys of other programs stay where they are, and nothing is written before a commit."""
    path = tmp_path / "memory.json"
    path.write_text('{"mine": [1], "working_memory": {"a b": 1}, "thinking_log_007": "t"}')
    with Memory.open(path) as memory:
        memory.save("p q", "v")
        memory.think("u", key_prefix="thinking_log_", max_entries=9)
        assert "storage" not in path.read_text()
        memory.commit()
    assert json.loads(path.read_text()) == {
        "mine": [1],
        "working_memory": {"a_b": 1},
        "storage": {"p_q": "v"},
        "state": "thinking",
        "thinking_log_007": "t",
        "thinking_log_008": "u",
        "prism": {"next_thought": 9},
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "line 1"),
        ('{"working_memory": []}', "working_memory"),
        ('{"state": 3}', "state"),
        ('{"prism": {"cycle": -1}}', "prism.cycle"),
        ('{"storage": {"a b": 1, "a_b": 2}}', "storage': has two memories of one tag"),
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """With its name and the place, unless there is a backup."""
    path = tmp_path / "memory.json"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        Memory.open(path)


@pytest.mark.parametrize("damage", [b"", b"{dam", b"\xff\xfe", None])
def test_a_damaged_file_is_read_from_its_backup(tmp_path: Path, damage: bytes | None) -> None:
    """The state before the last commit; the damaged file is kept beside it."""
    path = tmp_path / "memory.json"
    with Memory.open(path) as memory:
        for number in range(3):
            memory.save("n", number)
            memory.commit()
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    with pytest.warns(RuntimeWarning, match="read from"):
        memory = Memory.open(path)
    with memory:
        assert memory.stored("n") == 1
        memory.commit()
    assert json.loads(path.read_text())["storage"] == {"n": 1}
    assert (tmp_path / "memory.json.damaged").exists() is (damage is not None)


def test_one_process_at_a_time_changes_a_memory(tmp_path: Path) -> None:
    """Others read it as it was committed last, and cannot write."""
    path = tmp_path / "memory.json"
    with Memory.open(path) as memory:
        memory.save("a", 1)
        memory.commit()
        memory.save("a", 2)
        with pytest.raises(InputError, match="is in use"):
            Memory.open(path)
        reader = Memory.read(path)
        assert reader.stored("a") == 1
        reader.save("a", 3)
        with pytest.raises(InputError, match="only for reading"):
            reader.commit()
    with pytest.raises(InputError, match="does not exist"):
        Memory.read(tmp_path / "nothing.json")


@pytest.mark.parametrize("value", [object(), {1: 2}])
def test_a_value_is_data(value: Any) -> None:
    """What JSON cannot hold, or would change, is refused."""
    memory = Memory.in_memory()
    with pytest.raises((FieldTypeError, FieldValueError)):
        memory.add("a", value)
    with pytest.raises(FieldValueError):
        memory.add("  ", 1)
    assert not memory.working


def test_old_values_are_kept_as_versions() -> None:
    """The newest ten, oldest first, wherever a value was replaced."""
    memory = Memory.in_memory()
    for number in range(13):
        memory.save("a", number)
    assert memory.versions("a") == [*range(2, 12)]
    memory.add("b", "first")
    memory.add("b", "second")
    assert memory.versions("b") == ["first"]


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("a letter for Alice", "plot_1"),
        ("letters", "plot_1"),
        ("Chapter", "chapter_two"),
        ("été", "summer"),
        ("足球", "football"),
        ("फुटबॉल", "hindi"),
        ("xyzzy", None),
        ('"OR" NEAR(', None),
    ],
)
def test_a_search_ranks_what_shares_words(text: str, best: str | None) -> None:
    """In any language; a word of the tag counts three times."""
    storage = {
        "plot_1": "Alice finds a letter in the attic",
        "plot_2": "Bob follows the map for Carol",
        "chapter_two": "the end",
        "other": "a chapter of accidents",
        "summer": "l'ete a Nice",
        "football": "我每个周末都看足球",
        "hindi": "मैं हर सप्ताह फुटबॉल देखता हूँ",
    }
    found = Memory.in_memory({"storage": storage}).search(text, 3)
    assert (found[0].tag if found else None) == best
