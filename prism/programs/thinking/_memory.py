"""The memory of an agent: working memory, storage, thoughts and state, in one JSON file."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from hashlib import sha256
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import IO, Annotated, Any, ClassVar, Self

import orjson
from pydantic import ConfigDict, Field

from prism.errors import FieldValueError, InputError
from prism.files.declarations import Declaration, read_document
from prism.files.durable import lock, write_durably
from prism.files.source import Source
from prism.programs._documents import as_data
from prism.programs.thinking._search import Match, WordIndex
from prism.runs.documents import may_change

_MISSING: Any = object()
"""Stands for no value, since a memory may be null."""

_VALUE = "a memory's value"
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
MOST_VERSIONS = 10
"""How many old values of each memory are kept."""

MOST_RECENT = 12
"""How many of the last actions are kept, to notice that an agent goes in circles."""


def to_text(value: Any) -> str:
    """Return a value as text for people and models: text as it is, other data as compact JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def as_tag(text: str) -> str:
    """Return the tag that a text stands for: its words, with underscores between them."""
    return _BLANKS.sub(" ", text).strip().replace(" ", "_")


def to_json(value: Any) -> bytes:
    """Return data as JSON that people can read."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


class Progress(Declaration):
    """The part of a memory's file that prism keeps for itself; what is empty is left out."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow", frozen=False)

    cycle: Annotated[int, Field(ge=0, le=2**53)] = 0
    next_thought: Annotated[int, Field(ge=1, le=2**53)] = 1
    used: dict[str, int] = Field(default={})
    last_action: str = ""
    fault: str = ""
    matches: list[str] = Field(default=[])
    recent: list[str] = Field(default=[])
    news: list[str] = Field(default=[])
    versions: dict[str, list[Any]] = Field(default={})
    thought_prefix: str = "thinking_log_"


class _Document(Declaration):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    working_memory: dict[str, Any] = Field(default={})
    storage: dict[str, Any] = Field(default={})
    state: str = "thinking"
    prism: Progress = Field(default_factory=Progress)


