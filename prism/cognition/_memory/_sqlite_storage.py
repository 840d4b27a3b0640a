"""A memory as one SQLite database, with full-text search (FTS5)."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import crc32

from prism.cognition._memory._beside import Backups
from prism.cognition._memory._contents import (
    SCHEMA,
    Contents,
    NewerSchemaError,
    StorageKind,
    checked_document,
)
from prism.cognition._memory._search import NO_SEARCH, SCHEMA_OF_WORDS, Match, WordIndex
from prism.cognition._memory._values import MISSING
from prism.errors import InputError
from prism.files import parse_json, save_folder

HEADER = b"SQLite format 3\0"

COMMITS_BETWEEN_BACKUPS = 1000
"""A backup copies the whole database, so that few commits make one."""

_APPLICATION_ID = 0x70726D6D
"""Marks the files that are made here: "prmm" (SQLite, "PRAGMA application_id")."""

_PATIENCE_SECONDS = 10.0
_SHORT_SECONDS = 0.5
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_NUMBERS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}
_NO_SEARCH = f"{NO_SEARCH}: use storage 'json'"
_BESIDE = ("-wal", "-shm", "-journal")

_SCHEMA = f"""
BEGIN;
CREATE TABLE memory (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE storage (
    id INTEGER PRIMARY KEY, tag TEXT NOT NULL UNIQUE, value TEXT NOT NULL, crc INTEGER NOT NULL
);
{SCHEMA_OF_WORDS}
PRAGMA application_id={_APPLICATION_ID};
PRAGMA user_version={SCHEMA};
COMMIT;
"""

_KEEP = "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)"
_INSERT = "INSERT INTO storage (value, crc, tag) VALUES (?, ?, ?)"
_UPDATE = "UPDATE storage SET value = ?, crc = ? WHERE tag = ?"

# SQLite checks how its pages hang together, not what is written on them
_ROWS = """
SELECT CAST(key AS BLOB), CAST(value AS BLOB), crc FROM memory
UNION ALL
SELECT CAST(tag AS BLOB), CAST(value AS BLOB), crc FROM storage
"""


class DamagedError(InputError):
    """A file is not a memory that can be read."""


class SqliteStorage:
    """A storage in a database.

    What is put is written at once, inside of a transaction that `commit` ends. It is also kept
    here until then: if a commit fails, for instance because the disk is full, the transaction is
    gone, and the next one begins with it.

    Args:
        path: The file, which must exist: see `make`.
        backups: The file's backups; None opens it for reading only.

    Raises:
        DamagedError: If it is damaged, or the database of something else.
        NewerSchemaError: If a newer prism wrote it.
        OSError: If it cannot be opened.
    """

    def __init__(self, path: Path, backups: Backups | None = None) -> None:
        self._path = path
        self._backups = backups
        self._pending: dict[str, Any] = {}
        self._is_cleared = False
        self._commits = 0
        self._remedy = ""
        self.mark: str = ""
        with self._faults():
            self._database = _connect(path, writes=backups is not None)
        self._words = WordIndex(self._database)
        try:
            with self._faults():
                self.document: dict[str, Any] = self._read()
                if backups is not None:
                    self._prepare_writing()
                # its rows were found sound; an index of words is not looked at before it is used
                self._remedy = ": 'prism memory compact' makes its index anew"
        except BaseException:
            self._database.close()
            raise

    @classmethod
    def make(cls, path: Path) -> None:
        """Make the file of an empty memory, whole or not at all.

        Raises:
            OSError: If that fails.
        """
        unfinished = path.with_name(f".{path.name[:60]}.part")
        unfinished.unlink(missing_ok=True)
        database = sqlite3.connect(unfinished, isolation_level=None)
        try:
            database.executescript(_SCHEMA)
            for key, value in (("document", "{}"), ("mark", "")):
                database.execute(_KEEP, (key, value, _checksum(key, value)))
        except sqlite3.Error as error:
            if "no such module" in str(error):
                raise InputError(_NO_SEARCH, path=path) from None
            raise OSError(errno.EIO, str(error), str(path)) from error
        finally:
            database.close()

        _save(unfinished)
        unfinished.replace(path)
        save_folder(path.parent)

    @property
    def path(self) -> Path | None:
        """The file."""
        return self._path

    @property
    def kind(self) -> StorageKind:
        """How it is kept."""
        return "sqlite"

    def back_up(self) -> None:
        """Make a backup, unless the newest one is what the memory is now."""
        if self._backups is None or self._backups.most == 0:
            return

        newest = next(iter(self._backups.paths()), None)
        if newest is not None and _mark_of(newest) == self.mark:
            return

        made = self._path.with_name(f".{self._path.name[:60]}.bak.part")
        made.unlink(missing_ok=True)
        with self._faults():
            copy = sqlite3.connect(made)
            try:
                self._database.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
            finally:
                copy.close()

        _save(made)
        self._backups.keep(made)
        save_folder(self._path.parent)

    def get(self, tag: str) -> Any:
        """Return the value under a tag, or `MISSING`."""
        with self._faults():
            self._begin_again()
            row = self._database.execute(
                "SELECT value FROM storage WHERE tag = ?", (tag,)
            ).fetchone()

        return MISSING if row is None else json.loads(row[0])

    def put(self, entries: Mapping[str, Any]) -> None:
        """Keep values under their tags."""
        self._pending.update(entries)
        # a disk that is full now may not be when it counts, at the commit, which says so
        with suppress(OSError), self._faults(), self._rolled_back():
            if self._begin():
                self._put(entries)

    def clear(self) -> None:
        """Remove all."""
        self._pending.clear()
        self._is_cleared = True
        with suppress(OSError), self._faults(), self._rolled_back():
            if self._begin():
                self._clear()

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield all tags and values in order of addition."""
        with self._faults():
            self._begin_again()
            for tag, value in self._database.execute("SELECT tag, value FROM storage ORDER BY id"):
                yield tag, json.loads(value)

    def __len__(self) -> int:
        """Count them."""
        with self._faults():
            self._begin_again()
            return int(self._database.execute("SELECT count(*) FROM storage").fetchone()[0])

    def search(self, text: str, most: int) -> list[Match]:
        """Return the best matches."""
        with self._faults():
            self._begin_again()
            found = self._words.search(text, most)
            query = "SELECT tag, value FROM storage WHERE id = ?"
            rows = [self._database.execute(query, (number,)).fetchone() for number, _ in found]

        return [
            Match(tag, json.loads(value), score)
            for (tag, value), (_, score) in zip(rows, found, strict=True)
        ]

    def next_mark(self, contents: Contents, steps: list[list[Any]]) -> str:
        """Return the mark that follows the present one by these steps."""
        del contents  # the steps say all
        return sha256(f"{self.mark}\n{_to_json(steps)}".encode()).hexdigest()

    def commit(self, contents: Contents, steps: list[list[Any]]) -> None:
        """Write all down in one transaction."""
        document = _to_json(contents.to_dict({}))
        mark = self.next_mark(contents, steps)
        with self._faults(), self._rolled_back():
            self._begin()
            for key, value in (("document", document), ("mark", mark)):
                self._database.execute(_KEEP, (key, value, _checksum(key, value)))
            self._database.execute("COMMIT")

        self._pending.clear()
        self._is_cleared = False
        self.mark = mark
        self._commits += 1
        if self._commits % COMMITS_BETWEEN_BACKUPS == 0:
            self.back_up()

    def compact(self, contents: Contents) -> None:
        """Make the index anew, and give the space of what is gone back to the disk."""
        del contents  # nothing of them is uncommitted
        with self._faults(), self._rolled_back():
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
        with suppress(sqlite3.Error):
            self._roll_back()
        try:
            self.back_up()
        finally:
            if self._backups is not None:
                self._leave_one_file()
            self._database.close()

    def _read(self) -> dict[str, Any]:
        """Look whether the file is a sound memory, and return its document."""
        self._database.execute("BEGIN")
        if self._database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise DamagedError("is the database of something else", path=self._path)
        schema = self._database.execute("PRAGMA user_version").fetchone()[0]
        if schema > SCHEMA:
            raise NewerSchemaError(schema, self._path)
        self._require_sound()
        rows = dict(self._database.execute("SELECT key, value FROM memory"))
        self._database.execute("SELECT 1 FROM storage_words, word_counts LIMIT 1")
        if not {"document", "mark"} <= rows.keys():
            raise DamagedError("is damaged: it lacks rows of a memory", path=self._path)

        self.mark = rows["mark"]
        return checked_document(parse_json(rows["document"], path=self._path), self._path)

    def _require_sound(self) -> None:
        """Look at every page and every row."""
        fault = self._database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if fault != "ok":
            raise DamagedError(f"is damaged: {fault}", path=self._path)

        for name, text, crc in self._database.execute(_ROWS):
            if crc32(text, crc32(name)) != crc:
                raise DamagedError("is damaged: it says other than was written", path=self._path)

    def _prepare_writing(self) -> None:
        self._database.execute("COMMIT")
        # those who only read need not wait for a transaction that goes on for a whole cycle
        with suppress(sqlite3.OperationalError):  # unless somebody is reading at this instant
            self._database.execute(f"PRAGMA busy_timeout={int(_SHORT_SECONDS * 1000)}")
            self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute(f"PRAGMA busy_timeout={int(_PATIENCE_SECONDS * 1000)}")
        self._database.execute("PRAGMA synchronous=EXTRA")

    def _leave_one_file(self) -> None:
        """Leave nothing beside the file, which readers would bring back, unless they are at it."""
        with suppress(sqlite3.Error):
            self._database.execute("PRAGMA busy_timeout=0")
            self._database.execute("PRAGMA journal_mode=DELETE")

    def _begin(self) -> bool:
        """Begin a transaction if none is open; return False if it wrote what was pending."""
        if self._database.in_transaction:
            return True

        self._database.execute("BEGIN IMMEDIATE")
        with self._rolled_back():
            if self._is_cleared:
                self._clear()
            self._put(self._pending)

        return False

    def _begin_again(self) -> None:
        """Make what is pending visible, if a failed commit took it back."""
        if self._pending or self._is_cleared:
            self._begin()

    def _put(self, entries: Mapping[str, Any]) -> None:
        changed: list[tuple[Any, str, Any, Any]] = []
        for tag, value in entries.items():
            text = _to_json(value)
            row = (text, _checksum(tag, text), tag)
            standing = self._database.execute(
                "SELECT id, value FROM storage WHERE tag = ?", (tag,)
            ).fetchone()
            if standing is None:
                number, before = self._database.execute(_INSERT, row).lastrowid, MISSING
            else:
                number, before = standing[0], json.loads(standing[1])
                self._database.execute(_UPDATE, row)
            changed.append((number, tag, value, before))

        self._words.put(changed)

    def _clear(self) -> None:
        for table in ("storage", "storage_words", "word_counts"):
            self._database.execute(f"DELETE FROM {table}")

    def _roll_back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    @contextmanager
    def _rolled_back(self) -> Iterator[None]:
        """Leave no half of what failed in the open transaction."""
        try:
            yield
        except BaseException:
            self._roll_back()
            raise

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Raise SQLite's errors as those of files."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise InputError("is closed: open it again", path=self._path) from None
        except sqlite3.Error as error:
            if "no such module" in str(error):
                raise InputError(_NO_SEARCH, path=self._path) from None

            # there is no code where it is Python that cannot read what SQLite found
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in _DAMAGED:
                problem = f"is damaged: {error}{self._remedy}"
                raise DamagedError(problem, path=self._path) from error

            number = _NUMBERS.get(code, errno.EIO)
            raise OSError(number, str(error), str(self._path)) from error
        except UnicodeDecodeError as error:  # what SQLite says of it quotes what is damaged
            raise DamagedError("is damaged: it is not UTF-8", path=self._path) from error


def set_aside_beside(path: Path, aside: Path) -> None:
    """Move what belongs to a damaged database away, lest it be applied to the one restored."""
    for ending in _BESIDE:
        with suppress(FileNotFoundError):
            path.with_name(f"{path.name}{ending}").replace(aside.with_name(f"{aside.name}{ending}"))


def _connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    mode = "rw" if writes else "ro"
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=_PATIENCE_SECONDS,
        check_same_thread=False,
    )


def _mark_of(path: Path) -> str | None:
    try:
        database = _connect(path, writes=False)
    except sqlite3.Error:
        return None
    try:
        row = database.execute("SELECT value FROM memory WHERE key = 'mark'").fetchone()
    except sqlite3.Error:
        return None
    finally:
        database.close()

    return None if row is None else str(row[0])


def _save(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _checksum(name: str, text: str) -> int:
    """Return a number by which damage of a row is found."""
    return crc32(text.encode(), crc32(name.encode()))


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
