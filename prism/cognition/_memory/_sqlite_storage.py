"""Storage as rows of a database, with full-text search (FTS5)."""

from __future__ import annotations

import errno
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from zlib import crc32

from prism.cognition._memory._beside import Backups, backup_under_way
from prism.cognition._memory._contents import SCHEMA, Contents, NewerSchemaError
from prism.cognition._memory._search import NO_SEARCH, SCHEMA_OF_WORDS, Match, WordIndex
from prism.cognition._memory._storage import Storage
from prism.cognition._memory._values import MISSING
from prism.errors import InputError
from prism.files import parse_json, save_folder
from prism.files._durable import replacing
from prism.files._source import Source

HEADER = b"SQLite format 3\0"
# a backup copies the whole database, so that few commits make one
COMMITS_BETWEEN_BACKUPS = 1000

# marks the files that are made here: "prmm" (SQLite, "PRAGMA application_id")
_APPLICATION_ID = 0x70726D6D
_PATIENCE_SECONDS = 10.0
_SHORT_SECONDS = 0.5
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_NUMBERS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}
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

# what is no memory: the document, and the revision as the mark
_KEEP = "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)"
_KEEP_VERSIONS = "INSERT OR REPLACE INTO versions VALUES (?, ?, ?)"
_PUT = """
INSERT INTO storage (tag, value, crc) VALUES (?, ?, ?)
ON CONFLICT (tag) DO UPDATE SET value = excluded.value, crc = excluded.crc
"""

# SQLite checks how its pages hang together, not what is written on them
_ROWS = " UNION ALL ".join(
    f"SELECT CAST({key} AS BLOB), CAST(value AS BLOB), crc FROM {table}"
    for key, table in (("key", "memory"), ("tag", "storage"), ("tag", "versions"))
)


