"""The folder of a batch: its plan, its lock, and the progress of its runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

import orjson

from prism._version import __version__
from prism.errors import InputError
from prism.files import make_folder, parse_json, write_durably
from prism.runs._folder import SUMMARY_NAME, is_begun, read_summary, require_nothing_else

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

Keep = Literal["logs", "tables"]
"""What a batch keeps of each run: its folder with its log, or only its rows of the tables."""

LOGS: Final = "logs"
TABLES: Final = "tables"
PLAN_NAME = "plan.json"
ROWS_NAME = "runs.jsonl"
FAILURES_NAME = "failures.json"
LOCK_NAME = "batch.lock"
_WORKING_NAME = "workers.lock"
_STOP_NAME = "stop"
STOP = "stop"
STOP_NOW = "now"
_SCHEMA = 1
_SECONDS_TO_WAIT = 10.0


class BatchFolder:
    """The folder of one batch.

    ``plan.json`` describes the batch, and exists once it has begun. Each run has a folder below,
    named by its configuration and seed.

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
        """Refuse anything but an empty or new folder.

        Raises:
            InputError: If it holds another batch or run, or anything else.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InputError("is a file, not a folder: choose another folder", path=self.path)
        for name in (PLAN_NAME, SUMMARY_NAME):
            if (self.path / name).exists():
                what = "a batch" if name == PLAN_NAME else "a run"
                hint = "choose another folder, or resume it"
                raise InputError(f"already holds {what} ({name}): {hint}", path=self.path)

        require_nothing_else(self.path, own=(LOCK_NAME, _WORKING_NAME, _STOP_NAME))

    @contextmanager
    def locked(self) -> Iterator[str]:
        """Lock the folder, so that no other process carries out the batch.

        Yields:
            The session, a unique text that the lock's file contains in the meantime.

        Raises:
            InputError: If another process holds it, or one of an earlier session is still working.
        """
        try:
            make_folder(self.path)
            # the file stays when the batch ends, since a deleted lock could be held twice
            lock = _opened(self.path / LOCK_NAME)
        except OSError as error:
            raise InputError(f"cannot be written to: {error.strerror}", path=self.path) from None

        try:
            self._wait_for(lock)
            try:
                yield self._begun_session(lock)
            finally:
                # runs that are still active elsewhere must end
                with suppress(OSError):
                    os.truncate(lock, 0)
                    (self.path / _STOP_NAME).unlink(missing_ok=True)
        finally:
            os.close(lock)

    def _begun_session(self, lock: int) -> str:
        session = uuid4().hex
        os.truncate(lock, 0)
        os.pwrite(lock, session.encode(), 0)
        (self.path / _STOP_NAME).unlink(missing_ok=True)
        self.wait_for_workers()

        return session

    def session(self) -> str | None:
        """Return the session that carries out the batch; None if the folder cannot be seen."""
        try:
            return (self.path / LOCK_NAME).read_text()
        except OSError:
            return None

    @property
    def is_held(self) -> bool:
        """Whether a process carries out the batch, here or on another machine."""
        if fcntl is None:
            return True

        lock = _opened(self.path / LOCK_NAME)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)

        return False

    @contextmanager
    def working(self) -> Iterator[None]:
        """Mark a run as active for the length of the block, or of the process."""
        lock = _opened(self.path / _WORKING_NAME)
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_SH)
            yield
        finally:
            os.close(lock)

    def wait_for_workers(self, seconds: float = _SECONDS_TO_WAIT) -> None:
        """Wait until no run of the batch is active.

        Raises:
            InputError: If that takes too long.
        """
        lock = _opened(self.path / _WORKING_NAME)
        try:
            self._wait_for(lock, seconds)
        finally:
            os.close(lock)

    def give_order(self, order: str) -> None:
        """Order all runs to stop, after their rounds (`STOP`) or at once (`STOP_NOW`)."""
        (self.path / _STOP_NAME).write_text(order)

    def order(self, session: str) -> str | None:
        """Return the order for the runs of a session: continue (None), stop, or stop at once.

        If the process that carries out the batch is gone, its runs stop at once.
        """
        if self.session() != session or not self.is_held:
            return STOP_NOW
        try:
            return (self.path / _STOP_NAME).read_text() or STOP
        except OSError:
            return None

    def begin(
        self, plan: Mapping[str, Any], inputs: Mapping[str, str], more: Mapping[str, Any]
    ) -> None:
        """Write the description of the batch.

        Args:
            plan: Its plan.
            inputs: The SHA-256 of every file that its runs read.
            more: Further data that resuming it needs.
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
            problem = f"holds no batch to resume (no {PLAN_NAME}): begin one"
            raise InputError(problem, path=self.path)

        found = self._read_object(PLAN_NAME)
        samples = found.get("samples") or []
        is_whole = (
            {"prism", "plan", "inputs"} <= set(found)
            and isinstance(found["inputs"], dict)
            and isinstance(samples, list)
            and all(isinstance(each, dict) for each in samples)
        )
        if not is_whole:
            raise _damaged(path)

        return found

    def write(self, told: Mapping[str, Any]) -> None:
        """Replace the description of the batch, such as by one with more samples."""
        self._write(PLAN_NAME, told)

    def summaries(self, runs: Sequence[str]) -> Iterator[dict[str, Any] | None]:
        """Yield the ``run.json`` of each run, or its row; None for one that has not begun.

        Raises:
            InputError: If one is damaged.
        """
        rows = {row["run"]: row for row in self.rows()}
        for run in runs:
            path = self.path / run
            yield rows.get(run) or (read_summary(path) if is_begun(path) else None)

    def add_row(self, row: str) -> None:
        """Keep the results of a run that has no folder.

        Args:
            row: One of `rows`, as JSON.

        Raises:
            OSError: If it cannot be written.
        """
        with (self.path / ROWS_NAME).open("ab") as file:
            file.write(row.encode() + b"\n")

    def cut_rows(self) -> None:
        """Remove the incomplete row that a killed process may have left.

        Raises:
            OSError: If it cannot be written.
        """
        path = self.path / ROWS_NAME
        if path.exists() and not (whole := path.read_bytes()).endswith(b"\n"):
            os.truncate(path, whole.rfind(b"\n") + 1)

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of runs that have no folder, in the order of their ends.

        Raises:
            InputError: If a line is damaged.
        """
        path = self.path / ROWS_NAME
        if not path.exists():
            return []

        lines = path.read_bytes().split(b"\n")
        try:
            # the part after the last line break is a row that is still being written
            found = [orjson.loads(line) for line in lines[:-1]]
            if not all(isinstance(row["run"], str) for row in found):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise InputError(
                "is damaged: prism did not write one of its lines", path=path
            ) from None

        return found

    def failures(self) -> dict[str, str]:
        """Return the reasons of failed runs that have not been resumed since."""
        if not (self.path / FAILURES_NAME).exists():
            return {}
        return self._read_object(FAILURES_NAME)

    def note_failures(self, failures: Mapping[str, str]) -> None:
        """Record why runs failed."""
        if failures or (self.path / FAILURES_NAME).exists():
            self._write(FAILURES_NAME, dict(failures))

    def _wait_for(self, lock: int, seconds: float = _SECONDS_TO_WAIT) -> None:
        """Wait for the processes of a killed batch, which are about to end."""
        ends = time.monotonic() + seconds
        while fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > ends:
                    problem = "is being carried out by another process: wait for it"
                    raise InputError(problem, path=self.path) from None
                time.sleep(0.05)

    def _read_object(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            found = parse_json(path.read_bytes().decode(), path=path)
        except UnicodeDecodeError:
            raise InputError("is damaged: it is not UTF-8", path=path) from None
        if not isinstance(found, dict):
            raise _damaged(path)

        return found

    def _write(self, name: str, content: Any) -> None:
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        write_durably(self.path / name, text.encode())


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)


def _damaged(path: Path) -> InputError:
    return InputError("is damaged: prism did not write it like this", path=path)
