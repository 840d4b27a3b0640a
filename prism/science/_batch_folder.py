"""The folder of a batch: its plan, its lock, and how far its runs are."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from prism._version import __version__
from prism.errors import InputError
from prism.files import make_folder, parse_json, write_durably
from prism.runs._folder import SUMMARY_NAME, is_begun, read_summary

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

Keep = Literal["logs", "tables"]
"""What a batch keeps of each run: its folder, with its log, or its row of the tables alone."""

LOGS: Final = "logs"
TABLES: Final = "tables"
PLAN_NAME = "plan.json"
LEDGER_NAME = "budget.bin"
TRACEBACK_NAME = "traceback.txt"
ROWS_NAME = "runs.jsonl"
_FAILURES_NAME = "failures.json"
_LOCK_NAME = "batch.lock"
_SCHEMA = 1
_SECONDS_TO_WAIT = 10.0


class BatchFolder:
    """The folder of one batch.

    ``plan.json`` is what the batch is, and is there once the batch has begun; each run has a folder
    of its own below, by its configuration and seed.

    Args:
        path: The folder.

    Attributes:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_begun(self) -> bool:
        """Whether there is a batch that can be resumed."""
        return (self.path / PLAN_NAME).exists()

    def require_free(self) -> None:
        """Refuse a folder that another batch or run has.

        Raises:
            InputError: If it is one.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InputError("is a file, not a folder: choose another folder", path=self.path)
        for name in (PLAN_NAME, SUMMARY_NAME):
            if (self.path / name).exists():
                what = "a batch" if name == PLAN_NAME else "a run"
                hint = "choose another folder, or resume it"
                raise InputError(f"already holds {what} ({name}): {hint}", path=self.path)

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the folder against other processes that would carry out the batch.

        Yields:
            The descriptor of the locked file, for processes that hold it, too.

        Raises:
            InputError: If another process does.
        """
        try:
            make_folder(self.path)
            # it stays when the batch ends: a lock that is deleted can be held twice
            lock = os.open(self.path / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(f"cannot be written to: {error.strerror}", path=self.path) from None

        try:
            self._wait_for(lock)
            yield lock
        finally:
            os.close(lock)

    def begin(
        self, plan: Mapping[str, Any], inputs: Mapping[str, str], more: Mapping[str, Any]
    ) -> None:
        """Write down what the batch is.

        Args:
            plan: Its plan.
            inputs: The SHA-256 of every file that its runs read.
            more: What else has to be known to resume it.
        """
        self.require_free()
        head = {"prism": __version__, "schema": _SCHEMA, "plan": plan, "inputs": inputs}
        told = {**head, **{key: value for key, value in more.items() if key not in head}}
        self._write(PLAN_NAME, told)

    def read(self) -> dict[str, Any]:
        """Return what `begin` wrote.

        Raises:
            InputError: If there is no batch, or its description is damaged.
        """
        path = self.path / PLAN_NAME
        if not path.exists():
            problem = f"holds no batch to resume (no {PLAN_NAME}): begin one there"
            raise InputError(problem, path=self.path)

        found = self._read(PLAN_NAME)
        if not isinstance(found, dict) or not {"prism", "plan", "inputs"} <= set(found):
            raise InputError("is damaged: it is not what prism writes", path=path)

        return found

    def write(self, told: Mapping[str, Any]) -> None:
        """Write anew what the batch is, such as with more samples."""
        self._write(PLAN_NAME, told)

    def summaries(self, runs: Sequence[str]) -> Iterator[dict[str, Any] | None]:
        """Yield the ``run.json`` of each run, or its row; None for one that has not begun.

        Raises:
            InputError: If one is damaged.
        """
        rows = self._rows()
        for run in runs:
            path = self.path / run
            yield rows.get(run) or (read_summary(path) if is_begun(path) else None)

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Keep what came of a run that has no folder.

        Raises:
            OSError: If that fails.
        """
        with (self.path / ROWS_NAME).open("ab") as file:
            file.write(orjson.dumps(row) + b"\n")

    def cut_rows(self) -> None:
        """Remove the half row that a process has left which was killed.

        Raises:
            OSError: If that fails.
        """
        path = self.path / ROWS_NAME
        if path.exists() and not (whole := path.read_bytes()).endswith(b"\n"):
            os.truncate(path, whole.rfind(b"\n") + 1)

    def _rows(self) -> dict[str, dict[str, Any]]:
        path = self.path / ROWS_NAME
        if not path.exists():
            return {}

        lines = path.read_bytes().split(b"\n")
        try:
            # what follows the last line's end is a row that is being written
            found = map(orjson.loads, lines[:-1])
            return {row["run"]: row for row in found}
        except (ValueError, KeyError, TypeError):
            raise InputError("is damaged: a line is not what prism writes", path=path) from None

    def failures(self) -> dict[str, str]:
        """Return why runs have failed that were not resumed since."""
        if not (self.path / _FAILURES_NAME).exists():
            return {}
        return dict(self._read(_FAILURES_NAME))

    def note_failures(self, failures: Mapping[str, str]) -> None:
        """Write down why runs have failed."""
        if failures or (self.path / _FAILURES_NAME).exists():
            self._write(_FAILURES_NAME, dict(failures))

    def _wait_for(self, lock: int) -> None:
        """Wait for processes of a batch that was killed, which are about to end."""
        ends = time.monotonic() + _SECONDS_TO_WAIT
        while fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > ends:
                    problem = "is being carried out by another process: wait until it ends"
                    raise InputError(problem, path=self.path) from None
                time.sleep(0.05)

    def _read(self, name: str) -> Any:
        path = self.path / name
        try:
            return parse_json(path.read_bytes().decode(), path=path)
        except UnicodeDecodeError:
            raise InputError("is damaged: it is not UTF-8", path=path) from None

    def _write(self, name: str, content: Any) -> None:
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        write_durably(self.path / name, text.encode())
