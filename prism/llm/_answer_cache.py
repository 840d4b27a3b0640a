"""Answers kept on disk, so that no question is paid for twice."""

from __future__ import annotations

import sqlite3
import threading
from os import PathLike
from typing import Self

from prism.errors import InputError

_SCHEMA = "CREATE TABLE answers (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
_APPLICATION_ID = 0x7072736D
"""Marks the files that are made here: "prsm" (SQLite, "PRAGMA application_id")."""

_PATIENCE_SECONDS = 10.0


class AnswerCache:
    """A file of answers, by model, options, prompt and seed.

    Several processes may use one file, and several threads one cache. Give it to a `Reasoner`, and
    close it when the run is over. While the file is locked, answers are kept in memory and written
    with the next one, or when the cache is closed, so nobody waits.

    Args:
        path: The file, created if it does not exist.

    Raises:
        InputError: If the file cannot be opened or is not a cache; also later, if it can no longer
            be used.
    """

    def __init__(self, path: PathLike[str] | str) -> None:
        self._path = str(path)
        self._unwritten: dict[str, str] = {}
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(
                path, isolation_level=None, timeout=_PATIENCE_SECONDS, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._unusable(error) from None

        try:
            if not self._is_ours():
                self._set_up()

            self._database.execute("SELECT key, value FROM answers LIMIT 1").fetchall()
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._wait_for_others(0.0)
        except (sqlite3.Error, InputError) as error:
            self._database.close()
            raise self._unusable(error) from None

    def get(self, key: str) -> str | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key in self._unwritten:
                return self._unwritten[key]

            try:
                row = self._database.execute(
                    "SELECT value FROM answers WHERE key = ?", (key,)
                ).fetchone()
            except sqlite3.Error as error:
                if _is_locked(error):
                    return None
                raise self._unusable(error) from error

        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        with self._lock:
            self._unwritten[key] = value
            try:
                self._write()
            except sqlite3.Error as error:
                if not _is_locked(error):
                    self._unwritten.clear()
                    raise self._unusable(error) from error

    def __len__(self) -> int:
        """Return the number of written answers."""
        with self._lock:
            return int(self._database.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Write pending answers, and close the file.

        Raises:
            InputError: If it cannot be written.
        """
        with self._lock:
            try:
                if self._unwritten:
                    self._wait_for_others(_PATIENCE_SECONDS)
                    self._write()
            except sqlite3.Error as error:
                raise self._unusable(error) from error
            finally:
                self._unwritten.clear()
                self._database.close()

    def _write(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._database.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?)", self._unwritten.items()
            )
        finally:
            self._database.execute("COMMIT")

        self._unwritten.clear()

    def _is_ours(self) -> bool:
        return bool(
            self._database.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION_ID
        )

    def _set_up(self) -> None:
        """Make an empty file a cache, unless another process does at the same time.

        Raises:
            InputError: If the file is a database of another program.
        """
        self._database.execute("BEGIN IMMEDIATE")
        try:
            if self._is_ours():
                return
            if self._database.execute("SELECT 1 FROM sqlite_master").fetchone() is not None:
                raise InputError("it is a database of another program")

            self._database.execute(_SCHEMA)
            self._database.execute(f"PRAGMA application_id={_APPLICATION_ID}")
        finally:
            self._database.execute("COMMIT")

    def _wait_for_others(self, seconds: float) -> None:
        self._database.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")

    def _unusable(self, error: Exception) -> InputError:
        return InputError(f"cannot be used as an answer cache: {error}", path=self._path)

    def __enter__(self) -> Self:
        """Return the cache itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()


def _is_locked(error: sqlite3.Error) -> bool:
    code: int = getattr(error, "sqlite_errorcode", 0)
    # the other bits hold details
    return code & 0xFF == sqlite3.SQLITE_BUSY
