"""The folder of a run: ``run.json``, the journal of answers, and the log."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any, Self

from prism._version import __version__
from prism.errors import InputError, PrismError, TooManyFallbacksError
from prism.files import parse_json
from prism.files._durable import make_folder, write_durably
from prism.runlog import RunLog, SimulatedClock
from prism.runlog._prompts import ANSWERS_NAME
from prism.runlog._reader import LOG_NAME, LOG_NAMES, locate_log
from prism.runs._documents import DOCUMENTS_NAME
from prism.runs._journal import Journal
from prism.runs._options import Repeats
from prism.telemetry.events import ROUND_ENDED, SCHEMA_VERSION
from prism.telemetry.loggers import EventLogger

SUMMARY_NAME = "run.json"
TRACEBACK_NAME = "traceback.txt"
_MOST_NAMED = 3

_RESULTS = "results"
_ROUND_ENDED = b'{"event":"%b"' % ROUND_ENDED.encode()


class RunFolder:
    """The folder of one run, from which it is resumed and which no other run overwrites.

    ``run.json`` describes the run from the beginning (``config``), and has its results at the end
    (``results``). ``answers.jsonl`` is the journal. ``events.jsonl`` is the log, which is also the
    folder's lock: the process that writes the run locks it until the end. A resumed run writes the
    log again from its beginning, and is compared with what is there.

    Args:
        path: The folder.

    Attributes:
        path: The folder.
        is_new: Whether the run has not begun.
        journal: The answers, while the run is written.
        skipped: The number of rounds whose events are not logged again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_new = True
        self.journal: Journal | None = None
        self.skipped: int = 0
        self._begin_at = 0
        self._has_rounds = False
        self._config: Mapping[str, Any] = {}
        self._charts: Sequence[Mapping[str, Any]] = ()
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

    @classmethod
    def to_resume(cls, path: Path) -> tuple[Self, dict[str, Any] | None]:
        """Return the folder of a run to resume.

        Returns:
            The folder and the run's configuration; None if it is complete.

        Raises:
            InputError: If there is no run in it, or another version of prism began it.
        """
        folder = cls(path)
        folder.is_new = False
        summary = read_summary(path)
        if _RESULTS in summary:
            return folder, None
        if problem := problem_of_version(summary):
            raise InputError(problem, path=path)

        return folder, summary["config"]

    def skip_rounds(self) -> None:
        """Let the rounds that have ended in the log not be logged again, nor compared with it.

        Those of a run that asked anybody are.
        """
        log = self.path / LOG_NAME
        if (self.path / ANSWERS_NAME).exists() or not log.exists():
            return
        lines = log.read_bytes()
        last = lines.rfind(_ROUND_ENDED)
        end = lines.find(b"\n", last) + 1
        if last >= 0 and end:
            self._begin_at, self.skipped = end, lines.count(_ROUND_ENDED)

    @contextmanager
    def writing(
        self,
        config: Mapping[str, Any],
        clock: SimulatedClock,
        *,
        charts: Sequence[Mapping[str, Any]] = (),
        repeats: Repeats | None = None,
        at_once: bool = False,
    ) -> Iterator[EventLogger]:
        """Begin the run's log and journal, or open them again.

        Args:
            config: The run's configuration, as plain data.
            clock: The run's clock.
            charts: The charts of its agents, as plain data.
            repeats: The run that it repeats, if any.
            at_once: Whether each line is passed to the operating system at once.

        Yields:
            A logger that writes to the log. A new run that raises an error of prism in its first
            round leaves nothing behind, since it would fail again, unless it has an answer.

        Raises:
            InputError: If it cannot be written, or another process is writing it.
        """
        self._config, self._charts = config, charts
        compared = None if repeats is None or repeats.asks else locate_log(repeats.run)
        self._log = self._open_log(clock, compared, at_once=at_once)
        try:
            with self._log:
                self.journal = Journal(self.path / ANSWERS_NAME, clock, repeats)
                try:
                    yield self._log.logger
                except TooManyFallbacksError:
                    self._log.cut_after(ROUND_ENDED)
                    self.journal.do_again()
                    raise
                finally:
                    self.journal.close()
        except PrismError:
            answers = self.path / ANSWERS_NAME
            has_answers = answers.exists() and answers.stat().st_size
            if self.is_new and not (self._has_rounds or has_answers):
                _forget(self.path)
            raise

    def round_ended(self) -> None:
        """Flush the log of a round, so that others can read it."""
        assert self._log is not None
        self._has_rounds = True
        self._log.flush()

    def change(self, config: Mapping[str, Any]) -> None:
        """Record that the options of a run change between two rounds.

        Raises:
            OSError: If it cannot be written.
        """
        self._config = config
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

    def _open_log(self, clock: SimulatedClock, compared: Path | None, *, at_once: bool) -> RunLog:
        path = self.path / LOG_NAME
        try:
            if self.is_new:
                make_folder(self.path)
            path.open("ab").close()
            return RunLog(
                path,
                clock,
                keep=self._begin if self.is_new else self._require_incomplete,
                compared=path if not self.is_new else compared,
                begin=self._begin_at,
                at_once=at_once,
            )
        except BlockingIOError:
            raise InputError(
                "is being written by another process: wait for it, or stop it", path=path
            ) from None
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def _begin(self) -> int:
        """Write the run's configuration, and return the length of its log."""
        _require_free(self.path)
        self._write_summary({})
        return 0

    def _require_incomplete(self) -> int:
        """Return the length of the whole lines of the log of a run that has not ended."""
        if _RESULTS in read_summary(self.path):
            raise InputError("was just completed by another process", path=self.path)
        return (self.path / LOG_NAME).read_bytes().rfind(b"\n") + 1

    def _write_summary(self, outcome: Mapping[str, Any]) -> None:
        summary = describe_run(self._config, outcome, self._charts)
        text = json.dumps(summary, indent=2, allow_nan=False) + "\n"
        write_durably(self.path / SUMMARY_NAME, text.encode())


