"""Storage of memories, and a memory as one JSON file, which every commit replaces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from prism.cognition._memory._beside import Backups
from prism.cognition._memory._contents import Contents, StorageKind
from prism.cognition._memory._search import Match, WordIndex, index_in_memory
from prism.cognition._memory._values import MISSING, to_json
from prism.files._durable import replacing

STEPS = ("put", "remove", "put_versions", "clear")


class Storage:
    """The stored part of a memory, in its file or in RAM.

    Args:
        path: The file; None for none.
        kind: How it is kept; None without a file.

    Attributes:
        contents: What the file says, apart from the storage of a database.
        revision: What was committed last.
        steps: What was written since, each with the name of what it does.
    """

    contents: Contents

    def __init__(self, path: Path | None, kind: StorageKind | None) -> None:
        self.path: Path | None = path
        self.kind: StorageKind | None = kind
        self.revision: str = ""
        self.steps: list[list[Any]] = []
        self._done = 0

    def write(self, name: str, *arguments: Any) -> None:
        """Change what is stored.

        Args:
            name: ``put``, given values by tag; ``remove``, given a tag; ``put_versions``, given
                old values, oldest first, by tag; or ``clear``.
            arguments: What it is given: plain data, not to be changed any more.
        """
        self.steps.append([name, *arguments])
        self._do_steps()

    def _do_steps(self) -> None:
        """Do what was written and has not been done yet."""
        for name, *arguments in self.steps[self._done :]:
            getattr(self, f"_{name}")(*arguments)
            self._done += 1


class JsonStorage(Storage):
    """A storage in memory, with a file of JSON where it is given one.

    Args:
        contents: What the file says.
        path: The file; None for none.
        backups: The file's backups.
        content: The file as it is.
    """

    def __init__(
        self,
        contents: Contents,
        path: Path | None = None,
        backups: Backups | None = None,
        content: bytes | None = None,
    ) -> None:
        super().__init__(path, None if path is None else "json")
        self.contents = contents
        self.revision = "" if content is None else sha256(content).hexdigest()
        self._entries = contents.stored
        self._versions = contents.versions
        self._backups = backups
        self._index: WordIndex | None = None
        # by their numbers in the index
        self._tags: list[str] = []
        self._numbers: dict[str, int] = {}
        self._next: tuple[Any, bytes] | None = None

    def get(self, tag: str) -> Any:
        """Return the value under a tag, or `MISSING`."""
        return self._entries.get(tag, MISSING)

    def versions(self, tag: str) -> list[Any]:
        """Return the old values under a tag, oldest first."""
        return list(self._versions.get(tag, []))

    def all_versions(self) -> dict[str, list[Any]]:
        """Return all old values, oldest first, by tag."""
        return {tag: list(values) for tag, values in self._versions.items()}

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return all tags and values in order of addition."""
        return self._entries.items()

    def __len__(self) -> int:
        """Count them."""
        return len(self._entries)

    def search(self, text: str, limit: int, *, plurals: bool) -> list[Match]:
        """Return the best matches."""
        if self._index is None:
            # reading all words once is as dear as one search without them
            self._index = index_in_memory()
            self._index_changes((tag, value, MISSING) for tag, value in self._entries.items())

        found = self._index.search(text, limit, plurals=plurals)
        tags = [(self._tags[number], score) for number, score in found]
        return [Match(tag, self._entries[tag], score) for tag, score in tags]

    def next_revision(self, contents: Contents) -> str:
        """Return the revision that a commit will make."""
        return sha256(self._rendered(contents)).hexdigest()

    def commit(self, contents: Contents) -> None:
        """Write the file anew, and keep what it was as its newest backup."""
        if self.path is not None:
            content = self._rendered(contents)
            with replacing(self.path) as file:
                file.write(content)
                file.flush()
                # the old file may go only when the new one is safe
                os.fsync(file.fileno())
                if self._backups is not None:
                    self._backups.keep_link()

            self.revision = sha256(content).hexdigest()
        self.steps, self._done, self._next = [], 0, None

    def compact(self, contents: Contents) -> None:
        """Write the file anew if somebody laid it out in another way."""
        if self.path is not None and self.path.read_bytes() != self._rendered(contents):
            self.commit(contents)

    def close(self) -> None:
        """Close the file; what was not committed is lost."""
        self._index = None

    def _rendered(self, contents: Contents) -> bytes:
        """Return the file as it is to be; asked for the same again, it does no work."""
        state = len(self.steps), to_json(contents.to_dict({}, {}))
        if self._next is None or self._next[0] != state:
            self._next = state, to_json(contents.to_dict(self._entries, self._versions))

        return self._next[1]

    def _put(self, entries: Mapping[str, Any]) -> None:
        self._index_changes((tag, value, self.get(tag)) for tag, value in entries.items())
        self._entries.update(entries)

    def _remove(self, tag: str) -> None:
        self._index_changes([(tag, MISSING, self._entries.pop(tag))])
        self._numbers.pop(tag, None)

    def _index_changes(self, changes: Iterable[tuple[str, Any, Any]]) -> None:
        """Index tags with their values, and the values that stood there before."""
        if self._index is not None:
            self._index.put((self._number_of(tag), tag, *values) for tag, *values in changes)

    def _number_of(self, tag: str) -> int:
        if tag not in self._numbers:
            self._numbers[tag] = len(self._tags)
            self._tags.append(tag)

        return self._numbers[tag]

    def _put_versions(self, kept: Mapping[str, list[Any]]) -> None:
        self._versions = {**self._versions, **kept}
        self._versions = {tag: values for tag, values in self._versions.items() if values}

    def _clear(self) -> None:
        self._entries, self._versions, self._index = {}, {}, None
        self._tags, self._numbers = [], {}
