"""Actions of the memory: which memory they concern, and what a search finds."""

import pytest

from prism.programs.thinking import Memory
from prism.programs.thinking._actions import carry_out, tag_in
from prism.programs.thinking._replies import AskedAction


def memory_with(*, working: tuple[str, ...] = (), stored: tuple[str, ...] = ()) -> Memory:
    """Return a memory with these tags, whose values say where they are."""
    return Memory.in_memory(
        {
            "working_memory": dict.fromkeys(working, "in working memory"),
            "storage": dict.fromkeys(stored, "in storage"),
        }
    )


@pytest.mark.parametrize("tag", ["character_alice", "Character_Alice", "CHARACTER ALICE"])
def test_a_tag_in_another_case_is_found(tag: str) -> None:
    """Loading, removing and saving find a memory in whatever case its tag is written."""
    memory = memory_with(stored=("character_alice",))
    assert carry_out(memory, AskedAction("storage_load", tag, None)).outcome == "done"
    assert memory.working == {"character_alice": "in storage"}

    assert carry_out(memory, AskedAction("storage_save", tag, None)).outcome == "done"
    assert carry_out(memory, AskedAction("working_memory_remove", tag, None)).outcome == "done"
    assert memory.working == {}


def test_the_tag_as_it_is_written_comes_first() -> None:
    """Of tags that differ in case only, the one that is written counts, and else none does."""
    memory = memory_with(working=("Alice", "alice"), stored=("BOB", "bob"))
    assert tag_in(memory, "alice", is_stored=False) == "alice"
    assert tag_in(memory, "ALICE", is_stored=False) is None
    assert tag_in(memory, "bob", is_stored=True) == "bob"
    assert tag_in(memory, "Bob", is_stored=True) is None


def test_a_new_value_gets_the_tag_that_is_written() -> None:
    """A value that is added or saved never overwrites a memory that is written otherwise."""
    memory = memory_with(working=("alice",), stored=("alice",))
    for kind in ("working_memory_add", "storage_save"):
        carry_out(memory, AskedAction(kind, "Alice", "new"))
    assert memory.working == {"alice": "in working memory", "Alice": "new"}
    assert (memory.stored("alice"), memory.stored("Alice")) == ("in storage", "new")


@pytest.mark.parametrize("words", ["letters", "LETTERS", "the letters of Bob"])
def test_a_plural_finds_the_singular(words: str) -> None:
    """A search for a plural finds memories that have the singular."""
    memory = memory_with(stored=("a_letter", "a_map"))
    found = carry_out(memory, AskedAction("storage_search", words, None)).found
    assert found == ("a_letter",)
