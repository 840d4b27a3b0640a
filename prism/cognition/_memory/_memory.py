"""The memory of an agent, open for one process."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from prism.cognition._memory._beside import Backups, Lock
from prism.cognition._memory._contents import Contents, misspelt_state
from prism.cognition._memory._opening import Opened, open_file, place_of
from prism.cognition._memory._search import Match, WordIndex
from prism.cognition._memory._values import MISSING, as_tag, plain_value, to_json, to_text
from prism.errors import FieldValueError, InputError
from prism.files._durable import replacing
from prism.files._source import Source
from prism.reasoner._texts import whole_characters
from prism.runs._documents import may_change

DEFAULT_BACKUPS = 3
DEFAULT_VERSIONS = 10

_SHORTENED = " …"


class Memory:
    """The memory of an agent; open one with `open` or `in_memory`.

    Only `commit` writes the file: later changes are lost if the process ends without one. A
    replaced value is kept as a version of its memory, unless storage still has it; search, loading
    and paging always use the current value.

    Attributes:
        path: The file; None for a memory without one.
        faults: What was damaged, and what was read instead.
        version_limit: Number of versions of a memory to keep, the newest ones.
        working: Working memory, in order of addition; a view that cannot be written to.
        thoughts: The last thoughts, oldest first; a view that cannot be written to.
    """

    def __init__(
        self,
        opened: Opened,
        path: Path | None = None,
        backups: Backups | None = None,
        lock: Lock | None = None,
    ) -> None:
        self.path: Path | None = path
        self.faults: tuple[str, ...] = opened.faults
        self.version_limit: int = DEFAULT_VERSIONS
        self._index: WordIndex | None = None
        self._take(opened.contents)
        self._backups = backups
        self._lock = lock
        self._is_closed = False
        self._content = opened.content
        self._committed = self.to_json()

    @classmethod
    def open(
        cls,
        path: PathLike[str] | str,
        *,
        backups: int = DEFAULT_BACKUPS,
    ) -> Self:
        """Open a memory for writing, which locks out other processes.

        A missing file is an empty memory. A damaged one is restored from its newest good backup,
        with a warning, and is kept beside it. In a rehearsal, a dry run or a repeated run, the
        memory is a copy without a file, as none of them may change it.

        Args:
            path: The file.
            backups: Number of backups to keep beside the file.

        Raises:
            InputError: If another process has it open, it is damaged and no backup is good, or a
                newer prism wrote it.
            OSError: If it cannot be read or written.
        """
        place = place_of(path)
        if not may_change(place):
            return cls.in_memory(document_of(place))

        with Lock(place) as lock:
            kept = Backups(place, backups)
            memory = cls(open_file(place, kept, writes=True), place, kept, lock)
        memory._warn()
        return memory

    @classmethod
    def read(cls, path: PathLike[str] | str) -> Self:
        """Open a memory for reading, as of the last commit; another process may be changing it.

        Raises:
            InputError: If there is none, or it is damaged and no backup is good.
            OSError: If it cannot be read.
        """
        place = place_of(path)
        memory = cls(open_file(place, Backups(place, 0), writes=False), place)
        memory._warn()

        return memory

    @classmethod
    def create(
        cls,
        path: PathLike[str] | str,
        data: Mapping[str, Any],
        *,
        backups: int = DEFAULT_BACKUPS,
    ) -> Self:
        """Create a memory from the data that `to_dict` returned, and open it.

        Raises:
            InputError: If the file exists, or the data are not those of a memory.
            OSError: If it cannot be written.
        """
        place = place_of(path)
        contents = Contents(Source.of(data))
        if not may_change(place):
            return cls.in_memory(data)

        with Lock(place) as lock:
            kept = Backups(place, backups)
            if place.exists() or kept.paths():
                raise InputError("already exists: name another file", path=place)

            memory = cls(Opened(contents), place, kept, lock)
            memory.commit()

        return memory

    @classmethod
    def in_memory(cls, data: Mapping[str, Any] | None = None) -> Self:
        """Return a memory without a file, for tests and simulations."""
        return cls(Opened(Contents(Source.of(data or {}))))

    @property
    def state(self) -> str:
        """The agent's state as it was written, which the chart may not know.

        Raises:
            FieldValueError: If a misspelt name of a state is set.
        """
        return self._contents.state

    @state.setter
    def state(self, state: str) -> None:
        if near := misspelt_state(state):
            raise FieldValueError(f"state {state!r} is unknown; did you mean {near!r}?")

        self._contents.state = whole_characters(state)

    @property
    def cycle(self) -> int:
        """Cycles over the memory's life, failed ones too."""
        return int(self._contents.own["cycle"])

    @property
    def unknown(self) -> Mapping[str, Any]:
        """Other keys at the top level of the file, which prism preserves."""
        return MappingProxyType(self._contents.unknown)

    @property
    def last_action(self) -> Mapping[str, Any] | None:
        """The last action and its result, as it was noted; None before the first."""
        return self._contents.own["last_action"] or None

    @property
    def news(self) -> Sequence[str]:
        """The news since the agent's last action, oldest first."""
        return tuple(self._contents.own["news"])

    @property
    def stored_count(self) -> int:
        """How many memories are in storage."""
        return len(self._stored)

    @property
    def revision(self) -> str:
        """The SHA-256 of the file as it was read or written last; empty if there is none."""
        return sha256(self._content).hexdigest() if self._content else ""

    def add(self, tag: str, value: Any) -> None:
        """Put a value into working memory, where another one with its tag becomes a version.

        Raises:
            FieldValueError: If the tag is empty, or the value is not JSON data.
        """
        self._show(_required(tag), plain_value(value))

    def remove(self, tag: str) -> bool:
        """Remove a value from working memory; return False if there is none."""
        tag = as_tag(tag)
        is_there = tag in self._contents.working
        if is_there:
            del self._contents.working[tag]
            self._contents.own["used"].pop(tag, None)

        return is_there

    def forget(self, tag: str) -> bool:
        """Remove a memory with its old values from all places; return False if there is none.

        Backups and kept runs are not changed.
        """
        tag = as_tag(tag)
        was_working = self.remove(tag)
        is_stored = self._stored.pop(tag, MISSING) is not MISSING
        if is_stored and self._index is not None:
            self._index.remove(tag)
        has_versions = self._contents.versions.pop(tag, None) is not None

        return was_working or is_stored or has_versions

    def load(self, tag: str) -> bool:
        """Copy a value from storage to working memory; return False if there is none.

        Another value with this tag in working memory becomes a version.
        """
        tag = as_tag(tag)
        value = self._stored.get(tag, MISSING)
        if value is MISSING:
            return False

        self._show(tag, value)
        return True

    def save(self, tag: str, value: Any | None = None) -> bool:
        """Copy a value to storage, where a different value with the same tag becomes a version.

        The same holds for working memory if it has another value with this tag.

        Args:
            tag: The tag.
            value: The value; None copies the one in working memory.

        Returns:
            Whether there was a value to save.
        """
        working = self._contents.working
        tag = as_tag(tag) if value is None else _required(tag)
        if value is None and tag not in working:
            return False

        value = working[tag] if value is None else plain_value(value)
        self._store(tag, value)
        if tag in working and not _is_same(working[tag], value):
            self._show(tag, value)

        return True

    def stored(self, tag: str) -> Any | None:
        """Return the value under a tag in storage, or None."""
        value = self._stored.get(as_tag(tag), MISSING)
        return None if value is MISSING else value

    def versions(self, tag: str) -> list[Any]:
        """Return the old values of a memory, oldest first."""
        return [each["value"] for each in self._versions(tag)]

    def version_cycles(self, tag: str) -> list[int]:
        """Return the cycle in which each of these was replaced."""
        return [each["replaced_in_cycle"] for each in self._versions(tag)]

    def think(self, entry: str, *, key_prefix: str, max_entries: int) -> str:
        """Add a thought, and drop the oldest ones beyond the limit.

        Returns:
            Its key.
        """
        if max_entries < 1:
            raise FieldValueError(f"max_entries must be 1 or more, got {max_entries}")

        entry, key_prefix = whole_characters(entry), whole_characters(key_prefix)
        return self._contents.add_thought(entry, key_prefix, max_entries)

    def page_out(self, tag: str) -> bool:
        """Move a value of working memory, or a thought, to storage.

        The older of two values with one tag becomes a version.

        Returns:
            Whether there were two values.

        Raises:
            FieldValueError: If there is no such value.
        """
        working, thoughts = self._contents.working, self._contents.thoughts
        key = tag if tag in thoughts and tag not in working else as_tag(tag)
        if key not in working and key not in thoughts:
            raise FieldValueError(f"there is no {tag!r} in working memory or among the thoughts")

        if key not in working:
            was_other = self._store(as_tag(key), thoughts[key])
            self._contents.drop_thought(key)
            return was_other

        was_other = self._store(key, working[key])
        self.remove(key)

        return was_other

    def shorten(self, key: str, length: int) -> None:
        """Shorten a thought in the log, and move the full text to storage.

        Args:
            key: Its key.
            length: Number of characters to keep.

        Raises:
            FieldValueError: If there is no such thought.
        """
        thoughts = self._contents.thoughts
        if key not in thoughts:
            raise FieldValueError(f"there is no {key!r} among the thoughts")

        self._store(as_tag(key), thoughts[key])
        thoughts[key] = thoughts[key][:length] + _SHORTENED

    def page_in(self, tag: str, *, as_thought: bool = False) -> bool:
        """Copy a value from storage to working memory, unless the tag exists there.

        Args:
            tag: The tag.
            as_thought: Whether it comes back to the log if `is_missing_thought` holds.

        Returns:
            Whether it was copied.
        """
        tag = as_tag(tag)
        if as_thought and self.is_missing_thought(tag):
            self._contents.return_thought(tag, self._stored.get(tag, MISSING))
            return True

        return tag not in self._contents.working and self.load(tag)

    def is_missing_thought(self, tag: str) -> bool:
        """Return whether storage has a thought under a tag, which is not in the log."""
        is_text = isinstance(self._stored.get(tag, MISSING), str)
        return is_text and self._contents.is_missing_thought(tag)

    def replace(self, data: Mapping[str, Any]) -> None:
        """Replace all contents with data that `to_dict` returned.

        Raises:
            InputError: If they are not those of a memory.
        """
        self._take(Contents(Source.of(data, self.path)))

    def note_action(self, last: Mapping[str, Any]) -> None:
        """Record the last action and its result."""
        self._contents.own["last_action"] = plain_value(last)

    def tell(self, news: Sequence[str]) -> None:
        """Replace the news."""
        self._contents.own["news"] = [whole_characters(each) for each in news]

    def touch(self, tags: Iterable[str]) -> None:
        """Mark values of working memory as used in this cycle."""
        for tag in map(as_tag, tags):
            if tag in self._contents.working:
                self._contents.own["used"][tag] = self.cycle

    def least_recently_used(self) -> list[str]:
        """Return the tags of working memory, the least recently used first."""
        used = self._contents.own["used"]
        return sorted(self._contents.working, key=lambda tag: used.get(tag, -1))

    def search(self, text: str, limit: int, *, plurals: bool = True) -> list[Match]:
        """Return the memories in storage that match a text best, best first.

        Args:
            text: Any text; only its words count.
            limit: Maximum number of matches.
            plurals: Whether an English word also matches its singular or plural.
        """
        if limit <= 0:
            return []
        if self._index is None:
            # reading all words once is as dear as one search without them
            self._index = WordIndex()
            for tag, value in self._stored.items():
                self._index.put(tag, value)

        found = self._index.search(text, limit, plurals=plurals)
        return [Match(tag, self._stored[tag], score) for tag, score in found]

    def end_cycle(self) -> None:
        """Count a cycle."""
        self._contents.own["cycle"] += 1

    def commit(self) -> None:
        """Write everything to the file, atomically and durably.

        Raises:
            InputError: If it is closed, or open for reading only.
            OSError: If that fails; neither the file nor the memory is changed.
        """
        path = self.path
        if path is None:
            return
        content = self.to_json()
        if content == self._committed and path.exists():
            return
        if self._lock is None:
            raise InputError("is open only for reading", path=path)
        # whoever has its lock by now must not lose anything
        if self._is_closed:
            raise InputError("is closed: open it again to change it", path=path)

        with replacing(path) as file:
            file.write(content)
            file.flush()
            # the old file may go only when the new one is safe
            os.fsync(file.fileno())
            if self._backups is not None:
                self._backups.keep_link()
        self._committed = self._content = content

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain data, in the shape of its JSON file."""
        return self._contents.to_dict()

    def to_json(self) -> bytes:
        """Return the memory as `commit` writes it."""
        return to_json(self.to_dict())

    def close(self) -> None:
        """Close the file; uncommitted changes are lost."""
        self._is_closed = True
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        """Return the memory itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def _versions(self, tag: str) -> list[dict[str, Any]]:
        return self._contents.versions.get(as_tag(tag), [])

    def _take(self, contents: Contents) -> None:
        self._contents = contents
        self._stored = contents.stored
        self._index = None
        self.working: Mapping[str, Any] = MappingProxyType(contents.working)
        self.thoughts: Mapping[str, str] = MappingProxyType(contents.thoughts)

    def _warn(self) -> None:
        try:
            for fault in self.faults:
                warnings.warn(fault, RuntimeWarning, stacklevel=3)
        except RuntimeWarning:  # the application makes errors of warnings
            self.close()
            raise

    def _show(self, tag: str, value: Any) -> None:
        old = self._contents.working.get(tag, value)
        if not (_is_same(old, value) or _is_same(self._stored.get(tag, MISSING), old)):
            self._keep_version(tag, old, value)
        self._contents.working[tag] = value
        self._contents.own["used"][tag] = self.cycle

    def _store(self, tag: str, value: Any) -> bool:
        """Put a value into storage; return whether another one became a version by it."""
        standing = self._stored.get(tag, MISSING)
        is_other = standing is not MISSING and not _is_same(standing, value)
        if is_other:
            self._keep_version(tag, standing, value)
        if is_other or standing is MISSING:
            self._stored[tag] = value
            if self._index is not None:
                self._index.put(tag, value)

        return is_other

    def _keep_version(self, tag: str, old: Any, present: Any) -> None:
        """Note an old value of a memory, as the newest of its versions."""
        others = (
            each
            for each in self._versions(tag)
            if not any(_is_same(each["value"], value) for value in (old, present))
        )
        kept = [*others, {"value": old, "replaced_in_cycle": self.cycle}]
        if self.version_limit:
            self._contents.versions[tag] = kept[-self.version_limit :]
        else:
            self._contents.versions.pop(tag, None)


def document_of(path: Path) -> dict[str, Any]:
    """Return the data of a memory as they were committed last; nothing of a missing one."""
    if not (path.exists() or Backups(path, 0).paths()):
        return {}
    with Memory.read(path) as memory:
        return memory.to_dict()


def _is_same(one: Any, other: Any) -> bool:
    # to Python, 1 and True are equal
    return type(one) is type(other) and to_text(one) == to_text(other)


def _required(tag: str) -> str:
    tag = as_tag(tag)
    if not tag:
        raise FieldValueError("a memory needs a non-empty tag")

    return tag
