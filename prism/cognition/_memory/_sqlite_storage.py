"""What is stored of a memory, as rows of its database, with full-text search (FTS5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from prism.cognition._memory._contents import Contents, StorageKind
from prism.cognition._memory._search import Match, WordIndex
from prism.cognition._memory._sqlite_file import KEEP, MemoryDatabase, checksum
from prism.cognition._memory._values import MISSING

COMMITS_BETWEEN_BACKUPS = 1000
"""A backup copies the whole database, so that few commits make one."""

_KEEP_VERSIONS = "INSERT OR REPLACE INTO versions VALUES (?, ?, ?)"
_INSERT = "INSERT INTO storage (value, crc, tag) VALUES (?, ?, ?)"
_UPDATE = "UPDATE storage SET value = ?, crc = ? WHERE tag = ?"


class SqliteStorage:
    """A storage in a database.

    What is put is written at once, inside of a transaction that `commit` ends. It is also kept
    here until then: if a commit fails, for instance because the disk is full, the transaction is
    gone, and the next one begins with it.

    Args:
        file: The database; it is closed with the storage.
    """

    def __init__(self, file: MemoryDatabase) -> None:
        self.path: Path | None = file.path
        self.kind: StorageKind | None = "sqlite"
        self._file = file
        self._database = file.connection
        self._words = WordIndex(self._database)
        self._pending: list[Callable[[], None]] = []
        self._commits = 0

    @property
    def revision(self) -> str:
        """What was committed last."""
        return self._file.revision

    def get(self, tag: str) -> Any:
        """Return the value under a tag, or `MISSING`."""
        return self._value("storage", tag, MISSING)

    def put(self, entries: Mapping[str, Any]) -> None:
        """Keep values under their tags; none where one is `MISSING`."""
        self._do(partial(self._put, dict(entries)))

    def versions(self, tag: str) -> list[Any]:
        """Return the old values under a tag, oldest first."""
        return list(self._value("versions", tag, ()))

    def put_versions(self, kept: Mapping[str, list[Any]]) -> None:
        """Keep old values under their tags."""
        self._do(partial(self._put_versions, dict(kept)))

    def all_versions(self) -> dict[str, list[Any]]:
        """Return all old values, oldest first, by tag."""
        with self._reading():
            rows = self._database.execute("SELECT tag, value FROM versions ORDER BY tag")
            return {tag: json.loads(value) for tag, value in rows}

    def clear(self) -> None:
        """Remove all."""
        self._pending.clear()
        self._do(self._clear)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield all tags and values in order of addition."""
        with self._reading():
            for tag, value in self._database.execute("SELECT tag, value FROM storage ORDER BY id"):
                yield tag, json.loads(value)

    def __len__(self) -> int:
        """Count them."""
        with self._reading():
            return int(self._database.execute("SELECT count(*) FROM storage").fetchone()[0])

    def search(self, text: str, limit: int) -> list[Match]:
        """Return the best matches."""
        with self._reading():
            found = self._words.search(text, limit)
            query = "SELECT tag, value FROM storage WHERE id = ?"
            rows = [self._database.execute(query, (number,)).fetchone() for number, _ in found]

        return [
            Match(tag, json.loads(value), score)
            for (tag, value), (_, score) in zip(rows, found, strict=True)
        ]

    def next_revision(self, contents: Contents, steps: list[list[Any]]) -> str:
        """Return the revision that follows the present one by these steps."""
        del contents  # the steps say all
        return sha256(f"{self.revision}\n{_to_json(steps)}".encode()).hexdigest()

    def commit(self, contents: Contents, steps: list[list[Any]]) -> None:
        """Write all down in one transaction."""
        document = _to_json(contents.to_dict({}, {}))
        revision = self.next_revision(contents, steps)
        with self._file.faults(), self._file.rolled_back():
            self._begin()
            for key, value in (("document", document), ("mark", revision)):
                self._database.execute(KEEP, (key, value, checksum(key, value)))
            self._database.execute("COMMIT")

        self._pending.clear()
        self._file.revision = revision
        self._commits += 1
        if self._commits % COMMITS_BETWEEN_BACKUPS == 0:
            self._file.back_up()

    def compact(self, contents: Contents) -> None:
        """Make the index anew, and give the space of what is gone back to the disk."""
        del contents  # nothing of them is uncommitted
        with self._file.faults(), self._file.rolled_back():
            self._begin()
            self._words.clear()
            rows = self._database.execute("SELECT id, tag, value FROM storage ORDER BY id")
            self._words.put(
                (number, tag, json.loads(value), MISSING) for number, tag, value in rows.fetchall()
            )
            self._database.execute("COMMIT")
            self._database.execute("INSERT INTO storage_words(storage_words) VALUES ('optimize')")
            self._database.execute("VACUUM")

    def close(self) -> None:
        """Close the file; what was not committed is lost."""
        self._file.close()

    def _do(self, write: Callable[[], None]) -> None:
        self._pending.append(write)
        # a disk that is full now may not be when it counts, at the commit, which says so
        with suppress(OSError), self._file.faults(), self._file.rolled_back():
            if self._begin():
                write()

    def _begin(self) -> bool:
        """Begin a transaction if none is open; return False if it wrote what was pending."""
        if self._database.in_transaction:
            return True

        self._database.execute("BEGIN IMMEDIATE")
        with self._file.rolled_back():
            for write in self._pending:
                write()

        return False

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Let what is pending be seen, also after a failed commit took it back."""
        with self._file.faults():
            if self._pending:
                self._begin()
            yield

    def _value(self, table: str, tag: str, default: Any) -> Any:
        with self._reading():
            found = self._database.execute(f"SELECT value FROM {table} WHERE tag = ?", (tag,))
            row = found.fetchone()

        return default if row is None else json.loads(row[0])

    def _put_versions(self, kept: Mapping[str, list[Any]]) -> None:
        for tag, values in kept.items():
            text = _to_json(values)
            if values:
                self._database.execute(_KEEP_VERSIONS, (tag, text, checksum(tag, text)))
            else:
                self._database.execute("DELETE FROM versions WHERE tag = ?", (tag,))

    def _put(self, entries: Mapping[str, Any]) -> None:
        changed: list[tuple[Any, str, Any, Any]] = []
        for tag, value in entries.items():
            standing = self._database.execute(
                "SELECT id, value FROM storage WHERE tag = ?", (tag,)
            ).fetchone()
            number, before = standing or (None, "")
            if value is MISSING:
                self._database.execute("DELETE FROM storage WHERE tag = ?", (tag,))
            else:
                text = _to_json(value)
                row = (text, checksum(tag, text), tag)
                done = self._database.execute(_INSERT if number is None else _UPDATE, row)
                number = done.lastrowid if number is None else number
            if number is not None:
                changed.append((number, tag, value, json.loads(before) if before else MISSING))

        self._words.put(changed)

    def _clear(self) -> None:
        for table in ("storage", "versions", "storage_words", "word_counts"):
            self._database.execute(f"DELETE FROM {table}")


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
