"""Answers kept on disk, so that no question is paid for twice."""

from __future__ import annotations

import sqlite3
from os import PathLike
from typing import Self

from prism.errors import InputError

_APPLICATION_ID = 0x7072736D
"""Marks the files that are made here: "prsm" (SQLite, "PRAGMA application_id")."""

_LONGEST_WAIT_SECONDS = 1.0


class AnswerCache:
    """A file of answers, by model, options, prompt and seed.

    Several processes may use one file, and several threads one cache. Give it to a `Reasoner`, and
    close it when the run is over. An answer that finds the file locked for a second is not kept.

    Args:
        path: The file, created if it does not exist.

    Raises:
        InputError: If the file cannot be opened or is not a cache; also later, if it can no longer
            be used.
    """

    def __init__(self, path: PathLike[str] | str) -> None:
        self._path = str(path)
        try:
            self._database = sqlite3.connect(
                path, isolation_level=None, timeout=_LONGEST_WAIT_SECONDS, check_same_thread=False
            )
            self._set_up()
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def get(self, key: str) -> str | None:
        """Return the value of a key, or None."""
        found = self._run("SELECT value FROM answers WHERE key = ?", key)
        return None if found is None else str(found[0])

    def __setitem__(self, key: str, value: str) -> None:
        """Set the value of a key."""
        self._run("INSERT OR REPLACE INTO answers VALUES (?, ?)", key, value)

    def __len__(self) -> int:
        """Return the number of answers."""
        found = self._run("SELECT count(*) FROM answers")
        return 0 if found is None else int(found[0])

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _run(self, statement: str, *values: str) -> tuple[str | int, ...] | None:
        """Return the first row of the result; None if there is none, or the file is locked."""
        try:
            row: tuple[str | int, ...] | None = self._database.execute(statement, values).fetchone()
        except sqlite3.OperationalError as error:
            # the other bits hold details
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                return None
            raise self._unusable(error) from error
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return row

    def _set_up(self) -> None:
        """Make an empty file a cache, unless another process does at the same time.

        Raises:
            InputError: If the file is a database of another program.
        """
        run = self._database.execute
        if run("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            run("BEGIN IMMEDIATE")
            (mark,) = run("PRAGMA application_id").fetchone()
            is_empty = run("SELECT 1 FROM sqlite_master").fetchone() is None
            if mark != _APPLICATION_ID and is_empty:
                run("CREATE TABLE answers (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
                run(f"PRAGMA application_id={_APPLICATION_ID}")
            run("COMMIT")
            if mark != _APPLICATION_ID and not is_empty:
                self._database.close()
                raise self._unusable("it is a database of another program")
        run("SELECT key, value FROM answers LIMIT 1")
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=NORMAL")

    def _unusable(self, error: object) -> InputError:
        return InputError(f"cannot be used as an answer cache: {error}", path=self._path)

    def __enter__(self) -> Self:
        """Return the cache itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the file."""
        self.close()