class SqliteStorage(Storage):
    """A storage in a database, which is looked at when it is opened, and backed up.

    What is written is in the database at once, inside of a transaction that `commit` ends. If a
    commit fails, for instance because the disk is full, the transaction is gone, and the next one
    begins with all its steps.

    Args:
        path: The file, which must exist: see `make_database`.
        backups: The file's backups; None opens it for reading only.

    Raises:
        InputError: If it is damaged, or the database of something else.
        NewerSchemaError: If a newer prism wrote it.
        OSError: If it cannot be opened.
    """

    def __init__(self, path: Path, backups: Backups | None = None) -> None:
        super().__init__(path, "sqlite")
        self._file = path
        self._backups = backups
        self._commits = 0
        self._remedy = ""
        with self._faults():
            self._database = _connect(path, writes=backups is not None)
        try:
            with self._faults():
                self._read()
                if backups is not None:
                    self._prepare_writing()
        except BaseException:
            self._database.close()
            raise

        self._words = WordIndex(self._database)
        # its rows were found sound; an index of words is not looked at before it is used
        self._remedy = ": 'prism memory compact' rebuilds its index"

    def get(self, tag: str) -> Any:
        """Return the value under a tag, or `MISSING`."""
        return self._value("storage", tag, MISSING)

    def versions(self, tag: str) -> list[Any]:
        """Return the old values under a tag, oldest first."""
        return list(self._value("versions", tag, ()))

    def all_versions(self) -> dict[str, list[Any]]:
        """Return all old values, oldest first, by tag."""
        return dict(self._rows("SELECT tag, value FROM versions ORDER BY tag"))

    def items(self) -> Iterator[tuple[str, Any]]:
        """Return all tags and values in order of addition."""
        return self._rows("SELECT tag, value FROM storage ORDER BY id")

    def __len__(self) -> int:
        """Count them."""
        with self._reading():
            return int(self._database.execute("SELECT count(*) FROM storage").fetchone()[0])

    def search(self, text: str, limit: int, *, plurals: bool) -> list[Match]:
        """Return the best matches."""
        with self._reading():
            found = self._words.search(text, limit, plurals=plurals)
            query = "SELECT tag, value FROM storage WHERE id = ?"
            rows = [self._database.execute(query, (number,)).fetchone() for number, _ in found]

        return [
            Match(tag, json.loads(value), score)
            for (tag, value), (_, score) in zip(rows, found, strict=True)
        ]

    def next_revision(self, contents: Contents) -> str:
        """Return the revision that a commit will make."""
        return self._revision_with(_to_json(contents.to_dict({}, {})))

    def commit(self, contents: Contents) -> None:
        """Write all down in one transaction."""
        document = _to_json(contents.to_dict({}, {}))
        revision = self._revision_with(document)
        with self._changing():
            _keep(self._database, document, revision)
            self._database.execute("COMMIT")

        self.revision, self.steps = revision, []
        self._commits += 1
        if self._commits % COMMITS_BETWEEN_BACKUPS == 0:
            self.back_up()

    def compact(self, contents: Contents) -> None:
        """Make the index anew, and give the space of what is gone back to the disk."""
        del contents  # they are committed
        with self._changing():
            self._words.clear()
            rows = self._database.execute("SELECT id, tag, value FROM storage ORDER BY id")
            self._words.put((*row, json.loads(value), MISSING) for *row, value in rows.fetchall())
            self._database.execute("COMMIT")
        with self._faults():
            self._database.execute("INSERT INTO storage_words(storage_words) VALUES ('optimize')")
            self._database.execute("VACUUM")

    def back_up(self) -> None:
        """Make a backup, unless the newest one is what the memory is now."""
        if self._backups is None or self._backups.most == 0:
            return

        newest = next(iter(self._backups.paths()), None)
        if newest is not None and _revision_of(newest) == self.revision:
            return

        made = backup_under_way(self._file)
        with self._faults(), _new_database(made) as copy:
            self._database.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
        self._backups.keep(made)
        save_folder(self._file.parent)

    def close(self) -> None:
        """Close the file; what was not committed is lost."""
        with suppress(sqlite3.Error):
            self._roll_back()
        try:
            self.back_up()
        finally:
            # whatever became of the backup, nothing is left open
            if self._backups is not None:
                # nor beside the file, which readers would bring back, unless they are at it
                with suppress(sqlite3.Error):
                    self._database.execute("PRAGMA busy_timeout=0")
                    self._database.execute("PRAGMA journal_mode=DELETE")
            self._database.close()

    def _revision_with(self, document: str) -> str:
        told = f"{self.revision}\n{document}\n{_to_json(self.steps)}"
        return sha256(told.encode()).hexdigest()

    # Opening

    def _read(self) -> None:
        """Look whether the file is a sound memory, and read its document."""
        execute = self._database.execute
        execute("BEGIN")
        if execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise InputError("is a database of another program", path=self.path)
        schema = execute("PRAGMA user_version").fetchone()[0]
        if schema > SCHEMA:
            raise NewerSchemaError(schema, str(self.path))

        if (fault := execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise InputError(f"is damaged: {fault}", path=self.path)
        if any(crc32(text, crc32(key)) != crc for key, text, crc in execute(_ROWS)):
            problem = "is damaged: its content is not what was written"
            raise InputError(problem, path=self.path)
        rows = dict(execute("SELECT key, value FROM memory"))
        execute("SELECT 1 FROM storage_words, word_counts LIMIT 1")
        if not {"document", "mark"} <= rows.keys():
            raise InputError("is damaged: rows of a memory are missing", path=self.path)

        self.revision = rows["mark"]
        document = parse_json(rows["document"], path=self.path)
        self.contents = Contents(Source.of(document, self.path))

    def _prepare_writing(self) -> None:
        execute = self._database.execute
        execute("COMMIT")
        # SQLite opens a file that may only be read all the same, and fails with the first
        # statement that may write
        execute("BEGIN IMMEDIATE")
        execute("DELETE FROM memory WHERE 0")
        execute("COMMIT")
        # those who only read need not wait for a transaction that goes on for a whole cycle
        with suppress(sqlite3.OperationalError):  # unless somebody is reading at this instant
            execute(f"PRAGMA busy_timeout={int(_SHORT_SECONDS * 1000)}")
            execute("PRAGMA journal_mode=WAL")
        execute(f"PRAGMA busy_timeout={int(_PATIENCE_SECONDS * 1000)}")
        execute("PRAGMA synchronous=EXTRA")

    # Transactions

    def _do_steps(self) -> None:
        # the steps are done as a change begins; a disk that is full now may not be when it counts,
        # at the commit, which says so
        with suppress(OSError), self._changing():
            pass

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Have all steps in an open transaction, and leave no half of what fails in it."""
        try:
            with self._faults():
                if not self._database.in_transaction:
                    self._database.execute("BEGIN IMMEDIATE")
                    self._done = 0
                super()._do_steps()
                yield
        except BaseException:
            self._roll_back()
            raise

    def _reading(self) -> AbstractContextManager[None]:
        """Let all steps be seen, also after a failed commit took them back."""
        return self._changing() if self.steps else self._faults()

    def _roll_back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def _faults(self) -> AbstractContextManager[None]:
        return _faults_of(self._file, self._remedy)

    # Rows

    def _value(self, table: str, tag: str, default: Any) -> Any:
        rows = self._rows(f"SELECT tag, value FROM {table} WHERE tag = ?", tag)
        return next((value for _, value in rows), default)

    def _rows(self, query: str, *arguments: Any) -> Iterator[tuple[str, Any]]:
        with self._reading():
            for tag, value in self._database.execute(query, arguments):
                yield tag, json.loads(value)

    def _put(self, entries: Mapping[str, Any]) -> None:
        self._words.put([self._put_one(tag, value) for tag, value in entries.items()])

    def _put_one(self, tag: str, value: Any) -> tuple[int, str, Any, Any]:
        """Put one value; return its number, it, and what stood there before."""
        number, before = self._standing(tag)
        text = _to_json(value)
        done = self._database.execute(_PUT, (tag, text, _checksum(tag, text)))
        return number or done.lastrowid or 0, tag, value, before

    def _remove(self, tag: str) -> None:
        number, before = self._standing(tag)
        self._database.execute("DELETE FROM storage WHERE tag = ?", (tag,))
        self._words.put([(number, tag, MISSING, before)])

    def _standing(self, tag: str) -> tuple[int, Any]:
        query = "SELECT id, value FROM storage WHERE tag = ?"
        row = self._database.execute(query, (tag,)).fetchone()
        return (0, MISSING) if row is None else (row[0], json.loads(row[1]))

    def _put_versions(self, kept: Mapping[str, list[Any]]) -> None:
        for tag, values in kept.items():
            text = _to_json(values)
            if values:
                self._database.execute(_KEEP_VERSIONS, (tag, text, _checksum(tag, text)))
            else:
                self._database.execute("DELETE FROM versions WHERE tag = ?", (tag,))

    def _clear(self) -> None:
        for table in ("storage", "versions", "storage_words", "word_counts"):
            self._database.execute(f"DELETE FROM {table}")


def make_database(path: Path) -> None:
    """Make the file of an empty memory, whole or not at all.

    Raises:
        OSError: If that fails.
    """
    with _faults_of(path), _new_database(path) as database:
        database.executescript(_SCHEMA)
        _keep(database, "{}", "")


@contextmanager
def _new_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a new database, which is at a path once it is whole and on the disk."""
    with replacing(path) as file, closing(sqlite3.connect(file.name, isolation_level=None)) as made:
        yield made


def set_aside_beside(path: Path, aside: Path) -> None:
    """Move what belongs to a damaged database away, lest it be applied to the one restored."""
    for ending in _BESIDE:
        with suppress(FileNotFoundError):
            path.with_name(f"{path.name}{ending}").replace(aside.with_name(f"{aside.name}{ending}"))


@contextmanager
def _faults_of(path: Path, remedy: str = "") -> Iterator[None]:
    """Raise SQLite's errors as those of files."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise InputError("is closed: open it again", path=path) from None
    except sqlite3.Error as error:
        if "no such module" in str(error):
            raise InputError(f"{NO_SEARCH}: use storage 'json'", path=path) from None

        # there is no code where it is Python that cannot read what SQLite found
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in _DAMAGED:
            raise InputError(f"is damaged: {error}{remedy}", path=path) from error

        raise OSError(_NUMBERS.get(code, errno.EIO), str(error), str(path)) from error
    except UnicodeDecodeError as error:  # what SQLite says of it quotes what is damaged
        raise InputError("is damaged: it is not UTF-8", path=path) from error


def _connect(path: Path, *, writes: bool) -> sqlite3.Connection:
    mode = "rw" if writes else "ro"
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=_PATIENCE_SECONDS,
        check_same_thread=False,
    )


def _keep(database: sqlite3.Connection, document: str, mark: str) -> None:
    for key, text in (("document", document), ("mark", mark)):
        database.execute(_KEEP, (key, text, _checksum(key, text)))


def _revision_of(path: Path) -> str | None:
    with suppress(sqlite3.Error), closing(_connect(path, writes=False)) as database:
        row = database.execute("SELECT value FROM memory WHERE key = 'mark'").fetchone()
        return None if row is None else str(row[0])

    return None


def _checksum(name: str, text: str) -> int:
    """Return a number by which damage of a row is found."""
    return crc32(text.encode(), crc32(name.encode()))


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