class Memory:
    """The memory of an agent; open one with `open`, `read` or `in_memory`.

    Only `commit` writes the file, whole and durably. The file before it stays beside it, as
    ``memory.json.bak``, and is read instead of a damaged file.

    A value in working memory is never older than the one with its tag in storage.

    Attributes:
        path: The file; None for a memory without one.
        state: The agent's state.
        working: Working memory, in order of addition; a view that cannot be written to.
        storage: Storage; a view that cannot be written to.
        thoughts: The last thoughts, oldest first; a view that cannot be written to.
        unknown: Other keys at the top level of the file, which prism preserves.
        progress: What else is remembered, such as the number of cycles and the last action.
        user: The agent that is in a cycle with it, if any.
    """

    def __init__(
        self, source: Source, path: Path | None = None, lock_file: IO[bytes] | None = None
    ) -> None:
        self.path: Path | None = path
        self._lock_file = lock_file
        self.user: Any = None
        self._take(source)

    @classmethod
    def open(cls, path: PathLike[str] | str) -> Self:
        """Open a memory for writing, which locks out other processes; a missing one is empty.

        Raises:
            InputError: If it is open already, or damaged and without a good backup.
            FieldTypeError: If it has a value that cannot be written again.
            OSError: If it cannot be read or written.
        """
        target = Path(os.path.realpath(path))
        if not may_change(target):
            return cls(Source.of(cls._read(target, None).to_dict()))
        lock_file = _locked(target)
        try:
            return cls._read(target, lock_file)
        except BaseException:
            lock_file.close()
            raise

    @classmethod
    def read(cls, path: PathLike[str] | str) -> Self:
        """Open a memory for reading, as of the last commit; raise an InputError without one."""
        target = Path(os.path.realpath(path))
        if not target.exists() and not _backup(target).exists():
            raise InputError("this memory does not exist", path=target)
        return cls._read(target, None)

    @classmethod
    def in_memory(cls, data: Mapping[str, Any] | None = None) -> Self:
        """Return a memory without a file."""
        return cls(Source.of(as_data(dict(data or {}), "a memory")))

    @classmethod
    def _read(cls, path: Path, lock_file: IO[bytes] | None) -> Self:
        backup = _backup(path)
        if not path.exists() and not backup.exists():
            return cls(Source.of({}), path, lock_file)
        try:
            return cls(Source.read(path, "json"), path, lock_file)
        except (InputError, OSError) as error:
            if not backup.exists():
                raise
            memory = cls(Source.read(backup, "json"), path, lock_file)
            warnings.warn(f"{error}: read from {backup}", RuntimeWarning, stacklevel=3)
            if lock_file is not None and path.exists():
                path.replace(path.with_name(f"{path.name}.damaged"))
            return memory

    # Contents

    def _take(self, source: Source) -> None:
        """Take the data of a document; nothing has changed if that fails."""
        document: _Document = read_document(_Document, source)
        if source.path and source.value and not source.value.keys() & _Document.model_fields:
            raise source.error("is no memory, which has working_memory or storage")
        progress, others = document.prism, dict(document.model_extra or {})
        thoughts: dict[str, str] = {}
        is_thought = re.compile(re.escape(progress.thought_prefix) + r"(\d{3,15})").fullmatch
        numbers = {int(match[1]): key for key in others if (match := is_thought(key))}
        for number in sorted(numbers):
            thoughts[numbers[number]] = to_text(others.pop(numbers[number]))
            progress.next_thought = max(progress.next_thought, number + 1)
        self._working = _by_tag(document.working_memory, "working_memory", source)
        self._stored = _by_tag(document.storage, "storage", source)
        self._spellings = {tag.casefold(): tag for tag in (*self._stored, *self._working)}
        progress.used = {tag: cycle for tag, cycle in progress.used.items() if tag in self._working}
        self.state: str = document.state
        self.progress: Progress = progress
        self._thoughts = thoughts
        self._index: WordIndex | None = None
        self.working: Mapping[str, Any] = MappingProxyType(self._working)
        self.storage: Mapping[str, Any] = MappingProxyType(self._stored)
        self.thoughts: Mapping[str, str] = MappingProxyType(thoughts)
        self.unknown: Mapping[str, Any] = MappingProxyType(others)

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain data, in the shape of its file."""
        return {
            **self.unknown,
            "working_memory": {**self._working},
            "storage": {**self._stored},
            "state": self.state,
            **self._thoughts,
            "prism": self.progress.model_dump(exclude_defaults=True),
        }

    @property
    def revision(self) -> str:
        """The SHA-256 of what a commit would write."""
        return sha256(to_json(self.to_dict())).hexdigest()

    @property
    def cycle(self) -> int:
        """Cycles over the memory's life, failed ones too."""
        return self.progress.cycle

    def tag_of(self, text: str) -> str:
        """Return the tag that a text names: that of a memory, in whatever case, or a new one."""
        tag = as_tag(text)
        exists = tag in self._working or tag in self._stored
        return tag if exists else self._spellings.get(tag.casefold(), tag)

    def stored(self, tag: str) -> Any | None:
        """Return the value under a tag in storage, or None."""
        return self._stored.get(self.tag_of(tag))

    def versions(self, tag: str) -> list[Any]:
        """Return the old values of a memory, oldest first."""
        return list(self.progress.versions.get(self.tag_of(tag), []))

    def search(self, text: str, limit: int) -> list[Match]:
        """Return the memories in storage that match a text best, best first."""
        if self._index is None:
            self._index = WordIndex()
            for tag, value in self._stored.items():
                self._index.put(tag, to_text(value))
        matches = self._index.search(text, limit)
        return [Match(tag, self._stored[tag], score) for tag, score in matches]

    def least_recently_used(self) -> list[str]:
        """Return the tags of working memory, the least recently used first."""
        return sorted(self._working, key=lambda tag: self.progress.used.get(tag, -1))

    # Changes

    def add(self, tag: str, value: Any) -> None:
        """Put a value into working memory, where another one with its tag becomes a version."""
        self._show(self.tag_of(_required(tag)), as_data(value, _VALUE))

    def remove(self, tag: str) -> bool:
        """Remove a value from working memory; return False if there is none.

        One that is not in storage becomes a version.
        """
        tag = self.tag_of(tag)
        self.progress.used.pop(tag, None)
        if (old := self._working.pop(tag, _MISSING)) is _MISSING:
            return False
        self._keep_version(tag, old, self._stored.get(tag))
        return True

    def load(self, tag: str) -> bool:
        """Copy a value from storage to working memory; return False if there is none.

        A newer value with this tag in working memory stays.
        """
        tag = self.tag_of(tag)
        if tag not in self._stored:
            return False
        self._working.setdefault(tag, self._stored[tag])
        self.touch([tag])
        return True

    def save(self, tag: str, value: Any | None = None) -> bool:
        """Put a value into storage, by default the one in working memory; False without one.

        A different value with the same tag becomes a version, also in working memory.
        """
        tag = self.tag_of(tag if value is None else _required(tag))
        if value is None and tag not in self._working:
            return False
        value = self._working[tag] if value is None else as_data(value, _VALUE)
        self._store(tag, value)
        if tag in self._working and self._working[tag] != value:
            self._show(tag, value)
        return True

    def page_out(self, tag: str) -> None:
        """Move a value of working memory, or a thought, to storage."""
        if tag in self._thoughts:
            self._store(tag, self._thoughts.pop(tag))
        elif self.save(tag):
            self.remove(tag)

    def think(self, entry: str, *, key_prefix: str, max_entries: int) -> str:
        """Add a thought, and drop the oldest ones beyond the limit; return its key."""
        progress = self.progress
        progress.thought_prefix = key_prefix
        key = f"{key_prefix}{progress.next_thought:03}"
        progress.next_thought += 1
        self._thoughts[key] = entry
        while len(self._thoughts) > max_entries:
            del self._thoughts[next(iter(self._thoughts))]
        return key

    def touch(self, tags: Iterable[str]) -> None:
        """Mark values of working memory as used in this cycle."""
        used = {tag: self.cycle for tag in map(self.tag_of, tags) if tag in self._working}
        self.progress.used = {**self.progress.used, **used}

    def is_recent(self, deed: str) -> bool:
        """Return whether a deed is one of the last, and note it as the very last."""
        was_recent = deed in self.progress.recent
        self.progress.recent = [*self.progress.recent, deed][-MOST_RECENT:]
        return was_recent

    def end_cycle(self) -> None:
        """Count a cycle."""
        self.progress.cycle += 1

    def replace(self, data: Mapping[str, Any]) -> None:
        """Replace all contents with data that `to_dict` returned."""
        self._take(Source.of(as_data(dict(data), "a memory")))

    def _show(self, tag: str, value: Any) -> None:
        old = self._working.get(tag, _MISSING)
        if self._stored.get(tag, _MISSING) != old:
            self._keep_version(tag, old, value)
        self._working[tag] = value
        self._spellings[tag.casefold()] = tag
        self.touch([tag])

    def _store(self, tag: str, value: Any) -> None:
        self._keep_version(tag, self._stored.get(tag, _MISSING), value)
        self._stored[tag] = value
        self._spellings[tag.casefold()] = tag
        if self._index is not None:
            self._index.put(tag, to_text(value))

    def _keep_version(self, tag: str, old: Any, new: Any) -> None:
        versions = self.versions(tag)
        last = versions[-1] if versions else _MISSING
        if old is not _MISSING and old != last and to_json(old) != to_json(new):
            kept = [*versions, old][-MOST_VERSIONS:]
            self.progress.versions = {**self.progress.versions, tag: kept}

    # The file

    def commit(self) -> None:
        """Write everything to the file, atomically and durably; the file before is the backup.

        Raises:
            InputError: If the memory is closed, or open for reading only.
            OSError: If that fails; neither the file nor the memory is changed.
        """
        if self.path is None:
            return
        if self._lock_file is None:
            raise InputError("is closed, or open only for reading", path=self.path)
        if self.path.exists():
            # a second name first, so that at every instant there is a good file
            spare = self.path.with_name(f"{self.path.name}.new.bak")
            spare.unlink(missing_ok=True)
            os.link(self.path, spare)
            spare.replace(_backup(self.path))
        write_durably(self.path, to_json(self.to_dict()))

    def close(self) -> None:
        """Close the file; uncommitted changes are lost."""
        if self._lock_file is not None:
            self._lock_file.close()
            self._lock_file = None

    def __enter__(self) -> Self:
        """Return the memory itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()


def _by_tag(values: Mapping[str, Any], name: str, source: Source) -> dict[str, Any]:
    """Return the memories of a document by their tags, which differ.

    Raises:
        InputError: If two have one tag, of which a commit would lose one, or one has none.
        FieldTypeError: If a value cannot be written again, such as a number of twenty digits.
    """
    by_tag = {as_tag(tag): value for tag, value in values.items()}
    if len(by_tag) < len(values) or "" in by_tag:
        raise source.error("has two memories of one tag ('a b' is a_b), or one without", (name,))
    return dict(as_data(by_tag, name))


def _backup(path: Path) -> Path:
    return path.with_name(f"{path.name}.bak")


def _locked(path: Path) -> IO[bytes]:
    """Return the open lock file beside a memory, which stays there: removing it is a race."""
    lock_file = path.with_name(f"{path.name}.lock").open("ab")
    try:
        lock(lock_file.fileno())
    except BlockingIOError:
        lock_file.close()
        raise InputError("is in use: close it first, or wait for it", path=path) from None
    except OSError:  # a file system without locks
        pass
    return lock_file


def _required(tag: str) -> str:
    if not (tag := as_tag(tag)):
        raise FieldValueError("a memory needs a tag")
    return tag
