"""What a memory does, with and without a file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import FieldTypeError, FieldValueError, InputError
from prism.programs.thinking import Memory
from tests.programs.thinking.memory.living import live

SPECIFIED = {
    "working_memory": {"key1": "value1", "key2": "value2"},
    "storage": {"persistent_key1": "persistent_value1"},
    "state": "thinking",
    "thinking_log_001": "First reasoning entry",
    "thinking_log_002": "Second reasoning entry",
}
NEW = Memory.in_memory().to_dict()


@pytest.fixture(params=["file", "none"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """Return an empty memory, with and without a file."""
    if request.param == "none":
        yield Memory.in_memory()
        return
    with Memory.open(tmp_path / "memory") as opened:
        yield opened


def test_a_new_memory(memory: Memory) -> None:
    """A missing file is an empty memory in state thinking."""
    assert (memory.state, memory.cycle, memory.stored_count) == ("thinking", 0, 0)
    assert (dict(memory.working), dict(memory.thoughts), memory.faults) == ({}, {}, ())
    assert memory.to_dict() == NEW


def test_save_and_load(memory: Memory) -> None:
    """A newer value is the present one everywhere; the older is a version."""
    memory.add("plot", "a letter")
    assert memory.save("plot")
    assert memory.working["plot"] == memory.stored("plot") == "a letter"
    assert memory.save("plot", "a map")
    assert memory.working["plot"] == memory.stored("plot") == "a map"
    assert memory.versions("plot") == ["a letter"]
    assert memory.remove("plot")
    assert memory.load("plot")
    assert memory.working["plot"] == "a map"


def test_tags_with_spaces(memory: Memory) -> None:
    """Spaces in tags become underscores everywhere."""
    memory.add(" character  alice ", "young")
    assert list(memory.working) == ["character_alice"]
    assert memory.save("character alice")
    assert memory.stored("character alice") == "young"
    assert memory.page_out("character alice") is False
    assert memory.stored("character_alice") == "young"
    assert memory.page_in("character alice")
    assert memory.remove("character alice")


@pytest.mark.parametrize("tag", ["", " ", "\x00", "\n\t"])
def test_empty_tags(memory: Memory, tag: str) -> None:
    """An empty tag is refused where something would be written, and stands for nothing else."""
    with pytest.raises(FieldValueError, match="non-empty"):
        memory.add(tag, "x")
    with pytest.raises(FieldValueError, match="non-empty"):
        memory.save(tag, "x")
    assert not any(ask(tag) for ask in (memory.remove, memory.load, memory.save, memory.page_in))
    assert memory.to_dict() == NEW


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**64, {1: 2}, {1}, b"x", object()])
@pytest.mark.sampled(3)
def test_values_that_are_not_data(memory: Memory, value: Any) -> None:
    """A value that no file could hold is refused, and nothing has changed."""
    for write in (memory.add, memory.save):
        with pytest.raises((FieldTypeError, FieldValueError)):
            write("tag", [value])
    assert memory.to_dict() == NEW


def test_values_are_copied(memory: Memory) -> None:
    """What is done to a value after it was added does not reach the memory."""
    value = {"friends": ["bob"]}
    memory.add("alice", value)
    memory.save("alice")
    value["friends"].append("carol")
    assert memory.working["alice"] == memory.stored("alice") == {"friends": ["bob"]}


def test_views_cannot_be_written_to(memory: Memory) -> None:
    """The memory is changed by its methods alone."""
    for view in (memory.working, memory.thoughts, memory.unknown):
        with pytest.raises(TypeError):
            view["x"] = 1  # type: ignore[index]


def test_versions_are_bounded(memory: Memory) -> None:
    """The newest stay, and 0 keeps none."""
    memory.version_limit = 3
    for number in range(9):
        memory.save("x", number)
    assert memory.versions("x") == [5, 6, 7]
    memory.version_limit = 0
    memory.save("x", "new")
    assert memory.versions("x") == []


def test_a_thought_is_shortened(memory: Memory) -> None:
    """The beginning stays in the log, and the whole is in storage."""
    key = memory.think("a long thought", key_prefix="thinking_log_", max_entries=5)
    memory.shorten(key, 6)
    assert memory.thoughts[key].startswith("a long")
    assert memory.stored(key) == "a long thought"


def test_paging_out_a_thought(memory: Memory) -> None:
    """A thought can be paged out by its key."""
    key = memory.think("hm", key_prefix="thinking_log_", max_entries=5)
    assert memory.page_out(key) is False
    assert (dict(memory.thoughts), memory.stored(key)) == ({}, "hm")
    with pytest.raises(FieldValueError, match="there is no 'thinking_log_001'"):
        memory.page_out(key)


def test_thoughts_rotate(memory: Memory) -> None:
    """The oldest thoughts go, and numbers go on past 999."""
    keys = [
        memory.think(str(number), key_prefix="thinking_log_", max_entries=3)
        for number in range(1, 1002)
    ]
    assert (keys[0], keys[998], keys[1000]) == (
        "thinking_log_001",
        "thinking_log_999",
        "thinking_log_1001",
    )
    assert dict(memory.thoughts) == {
        "thinking_log_999": "999",
        "thinking_log_1000": "1000",
        "thinking_log_1001": "1001",
    }
    with pytest.raises(FieldValueError, match="max_entries must be 1 or more"):
        memory.think("x", key_prefix="thinking_log_", max_entries=0)


def test_no_thought_is_hidden_by_something_else(tmp_path: Path) -> None:
    """A key that the file has for something else is left out in counting."""
    taken: dict[str, Any] = {"thinking_log_001": {"entry": "x"}, "thinking_log_003": None}
    with Memory.create(tmp_path / "memory", taken) as memory:
        for entry in "abc":
            memory.think(entry, key_prefix="thinking_log_", max_entries=9)
        memory.commit()
    with Memory.open(tmp_path / "memory") as memory:
        assert list(memory.thoughts) == [f"thinking_log_00{number}" for number in (2, 4, 5)]
        assert dict(memory.unknown) == taken


def test_after_any_number_the_file_can_be_read(tmp_path: Path) -> None:
    """A number by hand beyond those that JSON holds exactly is none."""
    taken = {f"thinking_log_{'9' * digits}": "x" for digits in range(3, 20)}
    with Memory.create(tmp_path / "memory", taken) as memory:
        memory.think("y", key_prefix="thinking_log_", max_entries=99)
        memory.commit()
    with Memory.open(tmp_path / "memory") as memory:
        assert memory.faults == ()
        assert list(memory.to_dict().values()).count("y") == 1


def test_reading_what_the_specification_shows(tmp_path: Path) -> None:
    """A file without prism's key is read, and numbers of thoughts go on after its own."""
    path = tmp_path / "memory.json"
    path.write_text(json.dumps(SPECIFIED))
    with Memory.open(path) as memory:
        assert memory.thoughts["thinking_log_002"] == "Second reasoning entry"
        assert memory.think("x", key_prefix="thinking_log_", max_entries=9) == "thinking_log_003"
        memory.commit()
    found = json.loads(path.read_text())
    own = found.pop("prism")
    assert list(found.items()) == [*SPECIFIED.items(), ("thinking_log_003", "x")]
    assert own == {"schema": 2, "cycle": 0, "next_thought": 4, "used": {}}