def problem_of_version(summary: Mapping[str, Any]) -> str | None:
    """Return why this version of prism does not resume a run, or None if it does."""
    begun_by = summary.get("prism")
    if begun_by == __version__:
        return None

    return (
        f"was begun by prism {begun_by}, and this is {__version__}, which may not write the same "
        f"bytes: resume it with prism {begun_by}"
    )


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


def describe_run(
    config: Mapping[str, Any],
    outcome: Mapping[str, Any],
    charts: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the contents of ``run.json``: the run's configuration, its charts and its results."""
    told = {"charts": list(charts)} if charts else {}
    about = {"prism": __version__, "schema": SCHEMA_VERSION, "config": dict(config)}
    return {**about, **told, **outcome}


def read_summary(path: Path) -> dict[str, Any]:
    """Read the part of a folder's ``run.json`` from which the run is made again.

    Raises:
        InputError: If it is missing or damaged.
    """
    file = path / SUMMARY_NAME
    try:
        summary = parse_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _no_run(path) from None
    except NotADirectoryError:
        raise InputError("is a file: name the folder of a run", path=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=file) from None
    except InputError as error:
        problem = f"is damaged: it {error.problem}"
        raise InputError(problem, path=file, line=error.line, field=error.field) from None
    except UnicodeDecodeError:
        raise InputError("is damaged: it is not UTF-8", path=file) from None
    if not isinstance(summary, dict) or not isinstance(summary.get("config"), dict):
        raise InputError("is damaged: it describes no run", path=file)
    return summary


def _no_run(path: Path) -> InputError:
    if not path.exists():
        return InputError("there is no such folder", path=path)
    below = sorted(each.parent.name for each in path.glob(f"*/{SUMMARY_NAME}"))
    if below:
        problem = f"holds several runs, and is none itself: name one of them ({_listed(below)})"
        return InputError(problem, path=path)
    return InputError(f"holds no run to resume (no {SUMMARY_NAME}): begin one there", path=path)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + ", ..." * (len(names) > _MOST_NAMED)


def _require_free(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise InputError("is a file, not a folder: choose another folder", path=path)

    found = [name for name in _OWN if (path / name).exists()]
    # a process that was killed before its run began leaves only an empty log
    is_empty = found[:1] == found and set(found) <= {*LOG_NAMES}
    if found and not (is_empty and (path / found[0]).stat().st_size == 0):
        way = ", resume it" if SUMMARY_NAME in found else ""
        hint = f"choose another folder{way}, or delete it"
        raise InputError(f"already holds a run ({', '.join(found)}): {hint}", path=path)

    # a batch writes the traceback of a run that failed
    require_nothing_else(path, own=(*_OWN, TRACEBACK_NAME))


def require_nothing_else(path: Path, own: Container[str] = ()) -> None:
    """Refuse a folder for results that holds other files; hidden ones are allowed.

    Args:
        path: The folder, which may be a new one.
        own: Names of the files that may be there.

    Raises:
        InputError: If it holds anything else.
    """
    there = sorted(each.name for each in path.iterdir()) if path.exists() else []
    others = [name for name in there if not name.startswith(".") and name not in own]
    if others:
        problem = f"holds other files ({_listed(others)}): choose an empty folder, or a new one"
        raise InputError(problem, path=path)


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written to: {error.strerror}", path=path)


_FILES = (*LOG_NAMES, SUMMARY_NAME, ANSWERS_NAME)
_OWN = (*_FILES, DOCUMENTS_NAME)


def refuse_own_file(out: Path, reads: Iterable[Path] = ()) -> None:
    """Refuse to write to a file that is read, or that belongs to a run, under any name.

    Args:
        out: The file to write to.
        reads: The files, and folders of runs, that are read.

    Raises:
        InputError: If it is one of them.
    """
    for read in reads:
        files = [read / name for name in _OWN] if read.is_dir() else [read]
        if out.exists() and any(each.exists() and each.samefile(out) for each in files):
            problem = f"is read by this command ({read}): name another file to write to"
            raise InputError(problem, path=out)

    place = Path(os.path.realpath(out))
    is_beside_a_run = any((place.parent / name).exists() for name in (*LOG_NAMES, SUMMARY_NAME))
    if place.name in _OWN and is_beside_a_run:
        raise InputError("belongs to a run: name another file to write to", path=out)
