"""The memory of an agent, open for one process."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from prism.cognition._memory._beside import Backups, Lock
from prism.cognition._memory._contents import (
    Contents,
    StorageKind,
    checked_document,
    storage_of,
    versions_of,
)
from prism.cognition._memory._json_storage import JsonStorage
from prism.cognition._memory._opening import (
    Opened,
    make_memory,
    open_memory,
    place_of,
)
from prism.cognition._memory._search import Match
from prism.cognition._memory._values import (
    MISSING,
    as_tag,
    plain_value,
    to_text,
    without_surrogates,
)
from prism.errors import FieldValueError, InputError

DEFAULT_BACKUPS = 3
DEFAULT_VERSIONS = 10

_STEPS = (
    *("add", "remove", "load", "save", "page_out", "shorten", "touch", "replace", "end_cycle"),
    *("note_action", "tell", "forget"),
)
_SHORTENED = " …"


class Memory:
    """The memory of an agent; open one with `open` or `in_memory`.

    Only `commit` writes the file: later changes are lost if the process ends without one. A
    replaced value in storage is kept as a version of its memory; search, loading and paging always
    use the current value.

    Attributes:
        faults: What was damaged, and what was read instead.
        version_limit: Number of versions of a memory to keep, the newest ones.
    """

    def __init__(self, opened: Opened, lock: Lock | None = None, *, writes: bool = True) -> None:
        self.faults: tuple[str, ...] = opened.faults
        self.version_limit: int = DEFAULT_VERSIONS
        self._contents = opened.contents
        self._storage = opened.storage
        self._lock = lock
        self._writes = writes
        self._is_closed = False
        self._steps: list[list[Any]] = []
        self._base_cycle = opened.contents.cycle

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
        with a warning, and is kept beside it.

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
        place = place_of(path)
        lock = Lock(place)
        try:
            opened = open_memory(place, storage, Backups(place, backups), writes=True)
            memory = cls(opened, lock)
        except BaseException:
            lock.release()
            raise

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
        opened = open_memory(place, None, Backups(place, 0), writes=False)
        memory = cls(opened, writes=False)
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
        place = place_of(path)
        document = checked_document(data)
        lock = Lock(place)
        try:
            kept = Backups(place, backups)
            if place.exists() or kept.paths():
                raise InputError("already exists: name another file", path=place)

            memory = cls(make_memory(place, document, storage, kept), lock)
            memory._write()
        except BaseException:
            lock.release()
            raise

        return memory

    @classmethod
    def in_memory(cls, data: Mapping[str, Any] | None = None) -> Self:
        """Return a memory without a file, for tests and simulations."""
        document = checked_document(data or {})
        storage = JsonStorage(storage_of(document), versions=versions_of(document))
        return cls(Opened(Contents(document), storage))

    @property
    def path(self) -> Path | None:
        """The file; None for a memory without one."""
        return self._storage.path

    @property
    def kind(self) -> StorageKind | None:
        """The format; None for a memory without a file."""
        return self._storage.kind

    @property
    def state(self) -> str:
        """The agent's state as it was written, which the chart may not know."""
        return self._contents.state

    @state.setter
    def state(self, state: str) -> None:
        state = without_surrogates(state)
        if state != self._contents.state:
            self._contents.state = state
            self._steps.append(["state", state])

    @property
    def cycle(self) -> int:
        """Cycles over the memory's life, failed ones too."""
        return self._contents.cycle

    @property
    def working(self) -> Mapping[str, Any]:
        """Working memory, in order of addition; a view that cannot be written to."""
        return MappingProxyType(self._contents.working)

    @property
    def thoughts(self) -> Mapping[str, str]:
        """The last thoughts, oldest first; a view that cannot be written to."""
        return MappingProxyType(self._contents.thoughts)

    @property
    def unknown(self) -> Mapping[str, Any]:
        """Other keys at the top level of the file, which prism preserves."""
        return MappingProxyType(self._contents.unknown)

    @property
    def last_action(self) -> Mapping[str, Any] | None:
        """The last action and its result, as it was noted; None before the first."""
        return self._contents.last_action

    @property
    def news(self) -> Sequence[str]:
        """The news since the agent's last action, oldest first."""
        return tuple(self._contents.news)

    @property
    def revision(self) -> str:
        """A text that changes with every commit to the file, by any process.

        For JSON, it is the file's SHA-256, so it also changes with edits by hand.
        """
        return self._storage.revision

    def next_revision(self) -> str:
        """Return the revision that the file will have after a commit."""
        if not self._steps:
            return self.revision

        return self._storage.next_revision(self._contents, self._steps)

    @property
    def outdated(self) -> Sequence[str]:
        """Tags in working memory whose value in storage is newer."""
        return tuple(self._contents.outdated)

    @property
    def stored_count(self) -> int:
        """How many memories are in storage."""
        return len(self._storage)

    def add(self, tag: str, value: Any) -> None:
        """Put a value into working memory, replacing any value with the same tag.

        Raises:
            FieldValueError: If the tag is empty, or the value is not JSON data.
        """
        tag, value = _required(tag), plain_value(value)
        self._steps.append(["add", tag, value])
        self._show(tag, value)

    def remove(self, tag: str) -> bool:
        """Remove a value from working memory; return False if there is none."""
        tag = as_tag(tag)
        if tag not in self._contents.working:
            return False

        self._steps.append(["remove", tag])
        self._drop(tag)
        return True

    def forget(self, tag: str) -> bool:
        """Remove a memory with its old values from all places; return False if there is none.

        Backups and kept runs are not changed.
        """
        tag = as_tag(tag)
        is_working = tag in self._contents.working
        if not is_working and self._storage.get(tag) is MISSING:
            return False

        self._steps.append(["forget", tag])
        if is_working:
            self._drop(tag)
        self._storage.put({tag: MISSING})
        self._storage.put_versions({tag: []})
        return True

    def load(self, tag: str) -> bool:
        """Copy a value from storage to working memory; return False if there is none.

        A different value with this tag in working memory becomes a version.
        """
        tag = as_tag(tag)
        value = self._storage.get(tag)
        if value is MISSING:
            return False

        # without the value, which storage has again when the step is repeated
        self._steps.append(["load", tag])
        if tag in self._contents.working and not _is_same(self._contents.working[tag], value):
            self._keep_version(tag, self._contents.working[tag], value)
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
        tag = as_tag(tag)
        if value is None:
            if tag not in self._contents.working:
                return False
            value = self._contents.working[tag]
            self._steps.append(["save", tag])
        else:
            tag, value = _required(tag), plain_value(value)
            self._steps.append(["save", tag, value])

        self._store(tag, value)
        self._contents.outdated = [each for each in self._contents.outdated if each != tag]
        if tag in self._contents.working and not _is_same(self._contents.working[tag], value):
            self._contents.outdated.append(tag)
        return True

    def stored(self, tag: str) -> Any | None:
        """Return the value under a tag in storage, or None."""
        value = self._storage.get(as_tag(tag))
        return None if value is MISSING else value

    def think(self, entry: str, *, key_prefix: str, max_entries: int) -> str:
        """Add a thought, and drop the oldest ones beyond the limit.

        Returns:
            Its key.
        """
        if max_entries < 1:
            raise FieldValueError(f"max_entries must be 1 or more, got {max_entries}")

        entry, key_prefix = without_surrogates(entry), without_surrogates(key_prefix)
        self._steps.append(["think", entry, key_prefix, max_entries])
        return self._contents.add_thought(entry, key_prefix, max_entries)

    def versions(self, tag: str) -> list[Any]:
        """Return the old values of a memory in storage, oldest first."""
        return self._storage.versions(as_tag(tag))

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

        self._steps.append(["page_out", key])
        if key not in working:
            was_other = self._store(as_tag(key), thoughts[key])
            self._contents.drop_thought(key)
            return was_other

        newer = self._storage.get(key) if key in self._contents.outdated else MISSING
        was_other = newer is not MISSING
        if was_other:
            # storage has what was saved since
            self._keep_version(key, working[key], newer)
        else:
            was_other = self._store(key, working[key])
        self._drop(key)

        return was_other

    def shorten(self, key: str, length: int) -> None:
        """Shorten a thought in the log, and move the full text to storage.

        Args:
            key: Its key.
            length: Number of characters to keep.

        Raises:
            FieldValueError: If there is no such thought.
        """
        if key not in self._contents.thoughts:
            raise FieldValueError(f"there is no {key!r} among the thoughts")

        self._steps.append(["shorten", key, length])
        self._store(as_tag(key), self._contents.thoughts[key])
        self._contents.thoughts[key] = self._contents.thoughts[key][:length] + _SHORTENED

    def page_in(self, tag: str) -> bool:
        """Copy a value from storage to working memory, unless the tag exists there.

        Returns:
            Whether it was copied.
        """
        return as_tag(tag) not in self._contents.working and self.load(tag)

    def replace(self, data: Mapping[str, Any]) -> None:
        """Replace all contents with data that `to_dict` returned.

        Raises:
            InputError: If they are not those of a memory.
        """
        document = checked_document(data, self.path)
        self._steps.append(["replace", document])
        self._contents = Contents(document)
        self._storage.clear()
        self._storage.put(storage_of(document))
        self._storage.put_versions(versions_of(document))

    def note_action(self, last: Mapping[str, Any]) -> None:
        """Record the last action and its result, and clear the news."""
        plain = plain_value(last)
        self._steps.append(["note_action", plain])
        self._contents.last_action = plain

    def tell(self, news: Sequence[str]) -> None:
        """Replace the news."""
        plain = [without_surrogates(each) for each in news]
        if plain != self._contents.news:
            self._steps.append(["tell", plain])
            self._contents.news = plain

    def compact(self, *, versions: int | None = None) -> None:
        """Commit, and make the file as small as possible without losing a current value.

        Args:
            versions: Number of versions of a memory to keep; None keeps all.
        """
        if versions is not None:
            kept = self._storage.all_versions()
            fewer = {tag: old[-versions:] if versions else [] for tag, old in kept.items()}
            changed = {tag: old for tag, old in fewer.items() if old != kept[tag]}
            if changed:
                self._storage.put_versions(changed)
                self._steps.append(["compact", versions])
        self.commit()
        self._storage.compact(self._contents)

    def touch(self, tags: Iterable[str]) -> None:
        """Mark values of working memory as used in this cycle."""
        found = [tag for tag in dict.fromkeys(map(as_tag, tags)) if tag in self._contents.working]
        if found:
            self._steps.append(["touch", found])
            for tag in found:
                self._use(tag)

    def least_recently_used(self) -> list[str]:
        """Return the tags of working memory, the least recently used first."""
        used = self._contents.used
        return sorted(self._contents.working, key=lambda tag: used.get(tag, -1))

    def search(self, text: str, limit: int) -> list[Match]:
        """Return the memories in storage that match a text best, best first.

        Args:
            text: Any text; only its words count.
            limit: Maximum number of matches.
        """
        return self._storage.search(text, limit) if limit > 0 else []

    def end_cycle(self) -> None:
        """Count a cycle."""
        self._steps.append(["end_cycle"])
        self._contents.cycle += 1

    def changes(self) -> dict[str, Any] | None:
        """Return the changes since the last commit as plain JSON data, or None."""
        if not self._steps:
            return None

        return {"cycle": self._base_cycle, "steps": [list(step) for step in self._steps]}

    def redo(self, changes: Mapping[str, Any]) -> None:
        """Repeat the changes that `changes` returned, on a memory in the earlier state.

        Raises:
            InputError: If the memory is at another cycle.
        """
        if changes["cycle"] != self.cycle or self._steps:
            problem = f"is at cycle {self.cycle}: the changes follow cycle {changes['cycle']}"
            raise InputError(problem, path=self.path)

        for name, *arguments in changes["steps"]:
            self._redo_step(name, arguments)

    def commit(self) -> None:
        """Write everything to the file, atomically and durably.

        Raises:
            InputError: If it is closed, or open for reading only.
            OSError: If that fails; neither the file nor the memory is changed.
        """
        if not self._writes:
            raise InputError("is open only for reading", path=self.path)
        if self.path is None:
            self._write()
            return

        if self._steps or not self.path.exists():
            # whoever has its lock by now must not lose anything
            if self._is_closed:
                raise InputError("is closed: open it again to change it", path=self.path)
            self._write()

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

    def _warn(self) -> None:
        try:
            for fault in self.faults:
                warnings.warn(fault, RuntimeWarning, stacklevel=3)
        except RuntimeWarning:  # the application makes errors of warnings
            self.close()
            raise

    def _write(self) -> None:
        self._storage.commit(self._contents, self._steps)
        self._steps = []
        self._base_cycle = self._contents.cycle

    def _use(self, tag: str) -> None:
        self._contents.used[tag] = self._contents.cycle

    def _show(self, tag: str, value: Any) -> None:
        self._contents.working[tag] = value
        self._contents.outdated = [each for each in self._contents.outdated if each != tag]
        self._use(tag)

    def _drop(self, tag: str) -> None:
        del self._contents.working[tag]
        self._contents.outdated = [each for each in self._contents.outdated if each != tag]
        self._contents.used.pop(tag, None)

    def _store(self, tag: str, value: Any) -> bool:
        """Put a value into storage; return whether another one became a version by it."""
        standing = self._storage.get(tag)
        is_other = standing is not MISSING and not _is_same(standing, value)
        if is_other:
            self._keep_version(tag, standing, value)
        self._storage.put({tag: value})

        return is_other

    def _keep_version(self, tag: str, old: Any, present: Any) -> None:
        """Note an old value of a memory, as the newest of its versions."""
        others = (each for each in self._storage.versions(tag) if not _is_same(each, old))
        kept = [*(each for each in others if not _is_same(each, present)), old]
        self._storage.put_versions({tag: kept[-self.version_limit :] if self.version_limit else []})

    def _redo_step(self, name: str, arguments: list[Any]) -> None:
        if name == "state":
            self.state = arguments[0]
        elif name == "think":
            entry, key_prefix, max_entries = arguments
            self.think(entry, key_prefix=key_prefix, max_entries=max_entries)
        elif name in _STEPS:
            getattr(self, name)(*arguments)
        else:
            raise InputError(f"has no change {name!r}", path=self.path)


def _is_same(one: Any, other: Any) -> bool:
    # to Python, 1 and True are equal
    return to_text(one) == to_text(other) and type(one) is type(other)


def _required(tag: str) -> str:
    tag = as_tag(tag)
    if not tag:
        raise FieldValueError("a memory needs a non-empty tag")

    return tag