def test_unknown_keys_stay(tmp_path: Path) -> None:
    """What prism does not know stays where it stands, also among its own."""
    document = {
        "note": {"by": "hand"},
        "state": "dreaming",
        "thinking_log_007": "x",
        "thinking_log_text": "not a thought",
        "storage": {},
        "prism": {"later": [1], "schema": 2, "cycle": 3},
        "thinking_log_009": 5,
        "working_memory": {"a b": 1, "a_b": 2},
    }
    with Memory.create(tmp_path / "memory", document) as memory:
        memory.think("y", key_prefix="thinking_log_", max_entries=9)
        memory.commit()
    with Memory.open(tmp_path / "memory") as memory:
        found = memory.to_dict()
        assert memory.unknown == {
            "note": {"by": "hand"},
            "thinking_log_text": "not a thought",
            "thinking_log_009": 5,
        }
    assert list(found) == [
        *("note", "state", "thinking_log_007", "thinking_log_008", "thinking_log_text", "storage"),
        *("prism", "thinking_log_009", "working_memory"),
    ]
    assert found["prism"] == {"later": [1], "schema": 2, "cycle": 3, "next_thought": 9, "used": {}}
    assert found["working_memory"] == {"a_b": 1, "a_b_2": 2}
    assert memory.state == "dreaming"


