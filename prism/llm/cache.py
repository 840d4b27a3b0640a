"""Answers kept on disk, so that a question asked once is never paid for twice."""

from __future__ import annotations

import sqlite3
from os import PathLike
from types import TracebackType
from typing import Self

from prism.errors import InputError

_SCHEMA = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
_PATIENCE_SECONDS = 10.0


class AnswerCache:
    """A file of answers by what was asked: model, options, prompt and seed.

    Several processes may use one file. Give it to a `Reasoner`, and close it when the run is over.

    Args:
        path: The file; it is made if it does not exist.

    Raises:
        InputError: If the file cannot be opened or is something else; also later, if it can no longer be used.
    """

    def __init__(self, path: PathLike[str] | str) -> None:
        self._path = str(path)
        try:
            self._database = sqlite3.connect(path, isolation_level=None, timeout=_PATIENCE_SECONDS)
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        try:
            self._database.execute(_SCHEMA)
            self._database.execute("SELECT key, value FROM answers LIMIT 1").fetchall()
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error as error:
            self._database.close()
            raise self._unusable(error) from None

    def get(self, key: str) -> str | None:
        """Give what was put under a key, or None."""
        try:
            row = self._database.execute("SELECT value FROM answers WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> None:
        """Keep something under a key; what was there is replaced."""
        try:
            self._database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, value))
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def __len__(self) -> int:
        """Count the answers."""
        return int(self._database.execute("SELECT count(*) FROM answers").fetchone()[0])

    def _unusable(self, error: sqlite3.Error) -> InputError:
        return InputError(f"cannot be used as an answer cache: {error}", path=self._path)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        """Give the cache itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()
