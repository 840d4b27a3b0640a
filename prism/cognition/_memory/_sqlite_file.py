"""The database of a memory as a file: made whole, looked at when it is opened, backed up."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from prism.cognition._memory._beside import Backups
from prism.cognition._memory._contents import SCHEMA, NewerSchemaError, checked_document
from prism.cognition._memory._search import NO_SEARCH, SCHEMA_OF_WORDS
from prism.errors import InputError
from prism.files import parse_json, save_folder

HEADER = b"SQLite format 3\0"

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
CREATE TABLE versions (
    tag TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL
) WITHOUT ROWID;
{SCHEMA_OF_WORDS}
PRAGMA application_id={_APPLICATION_ID};
PRAGMA user_version={SCHEMA};
COMMIT;
"""

KEEP = "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)"
"""Writes a row of what is no memory: the document, and the revision."""

# SQLite checks how its pages hang together, not what is written on them
_ROWS = """
SELECT CAST(key AS BLOB), CAST(value AS BLOB), crc FROM memory
UNION ALL
SELECT CAST(tag AS BLOB), CAST(value AS BLOB), crc FROM storage
UNION ALL
SELECT CAST(tag AS BLOB), CAST(value AS BLOB), crc FROM versions
"""


class DamagedError(InputError):
    """A file is not a memory that can be read."""


class MemoryDatabase:
    """The database of a memory, open and found sound.

    Args:
        path: The file, which must exist: see `make`.
        backups: The file's backups; None opens it for reading only.

    Raises:
        DamagedError: If it is damaged, or the database of something else.
        NewerSchemaError: If a newer prism wrote it.
        OSError: If it cannot be opened.

    Attributes:
        path: The file.
        connection: The connection to it.
        document: What it holds that is no memory.
        revision: What was committed last.
    """

    def __init__(self, path: Path, backups: Backups | None = None) -> None:
        self.path: Path = path
        self.revision: str = ""
        self._backups = backups
        self._remedy = ""
        with self.faults():
            self.connection: sqlite3.Connection = _connect(path, writes=backups is not None)
        try:
            with self.faults():
                self.document: dict[str, Any] = self._read()
                if backups is not None:
                    self._prepare_writing()
                # its rows were found sound; an index of words is not looked at before it is used
                self._remedy = ": 'prism memory compact' rebuilds its index"
        except BaseException:
            self.connection.close()
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
                database.execute(KEEP, (key, value, checksum(key, value)))
        except sqlite3.Error as error:
            if "no such module" in str(error):
                raise InputError(_NO_SEARCH, path=path) from None
            raise OSError(errno.EIO, str(error), str(path)) from error
        finally:
            database.close()

        _save(unfinished)
        unfinished.replace(path)
        save_folder(path.parent)

    def back_up(self) -> None:
        """Make a backup, unless the newest one is what the memory is now."""
        if self._backups is None or self._backups.most == 0:
            return

        newest = next(iter(self._backups.paths()), None)
        if newest is not None and _revision_of(newest) == self.revision:
            return

        made = self.path.with_name(f".{self.path.name[:60]}.bak.part")
        made.unlink(missing_ok=True)
        with self.faults():
            copy = sqlite3.connect(made)
            try:
                self.connection.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
            finally:
                copy.close()

        _save(made)
        self._backups.keep(made)
        save_folder(self.path.parent)

    def close(self) -> None:
        """Close the file; what was not committed is lost."""
        with suppress(sqlite3.Error):
            self.roll_back()
        try:
            self.back_up()
        finally:
            # whatever became of the backup, nothing is left open
            if self._backups is not None:
                # nor beside the file, which readers would bring back, unless they are at it
                with suppress(sqlite3.Error):
                    self.connection.execute("PRAGMA busy_timeout=0")
                    self.connection.execute("PRAGMA journal_mode=DELETE")
            self.connection.close()

    def roll_back(self) -> None:
        """End a transaction that is open, without what was written in it."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """Leave no half of what failed in the open transaction."""
        try:
            yield
        except BaseException:
            self.roll_back()
            raise

    @contextmanager
    def faults(self) -> Iterator[None]:
        """Raise SQLite's errors as those of files."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise InputError("is closed: open it again", path=self.path) from None
        except sqlite3.Error as error:
            if "no such module" in str(error):
                raise InputError(_NO_SEARCH, path=self.path) from None

            # there is no code where it is Python that cannot read what SQLite found
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in _DAMAGED:
                problem = f"is damaged: {error}{self._remedy}"
                raise DamagedError(problem, path=self.path) from error

            number = _NUMBERS.get(code, errno.EIO)
            raise OSError(number, str(error), str(self.path)) from error
        except UnicodeDecodeError as error:  # what SQLite says of it quotes what is damaged
            raise DamagedError("is damaged: it is not UTF-8", path=self.path) from error

    def _read(self) -> dict[str, Any]:
        """Look whether the file is a sound memory, and return its document."""
        self.connection.execute("BEGIN")
        if self.connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise DamagedError("is a database of another program", path=self.path)
        schema = self.connection.execute("PRAGMA user_version").fetchone()[0]
        if schema > SCHEMA:
            raise NewerSchemaError(schema, self.path)
        self._require_sound()
        rows = dict(self.connection.execute("SELECT key, value FROM memory"))
        self.connection.execute("SELECT 1 FROM storage_words, word_counts LIMIT 1")
        if not {"document", "mark"} <= rows.keys():
            raise DamagedError("is damaged: rows of a memory are missing", path=self.path)

        self.revision = rows["mark"]
        return checked_document(parse_json(rows["document"], path=self.path), self.path)

    def _require_sound(self) -> None:
        """Look at every page and every row."""
        fault = self.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if fault != "ok":
            raise DamagedError(f"is damaged: {fault}", path=self.path)

        for name, text, crc in self.connection.execute(_ROWS):
            if crc32(text, crc32(name)) != crc:
                raise DamagedError(
                    "is damaged: its content is not what was written", path=self.path
                )

    def _prepare_writing(self) -> None:
        self.connection.execute("COMMIT")
        self._require_writable()
        # those who only read need not wait for a transaction that goes on for a whole cycle
        with suppress(sqlite3.OperationalError):  # unless somebody is reading at this instant
            self.connection.execute(f"PRAGMA busy_timeout={int(_SHORT_SECONDS * 1000)}")
            self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute(f"PRAGMA busy_timeout={int(_PATIENCE_SECONDS * 1000)}")
        self.connection.execute("PRAGMA synchronous=EXTRA")

    def _require_writable(self) -> None:
        """Refuse a database that may only be read."""
        # SQLite opens such a file all the same, and fails with the first statement that may write
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("DELETE FROM memory WHERE 0")
        self.connection.execute("COMMIT")


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


def _revision_of(path: Path) -> str | None:
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


def checksum(name: str, text: str) -> int:
    """Return a number by which damage of a row is found."""
    return crc32(text.encode(), crc32(name.encode()))
