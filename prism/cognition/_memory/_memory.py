"""The memory of an agent, open for one process."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from prism.cognition._memory import _opening as opening
from prism.cognition._memory._beside import Backups, Lock, backup_under_way
from prism.cognition._memory._contents import (
    Contents,
    NewerSchemaError,
    StorageKind,
    misspelt_state,
)
from prism.cognition._memory._search import Match
from prism.cognition._memory._storage import STEPS, JsonStorage
from prism.cognition._memory._values import (
    MISSING,
    as_tag,
    plain_value,
    to_json,
    to_text,
    value_and_cycle,
    version_of,
)
from prism.errors import FieldValueError, InputError
from prism.files._durable import unfinished
from prism.files._source import Source
from prism.runs._documents import may_change
from prism.statechart.reasoner._texts import whole_characters

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
        kind: The format; None for a memory without a file.
        faults: What was damaged, and what was read instead.
        version_limit: Number of versions of a memory to keep, the newest ones.
        working: Working memory, in order of addition; a view that cannot be written to.
        thoughts: The last thoughts, oldest first; a view that cannot be written to.
    """

    def __init__(
        self,
        storage: opening.AnyStorage,
        faults: tuple[str, ...] = (),
        lock: Lock | None = None,
        *,
        writes: bool = True,
    ) -> None:
        self.path: Path | None = storage.path
        self.kind: StorageKind | None = storage.kind
        self.faults: tuple[str, ...] = faults
        self.version_limit: int = DEFAULT_VERSIONS
        self._storage = storage
        self._take(storage.contents)
        self._lock = lock
        self._writes = writes
        self._is_closed = False
        self._committed = self._rendered()
        self._committed_cycle = self.cycle

    @classmethod
    def open(
        cls,
        path: PathLike[str] | str,
        *,
        storage: StorageKind | None = None,
        backups: int = DEFAULT_BACKUPS,
    ) -> Self:
        """Open a memory for writing, which locks out other processes.

        A missing file is an empty memory. A damaged one is restored from its newest good backup,
        with a warning, and is kept beside it. In a rehearsal, a dry run or a repeated run, the
        memory is a copy without a file, as none of them may change it.

        Args:
            path: The file.
            storage: Format of a new memory, which an existing one must have: ``"json"``, one file
                that people can read, or ``"sqlite"``, a database for large memories. None accepts
                any existing file, and makes a new one in JSON.
            backups: Number of backups to keep beside the file.

        Raises:
            InputError: If another process has it open, it is damaged and no backup is good, a newer
                prism wrote it, or it is kept in another way.
            OSError: If it cannot be read or written.
        """
        place = opening.place_of(path)
        if not may_change(place):
            return cls.in_memory(document_of(place))

        with Lock(place) as lock:
            opened = opening.open_storage(place, storage, Backups(place, backups), writes=True)
            memory = cls(*opened, lock)
        memory._warn()
        return memory

    @classmethod
    def read(cls, path: PathLike[str] | str) -> Self:
        """Open a memory for reading, as of the last commit; another process may be changing it.

        Raises:
            InputError: If there is none, or it is damaged and no backup is good.
            OSError: If it cannot be read.
        """
        place = opening.place_of(path)
        opened = opening.open_storage(place, None, Backups(place, 0), writes=False)
        memory = cls(*opened, writes=False)
        memory._warn()

        return memory

    @classmethod
    def create(
        cls,
        path: PathLike[str] | str,
        data: Mapping[str, Any],
        *,
        storage: StorageKind = "json",
        backups: int = DEFAULT_BACKUPS,
    ) -> Self:
        """Create a memory from the data that `to_dict` returned, and open it.

        Raises:
            InputError: If the file exists, or the data are not those of a memory.
            OSError: If it cannot be written.
        """
        place = opening.place_of(path)
        contents = Contents(Source.of(data))
        if not may_change(place):
            return cls.in_memory(data)

        with Lock(place) as lock:
            kept = Backups(place, backups)
            if place.exists() or kept.paths():
                raise InputError("already exists: name another file", path=place)

            memory = cls(opening.new_storage(place, storage, kept), lock=lock)
            memory._become(contents)
            memory.commit()

        return memory

    @classmethod
    def in_memory(cls, data: Mapping[str, Any] | None = None) -> Self:
        """Return a memory without a file, for tests and simulations."""
        return cls(JsonStorage(Contents(Source.of(data or {}))))

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
    def outdated(self) -> Sequence[str]:
        """Tags in working memory whose value in storage is newer."""
        return tuple(self._contents.own["outdated"])

    @property
    def stored_count(self) -> int:
        """How many memories are in storage."""
        return len(self._storage)

    @property
    def revision(self) -> str:
        """A text that changes with every commit to the file, by any process.

        For JSON, it is the file's SHA-256, so it also changes with edits by hand.
        """
        return self._storage.revision

    def next_revision(self) -> str:
        """Return the revision that the file will have after a commit."""
        return self._storage.next_revision(self._contents) if self._has_changed() else self.revision

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
            self._note_outdated(tag, is_outdated=False)

        return is_there

    def forget(self, tag: str) -> bool:
        """Remove a memory with its old values from all places; return False if there is none.

        Backups and kept runs are not changed.
        """
        tag = as_tag(tag)
        was_working = self.remove(tag)
        is_stored = self._storage.get(tag) is not MISSING
        if is_stored:
            self._storage.write("remove", tag)
        has_versions = bool(self._storage.versions(tag))
        if has_versions:
            self._storage.write("put_versions", {tag: []})

        return was_working or is_stored or has_versions

    def load(self, tag: str) -> bool:
        """Copy a value from storage to working memory; return False if there is none.

        Another value with this tag in working memory becomes a version.
        """
        tag = as_tag(tag)
        value = self._storage.get(tag)
        if value is MISSING:
            return False

        self._show(tag, value)
        return True

    def save(self, tag: str, value: Any | None = None) -> bool:
        """Copy a value to storage, where a different value with the same tag becomes a version.

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
        self._note_outdated(tag, is_outdated=tag in working and not _is_same(working[tag], value))
        return True

    def stored(self, tag: str) -> Any | None:
        """Return the value under a tag in storage, or None."""
        value = self._storage.get(as_tag(tag))
        return None if value is MISSING else value

    def versions(self, tag: str) -> list[Any]:
        """Return the old values of a memory, oldest first."""
        return [value for value, _ in self._versions(tag)]

    def version_cycles(self, tag: str) -> list[int | None]:
        """Return the cycle in which each of these was replaced; None if an earlier release did."""
        return [cycle for _, cycle in self._versions(tag)]

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

        newer = self._storage.get(key) if key in self.outdated else MISSING
        was_other = newer is not MISSING
        if was_other:
            # storage has what was saved since
            self._keep_version(key, working[key], newer)
        else:
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
            self._contents.return_thought(tag, self._storage.get(tag))
            return True

        return tag not in self._contents.working and self.load(tag)

    def is_missing_thought(self, tag: str) -> bool:
        """Return whether storage has a thought under a tag, which is not in the log."""
        is_text = isinstance(self._storage.get(tag), str)
        return is_text and self._contents.is_missing_thought(tag)

    def replace(self, data: Mapping[str, Any]) -> None:
        """Replace all contents with data that `to_dict` returned.

        Raises:
            InputError: If they are not those of a memory.
        """
        self._become(Contents(Source.of(data, self.path)))

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
        return self._storage.search(text, limit, plurals=plurals) if limit > 0 else []

    def end_cycle(self) -> None:
        """Count a cycle."""
        self._contents.own["cycle"] += 1

    def changes(self) -> dict[str, Any] | None:
        """Return the changes since the last commit as plain JSON data, or None."""
        if not self._has_changed():
            return None

        return {
            "cycle": self._committed_cycle,
            "document": self._contents.to_dict({}, {}),
            "steps": [list(step) for step in self._storage.steps],
        }

    def redo(self, changes: Mapping[str, Any]) -> None:
        """Repeat the changes that `changes` returned, on a memory in the earlier state.

        Raises:
            InputError: If the memory is at another cycle.
        """
        if changes["cycle"] != self.cycle or self._has_changed():
            problem = f"is at cycle {self.cycle}: the changes follow cycle {changes['cycle']}"
            raise InputError(problem, path=self.path)
        if unknown := [name for name, *_ in changes["steps"] if name not in STEPS]:
            raise InputError(f"has no change {unknown[0]!r}", path=self.path)

        self._take(Contents(Source.of(changes["document"], self.path)))
        for step in changes["steps"]:
            self._storage.write(*step)

    def commit(self) -> None:
        """Write everything to the file, atomically and durably.

        Raises:
            InputError: If it is closed, or open for reading only.
            OSError: If that fails; neither the file nor the memory is changed.
        """
        if not self._writes:
            raise InputError("is open only for reading", path=self.path)
        rendered = self._rendered()
        has_changed = self._storage.steps or rendered != self._committed
        if not has_changed and (self.path is None or self.path.exists()):
            return
        # whoever has its lock by now must not lose anything
        if self._is_closed and self.path is not None:
            raise InputError("is closed: open it again to change it", path=self.path)

        self._storage.commit(self._contents)
        self._committed = rendered
        self._committed_cycle = self.cycle

    def compact(self, *, versions: int | None = None) -> None:
        """Commit, and make the file as small as possible without losing a current value.

        Args:
            versions: Number of versions of a memory to keep; None keeps all.
        """
        if versions is not None:
            kept = self._storage.all_versions()
            fewer = {tag: old[-versions:] if versions else [] for tag, old in kept.items()}
            if changed := {tag: old for tag, old in fewer.items() if old != kept[tag]}:
                self._storage.write("put_versions", changed)
        self.commit()
        self._storage.compact(self._contents)

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain data, in the shape of its JSON file."""
        return self._contents.to_dict(dict(self._storage.items()), self._storage.all_versions())

    def close(self) -> None:
        """Close the file; uncommitted changes are lost. A failed last backup is only a warning."""
        self._is_closed = True
        try:
            self._storage.close()
        except (OSError, InputError) as error:
            problem = f"{self.path}: the memory is intact, but its last backup failed: {error}"
            warnings.warn(problem, RuntimeWarning, stacklevel=2)
        finally:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Self:
        """Return the memory itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()

    def _versions(self, tag: str) -> list[tuple[Any, int | None]]:
        return [value_and_cycle(each) for each in self._storage.versions(as_tag(tag))]

    def _take(self, contents: Contents) -> None:
        self._contents = contents
        self.working: Mapping[str, Any] = MappingProxyType(contents.working)
        self.thoughts: Mapping[str, str] = MappingProxyType(contents.thoughts)

    def _become(self, contents: Contents) -> None:
        self._take(contents)
        self._storage.write("clear")
        self._storage.write("put", contents.stored)
        self._storage.write("put_versions", contents.versions)

    def _warn(self) -> None:
        try:
            for fault in self.faults:
                warnings.warn(fault, RuntimeWarning, stacklevel=3)
        except RuntimeWarning:  # the application makes errors of warnings
            self.close()
            raise

    def _rendered(self) -> bytes:
        return to_json(self._contents.to_dict({}, {}))

    def _has_changed(self) -> bool:
        return bool(self._storage.steps) or self._rendered() != self._committed

    def _show(self, tag: str, value: Any) -> None:
        old = self._contents.working.get(tag, value)
        if not (_is_same(old, value) or _is_same(self._storage.get(tag), old)):
            self._keep_version(tag, old, value)
        self._contents.working[tag] = value
        self._contents.own["used"][tag] = self.cycle
        self._note_outdated(tag, is_outdated=False)

    def _note_outdated(self, tag: str, *, is_outdated: bool) -> None:
        others = [each for each in self.outdated if each != tag]
        self._contents.own["outdated"] = [*others, tag] if is_outdated else others

    def _store(self, tag: str, value: Any) -> bool:
        """Put a value into storage; return whether another one became a version by it."""
        standing = self._storage.get(tag)
        is_other = standing is not MISSING and not _is_same(standing, value)
        if is_other:
            self._keep_version(tag, standing, value)
        if is_other or standing is MISSING:
            self._storage.write("put", {tag: value})

        return is_other

    def _keep_version(self, tag: str, old: Any, present: Any) -> None:
        """Note an old value of a memory, as the newest of its versions."""
        others = (
            each
            for each in self._storage.versions(tag)
            if not any(_is_same(value_and_cycle(each)[0], value) for value in (old, present))
        )
        kept = [*others, version_of(old, self.cycle)]
        newest = kept[-self.version_limit :] if self.version_limit else []
        self._storage.write("put_versions", {tag: newest})


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


class MemoryText:
    """A memory as a text of JSON, locked while somebody edits it.

    Args:
        path: The memory.

    Raises:
        InputError: If another process has it open, or it cannot be read at all.

    Attributes:
        text: The text; a damaged JSON file as it is.
        damage: What is wrong with it, or nothing.
    """

    def __init__(self, path: Path) -> None:
        self._place = place = opening.place_of(path)
        self.damage: str = ""
        if opening.kind_of(place) == "json":
            try:
                opening.read_json(place.read_bytes(), place)
            except NewerSchemaError:
                raise
            except InputError as error:
                self.damage = str(error)

        if self.damage:
            self._memory = Memory(JsonStorage(Contents(Source.of({})), place), lock=Lock(place))
            self.text: str = place.read_bytes().decode("utf-8", "surrogateescape")
        else:
            self._memory = Memory.open(place)
            self.text = to_json(self._memory.to_dict()).decode()

    def write(self, text: str) -> None:
        """Make the memory what a text says; a damaged file is kept beside it.

        Raises:
            InputError: If it is not that of a memory; names line or key. Nothing is changed.
            OSError: If it cannot be written.
        """
        contents = opening.read_json(text.encode("utf-8", "surrogateescape"))
        if self.damage:
            opening.set_aside(self._place)
        self._memory._become(contents)
        self._memory.commit()

    def close(self) -> None:
        """Let others open the memory."""
        self._memory.close()


def compact_memory(
    path: Path, backups: int | None = None, versions: int | None = None
) -> tuple[int, int, list[Path]]:
    """Make the file of a memory as small as possible, without losing any current value.

    Args:
        path: The memory.
        backups: Remove the backups beyond the newest so many; None for none of them.
        versions: Drop the versions of each memory beyond the newest so many; None for none.

    Returns:
        The bytes of its file before and now, and the files that were removed.

    Raises:
        InputError: If it cannot be opened.
        OSError: If it cannot be written.
    """
    place = opening.place_of(path)
    before = place.stat().st_size if place.exists() else 0
    with Memory.open(place, backups=DEFAULT_BACKUPS if backups is None else backups) as memory:
        memory.compact(versions=versions)
        # what killed processes left of files that they were writing
        backup = backup_under_way(place)
        left = unfinished(place), backup, unfinished(backup)
        removed = [file for file in left if file.exists()]
        for file in removed:
            file.unlink(missing_ok=True)

    if backups is not None:
        removed += Backups(place, backups).discard_surplus()

    return before, place.stat().st_size, removed
