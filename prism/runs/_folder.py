"""The folder that a run leaves behind: its log and a summary, and checkpoints until it is complete."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copyfile
from typing import Any, Self

import orjson

from prism import __version__
from prism.errors import InputError, PrismError, SimulationError
from prism.files._durable import make_folder, write_durably
from prism.runlog import RunLog, SimulatedClock
from prism.runlog._reader import LOG_NAME
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN, FOLDER_NAME, Checkpoint, Checkpoints
from prism.social import Simulation
from prism.telemetry._loggers import EventLogger
from prism.telemetry.events import SCHEMA_VERSION

SUMMARY_NAME = "run.json"

_RESULTS = "results"


class RunFolder:
    """A folder for one run, which another run never overwrites, and from which this one can go on.

    ``run.json`` says from the beginning what the run is (``config``) and at the end what came of it
    (``results``). A run has begun when that file is there: what is in the folder without it is
    nothing but an empty log. The log is the folder's lock; whoever writes the run holds it from
    before the first look at the folder until the end.

    Args:
        path: The folder.

    Attributes:
        path: The folder.
        is_new: Whether the run is yet to begin.
        faults: What was found damaged when the run was gone on with.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[str] = []
        self.is_new = True
        self._has_rounds = False
        self._config: Mapping[str, Any] = {}
        self._is_repeatable = True
        self._log: RunLog | None = None
        self._checkpoint: Checkpoint | None = None
        self._checkpoints = Checkpoints(path, path / LOG_NAME)

    @classmethod
    def for_new(cls, path: Path) -> Self:
        """Find out whether a new run can be kept in a folder; nothing is written yet.

        Raises:
            InputError: If it holds a run already, is no folder, or cannot be written to.
        """
        try:
            _require_free(path)
            _require_writable(path)
        except OSError as error:
            raise _unwritable(path, error) from None

        return cls(path)

    @classmethod
    def to_resume(cls, path: Path) -> tuple[Self, dict[str, Any] | None]:
        """Open the folder of a run that was begun, to go on with it.

        Returns:
            The folder, and what the run is; None if it is complete.

        Raises:
            InputError: If there is no run in it, or another version of prism began it.
        """
        folder = cls(path)
        folder.is_new = False
        summary = _read_summary(path)
        if _RESULTS in summary:
            return folder, None

        if summary["prism"] != __version__:
            raise InputError(
                f"was begun by prism {summary['prism']}, and this is {__version__}, which may not write the same "
                f"bytes: resume it with prism {summary['prism']}",
                path=path,
            )

        return folder, summary["config"]

    @property
    def is_begun(self) -> bool:
        """Whether there is a run in the folder that can be gone on with."""
        return (self.path / SUMMARY_NAME).exists()

    @contextmanager
    def writing(
        self, config: Mapping[str, Any], clock: SimulatedClock, *, is_repeatable: bool = True
    ) -> Iterator[EventLogger]:
        """Begin the run's log, or open it again, cut back to the newest sound checkpoint.

        Args:
            config: What the run is, as plain data.
            clock: The run's clock.
            is_repeatable: Whether the run would write the same again. Where it would not, because a
                model decides, a log that has to be given up is kept beside the new one.

        Returns:
            A logger that writes to it, in a context; a new run that fails in its first round for a
            reason that going on would not mend leaves nothing behind.

        Raises:
            InputError: If that fails, another process is writing it, or the run was another when it
                began.
        """
        self._config = config
        self._is_repeatable = is_repeatable
        self._log = self._open_log(clock)
        try:
            with self._log:
                yield self._log.logger
        except PrismError:
            if self.is_new and not self._has_rounds:
                self._forget()
            raise

    def restore(self, simulation: Simulation) -> None:
        """Bring a new simulation of the same settings to where the log was cut."""
        if self._checkpoint is not None:
            simulation.restore(
                self._checkpoint.snapshot,
                self._checkpoints.events_until(self._checkpoint),
            )

    def keep(
        self, simulation: Simulation, *, seconds_between: float = DEFAULT_SECONDS_BETWEEN
    ) -> None:
        """Let others read what a round has written, and write a checkpoint unless the last one is young.

        Args:
            simulation: The run, at the end of a round.
            seconds_between: How young is too young.

        Raises:
            OSError: If that fails; the run can go on from the checkpoint before.
        """
        log = self._opened()
        self._has_rounds = True
        log.flush()
        if self._checkpoints.seconds_since_last() >= seconds_between:
            length = log.save()
            self._checkpoints.write(
                len(simulation.finished), self._config, simulation.snapshot(), length
            )

    def complete(self, outcome: Mapping[str, Any]) -> None:
        """Write down what came of the run; then it needs its checkpoints no more.

        Args:
            outcome: What to add to ``run.json``: ``results``, and more.

        Raises:
            OSError: If that fails; the run can go on from its last checkpoint.
        """
        self._opened().save()
        self._write_summary(outcome)
        self.tidy()

    def tidy(self) -> None:
        """Remove the checkpoints of a run that needs them no more."""
        self._checkpoints.discard()

    def _open_log(self, clock: SimulatedClock) -> RunLog:
        log = self.path / LOG_NAME
        try:
            if self.is_new:
                make_folder(self.path)
            log.open("ab").close()
            return RunLog(
                log, clock, keep=self._begin if self.is_new else self._find_last_checkpoint
            )
        except BlockingIOError:
            raise InputError(
                "is being written by another process: wait until it ends, or end it", path=log
            ) from None
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def _begin(self) -> int:
        """Write down what the run is, and give the length of its log."""
        _require_free(self.path)
        self._write_summary({})
        return 0

    def _find_last_checkpoint(self) -> int:
        """Return the length of the log that the run goes on after."""
        if _RESULTS in _read_summary(self.path):
            raise InputError("was brought to its end by another process just now", path=self.path)

        self._checkpoint, self.faults = self._checkpoints.newest_sound()
        if self._checkpoint is None:
            self._set_log_aside()
            return 0

        if self._checkpoint.config != self._config:
            problem = "is not what it was when the run began: put it back"
            raise InputError(problem, path=self.path / SUMMARY_NAME, field="config")

        return self._checkpoint.log_bytes

    def _set_log_aside(self) -> None:
        """Keep a copy of a log that no checkpoint fits, if it holds what cost time and money."""
        log = self.path / LOG_NAME
        if self.faults and log.stat().st_size and not self._is_repeatable:
            aside = log.with_name(f"damaged_{LOG_NAME}")
            copyfile(log, aside)
            self.faults.append(f"{log}: fits no checkpoint, so it is kept as {aside.name}")

    def _opened(self) -> RunLog:
        if self._log is None:
            raise SimulationError(
                f"{self.path}: nothing is kept before the folder is opened by writing()"
            )
        return self._log

    def _forget(self) -> None:
        for name in (LOG_NAME, SUMMARY_NAME):
            (self.path / name).unlink(missing_ok=True)

        with suppress(OSError):  # there is something else in it
            self.path.rmdir()

    def _write_summary(self, outcome: Mapping[str, Any]) -> None:
        text = json.dumps(describe_run(self._config, outcome), indent=2, allow_nan=False) + "\n"
        write_durably(self.path / SUMMARY_NAME, text.encode())


