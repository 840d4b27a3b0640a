"""The folder of a run: ``run.json``, the journal of answers, and the log."""

from __future__ import annotations

import json
import os
from asyncio import CancelledError
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

from prism._version import __version__
from prism.errors import InputError, PrismError, ReplayError, TooManyFallbacksError
from prism.files.durable import make_folder, write_durably
from prism.files.source import Source
from prism.runlog import RunLog, SimulatedClock
from prism.runlog.reader import ANSWERS_NAME, LOG_NAME, LOG_NAMES, locate_log
from prism.runs._journal import Journal, has_answers
from prism.runs.documents import DOCUMENTS_NAME
from prism.runs.options import Repeats
from prism.telemetry.events import ROUND_ENDED, ROUND_STARTED, SCHEMA_VERSION
from prism.telemetry.loggers import EventLogger, describe

SUMMARY_NAME = "run.json"
TRACEBACK_NAME = "traceback.txt"

_RESULTS = "results"
STOPPED = "stopped"
"""The key in ``run.json`` of why a run stopped."""

_ROUND_ENDED = b'{"event":"%b"' % ROUND_ENDED.encode()
_FILES = (*LOG_NAMES, SUMMARY_NAME, ANSWERS_NAME)
_ALL_FILES = (*_FILES, DOCUMENTS_NAME)
_MOST_NAMED = 3


class RunFolder:
    """The folder of one run, from which it is resumed and which no other run overwrites.

    ``run.json`` describes the run from the beginning (``config``), and has its results at the end
    (``results``). ``answers.jsonl`` is the journal. ``events.jsonl`` is the log, which is also the
    folder's lock: the process that writes the run locks it until the end. A resumed run writes the
    log again from its beginning, and is compared with what is there.

    Args:
        path: The folder.
        is_new: Whether the run has not begun.

    Attributes:
        path: The folder.
        is_new: Whether the run has not begun.
        journal: The answers, while the run is written.
        skipped: The number of rounds whose events are not logged again.
    """

    def __init__(self, path: Path, *, is_new: bool = True) -> None:
        self.path = path
        self.is_new = is_new
        self.journal: Journal | None = None
        self.skipped: int = 0
        self._begin_at = 0
        self._has_begun = False
        self._about: Mapping[str, Any] = {}
        self._log: RunLog | None = None

    @classmethod
    def for_new(cls, path: Path) -> Self:
        """Return a folder for a new run, after checking that it can be written.

        Nothing is written yet.

        Raises:
            InputError: If it holds a run or anything else, is not a folder, or cannot be written
                to.
        """
        try:
            _require_free(path)
        except OSError as error:
            raise _unwritable(path, error) from None
        return cls(path)

    def skip_rounds(self) -> None:
        """Let the rounds that have ended in the log, but for the last, not be logged again.

        Nor are they compared with it. Those of a run that asked anybody are.
        """
        log = self.path / LOG_NAME
        if (self.path / ANSWERS_NAME).exists() or not log.exists():
            return
        lines = log.read_bytes()
        # the last of them is compared, since an imported module may have changed
        last = lines.rfind(_ROUND_ENDED, 0, max(lines.rfind(_ROUND_ENDED), 0))
        if last >= 0:
            end = lines.find(b"\n", last) + 1
            self._begin_at, self.skipped = end, lines.count(_ROUND_ENDED, 0, end)

    @contextmanager
    def writing(
        self,
        about: Mapping[str, Any],
        clock: SimulatedClock,
        *,
        repeats: Repeats | None = None,
        at_once: bool = False,
    ) -> Iterator[EventLogger]:
        """Begin the run's log and journal, or open them again.

        Args:
            about: The run's ``config`` and, if they can be drawn, the ``charts`` of its agents, as
                plain data.
            clock: The run's clock.
            repeats: The run that it repeats, if any.
            at_once: Whether each line is passed to the operating system at once.

        Yields:
            A logger that writes to the log. A new run that raises an error of prism in its first
            round leaves nothing behind, since it would fail again, unless it has an answer; a
            replay does so in any round.

        Raises:
            InputError: If it cannot be written, or another process is writing it.
        """
        self._about = about
        compared = None if repeats is None or repeats.asks else locate_log(repeats.run)
        try:
            with self._open_log(clock, compared, at_once=at_once) as self._log:
                self._begin()
                self.journal = Journal(self.path / ANSWERS_NAME, clock, repeats)
                try:
                    yield self._log.logger
                except BaseException as error:
                    if isinstance(error, TooManyFallbacksError):
                        self._log.cut_before(ROUND_STARTED)
                        self.journal.do_again()
                    if isinstance(error, ReplayError):
                        self.journal.undo()
                    self._note_stop(error)
                    raise
                finally:
                    self.journal.close()
        except PrismError:
            if self._has_begun and not self._is_of_use(is_replay=compared is not None):
                _forget(self.path)
            raise

    def _is_of_use(self, *, is_replay: bool) -> bool:
        """Return whether somebody has answered, or a round has ended that a replay did not have."""
        log = self.path / LOG_NAME
        has_round = not is_replay and _ROUND_ENDED in log.read_bytes()
        return has_round or has_answers(self.path / ANSWERS_NAME)

    def round_ended(self) -> None:
        """Flush the log of a round, so that others can read it."""
        assert self._log is not None
        self._log.flush()

    def change(self, config: Mapping[str, Any]) -> None:
        """Record that the options of a run change between two rounds.

        Raises:
            OSError: If it cannot be written.
        """
        self._about = {**self._about, "config": config}
        self._write_summary({})

    def complete(self, outcome: Mapping[str, Any]) -> None:
        """Write the results of the run.

        Args:
            outcome: What to add to ``run.json``: ``results``, and more.

        Raises:
            OSError: If they cannot be written. The run can be resumed.
        """
        assert self._log is not None
        self._log.save()
        self._write_summary(outcome)

    def _note_stop(self, error: BaseException) -> None:
        """Write why the run stops, until it goes on."""
        is_interrupted = isinstance(error, (KeyboardInterrupt, CancelledError))
        why = "interrupted" if is_interrupted else describe(error)
        # what stops the run may be that nothing can be written
        with suppress(OSError):
            self._save({**read_summary(self.path), STOPPED: why})

    def _open_log(self, clock: SimulatedClock, compared: Path | None, *, at_once: bool) -> RunLog:
        path = self.path / LOG_NAME
        try:
            if self.is_new:
                make_folder(self.path)
            other = compared if self.is_new else path
            return RunLog(
                path, clock, append=True, compared=other, begin=self._begin_at, at_once=at_once
            )
        except BlockingIOError:
            problem = "is being written by another process: wait for it, or stop it"
            raise InputError(problem, path=path) from None
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def _begin(self) -> None:
        """Write the run's configuration; another process may just have done so, or ended it."""
        if self.is_new:
            _require_free(self.path)
            self._has_begun = True
            self._write_summary({})
            return
        summary = read_summary(self.path)
        if _RESULTS in summary:
            raise InputError("was just completed by another process", path=self.path)
        if summary.pop(STOPPED, None) is not None:
            self._save(summary)

    def _write_summary(self, outcome: Mapping[str, Any]) -> None:
        self._save(describe_run(self._about, outcome))

    def _save(self, summary: Mapping[str, Any]) -> None:
        text = json.dumps(summary, indent=2, allow_nan=False) + "\n"
        write_durably(self.path / SUMMARY_NAME, text.encode())


