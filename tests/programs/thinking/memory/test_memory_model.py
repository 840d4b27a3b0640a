"""A memory is a plain one, whatever is done to it."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from prism.programs.thinking import Memory
from tests.kit.files import IN_MEMORY
from tests.programs.thinking.memory.plain_memory import PlainMemory

TAGS = st.sampled_from(["a", "b", "c", "a_2", "the_plot", "thinking_log_001"])
WORDS = st.lists(st.sampled_from(["alice", "plot", "Plot", "été", "猫", "a", "2"]), max_size=4).map(
    " ".join
)
VALUES = st.one_of(
    WORDS,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from([1, True, 1.0, False, [], {"a": [1, None]}, {"b": {}}, 2**62, 1e300]),
)


class Memories(RuleBasedStateMachine):
    """Does the same to a memory and to a plain one."""

    @initialize()
    def begin(self) -> None:
        """Open a new memory."""
        self.folder = TemporaryDirectory(dir=IN_MEMORY)
        self.plain = PlainMemory()
        self.committed = PlainMemory()
        self.memory = self.open()
        self.memory.commit()

    def open(self) -> Memory:
        """Open the memory."""
        return Memory.open(Path(self.folder.name) / "memory.json", backups=0)

    @rule(tag=TAGS, value=VALUES)
    def add(self, tag: str, value: Any) -> None:
        """Add to working memory."""
        self.memory.add(tag, value)
        self.plain.add(tag, value)

    @rule(tag=TAGS)
    def remove(self, tag: str) -> None:
        """Remove from working memory."""
        assert self.memory.remove(tag) == self.plain.remove(tag)

    @rule(tag=TAGS)
    def forget(self, tag: str) -> None:
        """Remove from working memory and from storage."""
        assert self.memory.forget(tag) == self.plain.forget(tag)

    @rule(tag=TAGS)
    def load(self, tag: str) -> None:
        """Load from storage."""
        assert self.memory.load(tag) == self.plain.load(tag)

    @rule(tag=TAGS, value=st.none() | VALUES)
    def save(self, tag: str, value: Any) -> None:
        """Save to storage."""
        assert self.memory.save(tag, value) == self.plain.save(tag, value)

    @rule(tag=TAGS)
    def page_in(self, tag: str) -> None:
        """Page in."""
        assert self.memory.page_in(tag) == self.plain.page_in(tag)

    @precondition(lambda self: self.plain.working or self.plain.thoughts)
    @rule(data=st.data())
    def page_out(self, data: st.DataObject) -> None:
        """Page a memory or a thought out."""
        tag = data.draw(st.sampled_from([*self.plain.working, *self.plain.thoughts]))
        assert self.memory.page_out(tag) == self.plain.page_out(tag)

    @rule(entry=WORDS, most=st.integers(1, 4))
    def think(self, entry: str, most: int) -> None:
        """Think."""
        key = self.memory.think(entry, key_prefix="thinking_log_", max_entries=most)
        assert key == self.plain.think(entry, most)

    @rule(tags=st.lists(TAGS))
    def touch(self, tags: list[str]) -> None:
        """Use memories."""
        self.memory.touch(tags)
        for tag in tags:
            if tag in self.plain.working:
                self.plain.used[tag] = self.plain.cycle

    @rule(state=st.sampled_from(["thinking", "executing", "paging", "nonsense"]))
    def enter(self, state: str) -> None:
        """Enter a state and end the cycle."""
        self.memory.state = state
        self.memory.end_cycle()
        self.plain.state = state
        self.plain.cycle += 1

    @rule(text=WORDS, most=st.integers(0, 8))
    def search(self, text: str, most: int) -> None:
        """Search: a new memory of the same finds the same, in the same order."""
        one = self.memory.search(text, most)
        again = Memory.in_memory(self.plain.to_dict()).search(text, most)
        assert [(match.tag, match.value) for match in one] == [(it.tag, it.value) for it in again]
        scores = [match.score for match in one]
        assert scores == sorted(scores, reverse=True)
        assert len(one) <= most
        assert all(match.score > 0 for match in one)
        if most >= len(self.plain.storage):
            named = {
                tag
                for tag in self.plain.storage
                if {*tag.lower().split("_")} & {*text.lower().split()}
            }
            assert named <= {match.tag for match in one}

    @rule()
    def commit(self) -> None:
        """Commit."""
        self.memory.commit()
        self.committed = self.plain.copy()

    @rule()
    def be_killed(self) -> None:
        """End without a commit: all since the last one is gone."""
        self.reopen()
        self.plain = self.committed.copy()

    def reopen(self) -> None:
        """Close the memory and open it again."""
        self.memory.close()
        self.memory = self.open()

    @invariant()
    def is_the_plain_one(self) -> None:
        """All that can be seen is the same, also the order."""
        expected = self.plain.to_dict()
        memory, found = self.memory, self.memory.to_dict()
        assert json.dumps(found["working_memory"]) == json.dumps(expected["working_memory"])
        assert json.dumps(found["storage"]) == json.dumps(expected["storage"])
        assert found == expected
        assert list(memory.thoughts) == list(self.plain.thoughts)
        assert memory.least_recently_used() == self.plain.least_recently_used()
        assert memory.stored_count == len(self.plain.storage)

    def teardown(self) -> None:
        """Close the memory."""
        self.memory.close()
        self.folder.cleanup()


Memories.TestCase.settings = settings(max_examples=8, stateful_step_count=25)
TestMemories = Memories.TestCase


@pytest.mark.long
def test_many_memories() -> None:
    """The same, at length."""
    run_state_machine_as_test(
        Memories, settings=settings(max_examples=150, stateful_step_count=60, deadline=None)
    )