def describe_run(config: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``run.json`` says of a run: what it is, and what came of it."""
    return {"prism": __version__, "schema": SCHEMA_VERSION, "config": dict(config), **outcome}


def _read_summary(path: Path) -> dict[str, Any]:
    """Read ``run.json`` as far as resuming needs it."""
    try:
        summary = orjson.loads((path / SUMMARY_NAME).read_bytes())
    except FileNotFoundError:
        lost = (path / FOLDER_NAME).exists()
        hint = (
            "it is lost, and with it what the run is: begin it anew, with another --out"
            if lost
            else "begin one with --out"
        )
        raise InputError(f"holds no run to resume (no {SUMMARY_NAME}): {hint}", path=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    except ValueError:
        raise InputError("is damaged: it is no JSON", path=path / SUMMARY_NAME) from None

    wanted = {"prism": str, "schema": int, "config": dict, _RESULTS: dict}
    for name, kind in wanted.items():
        is_missing = not isinstance(summary, dict) or name not in summary
        if (is_missing and name != _RESULTS) or (
            not is_missing and type(summary[name]) is not kind
        ):
            raise InputError(
                "is missing, or not what prism writes", path=path / SUMMARY_NAME, field=name
            )

    return dict(summary)


def _require_free(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise InputError("is a file, not a folder: choose another --out", path=path)

    held = [name for name in (LOG_NAME, SUMMARY_NAME, FOLDER_NAME) if (path / name).exists()]
    if held and not (held == [LOG_NAME] and (path / LOG_NAME).stat().st_size == 0):
        hint = (
            "choose another --out, or --resume" if SUMMARY_NAME in held else "choose another --out"
        )
        raise InputError(f"already holds a run ({', '.join(held)}): {hint}", path=path)


def _require_writable(path: Path) -> None:
    """Try the nearest folder that exists, so that a run does not begin only to find this out."""
    nearest = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise InputError(f"cannot be made: {nearest} is a file, not a folder", path=path)
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"cannot be written to: no permission for {nearest}", path=path)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written to: {error.strerror}", path=path)