def test_a_misspelt_state_is_refused_when_it_is_set(memory: Memory) -> None:
    """What the file could not be opened with again is not taken; other programs' states are."""
    with pytest.raises(FieldValueError, match="'thinkin' is unknown; did you mean 'thinking'"):
        memory.state = "thinkin"
    assert memory.state == "thinking"
    for state in ("executing", "Thinking", "dreaming of the sea"):
        memory.state = state
        memory.commit()
        assert Memory.in_memory(memory.to_dict()).state == state


def test_another_prefix_of_thoughts(tmp_path: Path) -> None:
    """Thoughts under a new prefix go on, and are still thoughts after a restart."""
    path = tmp_path / "memory"
    with Memory.open(path) as memory:
        memory.think("a", key_prefix="thinking_log_", max_entries=2)
        memory.think("b", key_prefix="log ", max_entries=2)
        memory.commit()
    with Memory.open(path) as memory:
        assert dict(memory.thoughts) == {"thinking_log_001": "a", "log 002": "b"}
        memory.think("c", key_prefix="log ", max_entries=2)
        assert dict(memory.thoughts) == {"log 002": "b", "log 003": "c"}


def test_the_file_is_for_people(tmp_path: Path) -> None:
    """The file is indented UTF-8 without escapes, and has no times in it."""
    path = tmp_path / "memory.json"
    with Memory.open(path) as memory:
        memory.add("été", "猫")
        memory.end_cycle()
        memory.commit()
    assert path.read_text(encoding="utf-8").splitlines() == [
        "{",
        '  "working_memory": {',
        '    "été": "猫"',
        "  },",
        '  "storage": {},',
        '  "state": "thinking",',
        '  "prism": {',
        '    "schema": 2,',
        '    "cycle": 1,',
        '    "next_thought": 1,',
        '    "used": {',
        '      "été": 0',
        "    }",
        "  }",
        "}",
    ]


def test_data_of_no_memory_replace_nothing(memory: Memory) -> None:
    """They are refused, and the memory is what it was."""
    memory.save("x", 1)
    with pytest.raises(InputError):
        memory.replace({"storage": {"y": 2}, "state": 3})

    assert memory.to_dict()["storage"] == {"x": 1}


def test_the_mark(tmp_path: Path) -> None:
    """The mark changes with every commit, is that of the file, and the same for the same life."""
    marks = []
    for name in ("one", "other"):
        with Memory.open(tmp_path / name) as memory:
            memory.commit()
            seen = [memory.revision]
            for _ in range(3):
                live(memory)
                assert memory.revision == seen[-1]
                memory.commit()
                seen.append(memory.revision)
        with Memory.open(tmp_path / name) as memory:
            assert memory.revision == seen[-1]
        marks.append(seen)
    assert marks[0] == marks[1]
    assert len(set(marks[0])) == 4


def test_a_memory_of_another(tmp_path: Path) -> None:
    """What one memory held another is made of, byte for byte; none is overwritten."""
    with Memory.open(tmp_path / "one") as memory:
        for _ in range(20):
            live(memory)
        memory.commit()
        data = memory.to_dict()
    with Memory.create(tmp_path / "other", data) as made:
        assert made.to_dict() == data
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    with pytest.raises(InputError, match="already exists"):
        Memory.create(tmp_path / "other", data)


def test_a_memory_to_read(tmp_path: Path) -> None:
    """A memory that is open for reading cannot be committed."""
    Memory.create(tmp_path / "m", SPECIFIED).close()
    memory = Memory.read(tmp_path / "m")
    memory.add("x", 1)
    with pytest.raises(InputError, match="open only for reading"):
        memory.commit()
    memory.close()
    with pytest.raises(InputError, match="this memory does not exist"):
        Memory.read(tmp_path / "nothing")


TEXTS = st.text(st.characters(), max_size=30)


@given(st.lists(st.tuples(TEXTS, st.one_of(TEXTS, st.lists(TEXTS), st.dictionaries(TEXTS, TEXTS)))))
def test_any_text_is_kept(pairs: list[tuple[str, Any]]) -> None:
    """Whatever texts tags and values are, the document can be written as UTF-8 and read again."""
    memory = Memory.in_memory()
    for tag, value in pairs:
        if tag.strip():
            try:
                memory.add(tag, value)
            except FieldValueError:  # nothing but control characters
                continue
            assert memory.save(tag)
            assert memory.remove(tag)
            assert memory.load(tag)
    text = json.dumps(memory.to_dict(), ensure_ascii=False).encode().decode()
    again = Memory.in_memory(json.loads(text))
    assert again.to_dict() == memory.to_dict()
