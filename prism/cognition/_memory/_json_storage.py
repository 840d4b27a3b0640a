"""A memory as one JSON file, which every commit replaces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from prism.cognition._memory._beside import Backups
from prism.cognition._memory._contents import Contents, StorageKind
from prism.cognition._memory._search import Match, SearchedEntries
from prism.cognition._memory._values import MISSING, to_json
from prism.files._durable import replacing


class JsonStorage:
    """A storage in memory, with a file of JSON where it is given one.

    Args:
        entries: What is in storage.
        path: The file; None for none.
        backups: The file's backups.
        mark: SHA-256 of the file.
    """

    def __init__(
        self,
        entries: Mapping[str, Any],
        path: Path | None = None,
        backups: Backups | None = None,
        mark: str = "",
    ) -> None:
        self.mark: str = mark
        self._entries = dict(entries)
        self._path = path
        self._backups = backups
        self._index: SearchedEntries | None = None
        self._next: tuple[int, bytes] | None = None

    @property
    def path(self) -> Path | None:
        """The file."""
        return self._path

    @property
    def kind(self) -> StorageKind | None:
        """How it is kept; None without a file."""
        return None if self._path is None else "json"

    def get(self, tag: str) -> Any:
        """Return the value under a tag, or `MISSING`."""
        return self._entries.get(tag, MISSING)

    def put(self, entries: Mapping[str, Any]) -> None:
        """Keep values under their tags."""
        if self._index is not None:
            self._index.put((tag, value, self.get(tag)) for tag, value in entries.items())

        self._entries.update(entries)

    def clear(self) -> None:
        """Remove all."""
        self._entries = {}
        self._index = None

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield all tags and values in order of addition."""
        yield from self._entries.items()

    def __len__(self) -> int:
        """Count them."""
        return len(self._entries)

    def search(self, text: str, most: int) -> list[Match]:
        """Return the best matches."""
        if self._index is None:
            # reading all words once is as dear as one search without them
            self._index = SearchedEntries(self._entries.items())

        found = self._index.search(text, most)
        return [Match(tag, self._entries[tag], score) for tag, score in found]

    def commit(self, contents: Contents, steps: list[list[Any]]) -> None:
        """Write the file anew, and keep what it was as its newest backup."""
        if self._path is None:
            return

        content = self._rendered(contents, steps)
        with replacing(self._path) as file:
            file.write(content)
            file.flush()
            # the old file may go only when the new one is safe
            os.fsync(file.fileno())
            if self._backups is not None:
                self._backups.keep_link()

        self.mark = sha256(content).hexdigest()
        self._next = None

    def next_mark(self, contents: Contents, steps: list[list[Any]]) -> str:
        """Return the SHA-256 that the file will have."""
        content = self._rendered(contents, steps)
        # the commit that follows need not do it again
        self._next = len(steps), content
        return sha256(content).hexdigest()

    def _rendered(self, contents: Contents, steps: list[list[Any]]) -> bytes:
        if self._next is not None and self._next[0] == len(steps):
            return self._next[1]

        return to_json(contents.to_dict(self._entries))

    def compact(self, contents: Contents) -> None:
        """Write the file anew if somebody laid it out in another way."""
        content = to_json(contents.to_dict(self._entries))
        if self._path is not None and self._path.read_bytes() != content:
            self.commit(contents, [])

    def close(self) -> None:
        """Forget the words."""
        self._index = None
