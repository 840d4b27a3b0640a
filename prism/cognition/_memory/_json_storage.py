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
        revision: SHA-256 of the file.
        versions: Old values, oldest first, by tag.

    Attributes:
        kind: How it is kept; None without a file.
    """

    def __init__(
        self,
        entries: Mapping[str, Any],
        path: Path | None = None,
        backups: Backups | None = None,
        revision: str = "",
        versions: Mapping[str, list[Any]] | None = None,
    ) -> None:
        self.revision: str = revision
        self.path: Path | None = path
        self.kind: StorageKind | None = None if path is None else "json"
        self._entries = dict(entries)
        self._versions: dict[str, list[Any]] = dict(versions or {})
        self._backups = backups
        self._index: SearchedEntries | None = None
        self._next: tuple[int, bytes] | None = None

    def get(self, tag: str) -> Any:
        """Return the value under a tag, or `MISSING`."""
        return self._entries.get(tag, MISSING)

    def put(self, entries: Mapping[str, Any]) -> None:
        """Keep values under their tags; none where one is `MISSING`."""
        if self._index is not None:
            self._index.put((tag, value, self.get(tag)) for tag, value in entries.items())

        self._entries.update(entries)
        for tag in [tag for tag, value in entries.items() if value is MISSING]:
            del self._entries[tag]

    def versions(self, tag: str) -> list[Any]:
        """Return the old values under a tag, oldest first."""
        return list(self._versions.get(tag, []))

    def put_versions(self, kept: Mapping[str, list[Any]]) -> None:
        """Keep old values under their tags."""
        self._versions.update(kept)
        self._versions = {tag: values for tag, values in self._versions.items() if values}

    def all_versions(self) -> dict[str, list[Any]]:
        """Return all old values, oldest first, by tag."""
        return {tag: list(values) for tag, values in self._versions.items()}

    def clear(self) -> None:
        """Remove all."""
        self._entries, self._versions = {}, {}
        self._index = None

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield all tags and values in order of addition."""
        yield from self._entries.items()

    def __len__(self) -> int:
        """Count them."""
        return len(self._entries)

    def search(self, text: str, limit: int) -> list[Match]:
        """Return the best matches."""
        if self._index is None:
            # reading all words once is as dear as one search without them
            self._index = SearchedEntries(self._entries.items())

        found = self._index.search(text, limit)
        return [Match(tag, self._entries[tag], score) for tag, score in found]

    def commit(self, contents: Contents, steps: list[list[Any]]) -> None:
        """Write the file anew, and keep what it was as its newest backup."""
        if self.path is None:
            return

        content = self._rendered(contents, steps)
        with replacing(self.path) as file:
            file.write(content)
            file.flush()
            # the old file may go only when the new one is safe
            os.fsync(file.fileno())
            if self._backups is not None:
                self._backups.keep_link()

        self.revision = sha256(content).hexdigest()
        self._next = None

    def next_revision(self, contents: Contents, steps: list[list[Any]]) -> str:
        """Return the SHA-256 that the file will have."""
        content = self._rendered(contents, steps)
        # the commit that follows need not do it again
        self._next = len(steps), content
        return sha256(content).hexdigest()

    def _rendered(self, contents: Contents, steps: list[list[Any]]) -> bytes:
        if self._next is not None and self._next[0] == len(steps):
            return self._next[1]

        return to_json(contents.to_dict(self._entries, self._versions))

    def compact(self, contents: Contents) -> None:
        """Write the file anew if somebody laid it out in another way."""
        content = to_json(contents.to_dict(self._entries, self._versions))
        if self.path is not None and self.path.read_bytes() != content:
            self.commit(contents, [])

    def close(self) -> None:
        """Forget the words."""
        self._index = None
