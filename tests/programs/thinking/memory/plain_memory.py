"""A memory as the specification has it, in the plainest way."""

from __future__ import annotations

from copy import deepcopy
from typing import Any


class PlainMemory:
    """What a memory must be equal to, whatever it is kept in."""

    def __init__(self) -> None:
        self.working: dict[str, Any] = {}
        self.storage: dict[str, Any] = {}
        self.thoughts: dict[str, str] = {}
        self.state = "thinking"
        self.cycle = 0
        self.next_thought = 1
        self.used: dict[str, int] = {}
        self.versions: dict[str, list[Any]] = {}

    def copy(self) -> PlainMemory:
        """Return a memory that goes its own way."""
        return deepcopy(self)

    def add(self, tag: str, value: Any) -> None:
        """Put a value into working memory."""
        old = self.working.get(tag, value)
        if repr(old) != repr(value) and repr(self.storage.get(tag, self)) != repr(old):
            self.keep(tag, old, value)
        self.working[tag] = value
        self.used[tag] = self.cycle

    def remove(self, tag: str) -> bool:
        """Remove a value from working memory."""
        self.used.pop(tag, None)
        return self.working.pop(tag, self) is not self

    def forget(self, tag: str) -> bool:
        """Remove a value wherever it is, with its versions."""
        is_there = self.remove(tag)
        had_versions = self.versions.pop(tag, None) is not None
        return self.storage.pop(tag, self) is not self or is_there or had_versions

    def load(self, tag: str) -> bool:
        """Copy a value from storage."""
        if tag in self.storage:
            self.add(tag, self.storage[tag])
        return tag in self.storage

    def save(self, tag: str, value: Any = None) -> bool:
        """Copy a value to storage."""
        if value is None and tag not in self.working:
            return False
        value = self.working[tag] if value is None else value
        self.store(tag, value)
        if tag in self.working and repr(self.working[tag]) != repr(value):
            self.add(tag, value)
        return True

    def store(self, tag: str, value: Any) -> bool:
        """Put a value into storage; return whether another one became a version."""
        is_other = repr(self.storage.get(tag, value)) != repr(value)
        if is_other:
            self.keep(tag, self.storage[tag], value)
        self.storage[tag] = value
        return is_other

    def keep(self, tag: str, old: Any, present: Any) -> None:
        """Keep an old value as the newest version."""
        if repr(old) == repr(present):
            return
        same = (repr(old), repr(present))
        others = [e for e in self.versions.get(tag, []) if repr(e["value"]) not in same]
        kept = {"value": old, "replaced_in_cycle": self.cycle}
        self.versions[tag] = [*others, kept][-10:]

    def page_in(self, tag: str) -> bool:
        """Copy a value from storage, unless working memory has one."""
        return tag not in self.working and self.load(tag)

    def page_out(self, tag: str) -> bool:
        """Move a value to storage; return whether there were two."""
        value = self.working.pop(tag) if tag in self.working else self.thoughts.pop(tag)
        self.used.pop(tag, None)
        return self.store(tag, value)

    def think(self, entry: str, most: int) -> str:
        """Add a thought."""
        key = f"thinking_log_{self.next_thought:03}"
        self.next_thought += 1
        self.thoughts[key] = entry
        for old in list(self.thoughts)[:-most]:
            del self.thoughts[old]
        return key

    def least_recently_used(self) -> list[str]:
        """Return the tags of working memory, the least recently used first."""
        return sorted(self.working, key=self.used.__getitem__)

    def to_dict(self) -> dict[str, Any]:
        """Return the specification's shape, and what prism adds."""
        return {
            "working_memory": self.working,
            "storage": self.storage,
            "state": self.state,
            **self.thoughts,
            "prism": {
                "schema": 2,
                "cycle": self.cycle,
                "next_thought": self.next_thought,
                "used": self.used,
                **({"versions": self.versions} if self.versions else {}),
            },
        }