def is_begun(folder: Path) -> bool:
    """Return whether there is a run in a folder that can be resumed."""
    return (folder / SUMMARY_NAME).exists()


def _forget(folder: Path) -> None:
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    rmtree(folder / DOCUMENTS_NAME, ignore_errors=True)
    # if the folder holds anything else, it stays
    with suppress(OSError):
        folder.rmdir()


def describe_run(about: Mapping[str, Any], outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of ``run.json``: the run's configuration and charts, and its results."""
    return {"prism": __version__, "schema": SCHEMA_VERSION, **about, **outcome}


def read_summary(path: Path) -> dict[str, Any]:
    """Read a folder's ``run.json``.

    Raises:
        InputError: If it is missing or damaged.
    """
    file = path / SUMMARY_NAME
    if not is_begun(path):
        problem = f"holds no run (no {SUMMARY_NAME}): name the folder of a run"
        raise InputError(problem, path=path)
    summary = Source.read(file, "json").value
    if not isinstance(summary, dict) or not isinstance(summary.get("config"), dict):
        raise InputError("is damaged: it describes no run", path=file)
    return summary


def _require_free(path: Path) -> None:
    """Refuse a folder that holds a run, or anything else."""
    log = path / LOG_NAME
    # a process that was killed before its run began leaves only an empty log
    is_empty = log.exists() and log.stat().st_size == 0
    # a batch writes the traceback of a run that failed
    require_nothing_else(path, allowed=(TRACEBACK_NAME, LOG_NAME if is_empty else ""))


def require_nothing_else(path: Path, allowed: Container[str] = ()) -> None:
    """Refuse a folder for results that holds other files; hidden ones are allowed.

    Args:
        path: The folder, which may be a new one.
        allowed: Names of the files that may be there.

    Raises:
        InputError: If it holds anything else.
    """
    there = sorted(each.name for each in path.iterdir()) if path.exists() else []
    others = [name for name in there if not name.startswith(".") and name not in allowed]
    if others:
        names = ", ".join(others[:_MOST_NAMED]) + ", ..." * (len(others) > _MOST_NAMED)
        what = "a run" if SUMMARY_NAME in others else "other files"
        problem = f"already holds {what} ({names}): choose an empty folder, or a new one"
        raise InputError(problem, path=path)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written to: {error.strerror}", path=path)


def refuse_run_file(out: Path, reads: Iterable[Path] = ()) -> None:
    """Refuse to write to a file that is read, or that belongs to a run, under any name.

    Args:
        out: The file to write to.
        reads: The files, and folders of runs, that are read.

    Raises:
        InputError: If it is one of them.
    """
    files = (each for read in reads for each in (read, *(read / name for name in _FILES)))
    if out.exists() and any(each.exists() and each.samefile(out) for each in files):
        raise InputError("is read by this command: name another file to write to", path=out)
    target = Path(os.path.realpath(out))
    if target.name in _ALL_FILES and any((target.parent / name).exists() for name in _FILES):
        raise InputError("belongs to a run: name another file to write to", path=out)
