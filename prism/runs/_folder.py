"""The folder of a run: its log, its summary, and its checkpoints until it is complete."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copyfileobj, rmtree
from typing import Any, Self

import orjson

from prism._version import __version__
from prism.errors import InputError, PrismError, SimulationError, TooManyFallbacksError
from prism.files import parse_json
from prism.files._durable import make_folder, replacing, write_durably
from prism.runlog import RunLog, SimulatedClock
from prism.runlog._prompts import PROMPTS_NAME, PromptLog, read_prompts
from prism.runlog._reader import LOG_NAME, LOG_NAMES, read_blocks
from prism.runlog._recorded import UnfinishedAnswers
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN, FOLDER_NAME, Checkpoint, Checkpoints
from prism.runs._documents import DOCUMENTS_NAME
from prism.runs._runnable import Runnable
from prism.telemetry.events import SCHEMA_VERSION
from prism.telemetry.loggers import EventLogger

SUMMARY_NAME = "run.json"
ASIDE_NAME = f"damaged_{LOG_NAME}"
RERUN_NAME = "rerun.json"
TRACEBACK_NAME = "traceback.txt"
_MOST_NAMED = 3

_RESULTS = "results"
_SUMMARY_KINDS = {"prism": str, "schema": int, "config": dict}
_LATER_KINDS = {"charts": list, _RESULTS: dict}


class RunFolder:
    """The folder of one run, from which it is resumed and which no other run overwrites.

    ``run.json`` describes the run from the beginning (``config``), and has its results at the end
    (``results``). A run has begun once that file exists; a folder without it holds at most an empty
    log. The log is the folder's lock: the process that writes the run locks it before it looks at
    the folder, until the end.

    Args:
        path: The folder.

    Attributes:
        path: The folder.
        is_new: Whether the run has not begun.
        faults: Damage that was found when the run was resumed.
        prompts: Keeps prompts and replies while the run is written, if they are recorded.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.faults: list[str] = []
        self.is_new = True
        self._has_rounds = False
        self._config: Mapping[str, Any] = {}
        self._charts: Sequence[Mapping[str, Any]] = ()
        self._is_repeatable = True
        self._keeps_prompts = False
        self._log: RunLog | None = None
        self.prompts: PromptLog | None = None
        self._checkpoint: Checkpoint | None = None
        self._checkpoints = Checkpoints(path, path / LOG_NAME)
        self.unfinished: UnfinishedAnswers | None = None

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
            _require_writable(path)
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

    @contextmanager
    def writing(
        self,
        config: Mapping[str, Any],
        clock: SimulatedClock,
        *,
        charts: Sequence[Mapping[str, Any]] = (),
        is_repeatable: bool = True,
        keeps_prompts: bool = False,
    ) -> Iterator[EventLogger]:
        """Begin the run's log, or reopen it, cut back to the newest intact checkpoint.

        Args:
            config: The run's configuration, as plain data.
            clock: The run's clock.
            charts: The charts of its agents, as plain data.
            is_repeatable: Whether the run would write the same again. If not, because a model
                decides, a log that matches no checkpoint is kept beside the new one.
            keeps_prompts: Whether to keep the prompts and replies of the run as well.

        Yields:
            A logger that writes to the log. A new run that raises an error of prism in its first
            round leaves nothing behind, since it would fail again, unless its model has answered
            or failed.

        Raises:
            InputError: If it cannot be written, another process is writing it, or the run was begun
                with another configuration.
        """
        self._config, self._charts = config, charts
        self._is_repeatable = is_repeatable
        self._keeps_prompts = keeps_prompts
        self._log = self._open_log(clock)
        try:
            with self._log, self._recording(clock):
                yield self._log.logger
        except PrismError as error:
            would_fail_again = not isinstance(error, TooManyFallbacksError)
            is_useless = self.is_new and not self._has_rounds and would_fail_again
            if is_useless and (is_repeatable or not self._holds_answers()):
                self._checkpoints.discard()
                _forget(self.path)
            raise

    def restore(self, run: Runnable[Any]) -> None:
        """Continue a new run with the same options where the log was cut."""
        if self._checkpoint is not None:
            run.restore(self._checkpoint.snapshot, self._checkpoints.events_until(self._checkpoint))

    def flush(self) -> None:
        """Flush the log, so that others can read it and it survives if the process is killed."""
        self._opened().flush()

    def keep(self, run: Runnable[Any], *, seconds_between: float = DEFAULT_SECONDS_BETWEEN) -> None:
        """Flush the log of a round, and write a checkpoint if one is due.

        Args:
            run: The run, at the end of a round.
            seconds_between: Seconds after the last checkpoint at which the next one is due.

        Raises:
            OSError: If it cannot be written. The run can be resumed from the checkpoint before.
        """
        log = self._opened()
        self._has_rounds = True
        log.flush()
        if self.prompts is not None:
            self.prompts.flush()

        if self._checkpoints.seconds_since_last() >= seconds_between:
            length = log.save()
            prompts = None if self.prompts is None else self.prompts.save()
            self._checkpoints.write(
                len(run.finished), self._config, run.snapshot(), length, prompts
            )

    def change(self, run: Runnable[Any], config: Mapping[str, Any]) -> None:
        """Record that the options of a run change between two rounds.

        Args:
            run: The run.
            config: Its new configuration, as plain data.

        Raises:
            OSError: If it cannot be written.
        """
        self._config = config
        self._write_summary({})
        # the last checkpoint describes the run as it was before
        if run.finished:
            self.keep(run, seconds_between=0)

    def complete(self, outcome: Mapping[str, Any]) -> None:
        """Write the results of the run, and remove its checkpoints.

        Args:
            outcome: What to add to ``run.json``: ``results``, and more.

        Raises:
            OSError: If they cannot be written. The run can be resumed from its last checkpoint.
        """
        self._opened().save()
        if self.prompts is not None:
            self.prompts.save()

        self._write_summary(outcome)
        self.tidy()

    def tidy(self) -> None:
        """Remove the checkpoints of a complete run."""
        self._checkpoints.discard()

    @property
    def tally(self) -> Path:
        """The file in which the requests of an unfinished run are counted."""
        return self._checkpoints.tally

    def _open_log(self, clock: SimulatedClock) -> RunLog:
        log = self._checkpoints.log
        try:
            if self.is_new:
                make_folder(self.path)
            log.open("ab").close()
            return RunLog(
                log, clock, keep=self._begin if self.is_new else self._find_last_checkpoint
            )
        except BlockingIOError:
            raise InputError(
                "is being written by another process: wait for it, or stop it", path=log
            ) from None
        except OSError as error:
            raise _unwritable(self.path, error) from None

    @contextmanager
    def _recording(self, clock: SimulatedClock) -> Iterator[None]:
        """Record prompts and replies, if the run asks for it."""
        if not self._keeps_prompts:
            yield
            return

        path = self.path / PROMPTS_NAME
        go_on = None if self._checkpoint is None else self._checkpoint.prompts
        try:
            if go_on is None and path.exists():
                _set_prompts_aside(path, is_damaged=bool(self.faults))
            self.prompts = PromptLog(path, clock, go_on=go_on)
        except FileNotFoundError:
            raise InputError("is missing: restore it, then resume the run", path=path) from None
        except OSError as error:
            raise _unwritable(path, error) from None

        with self.prompts:
            yield

    def _begin(self) -> int:
        """Write the run's configuration, and return the length of its log."""
        _require_free(self.path)
        self._write_summary({})
        return 0

    def _find_last_checkpoint(self) -> int:
        """Return the length of the log up to the checkpoint from which the run continues."""
        summary = read_summary(self.path)
        if _RESULTS in summary:
            raise InputError("was just completed by another process", path=self.path)
        self._checkpoint, self.faults = self._checkpoints.newest_sound()
        if not self._is_repeatable:
            kept = 0 if self._checkpoint is None else self._checkpoint.log_bytes
            self.unfinished = UnfinishedAnswers.behind(self._checkpoints.log, kept)
        begun = summary if self._checkpoint is None else {"config": self._checkpoint.config}
        if begun["config"] != self._config:
            problem = "has changed since the run began: restore it"
            raise InputError(problem, path=self.path / SUMMARY_NAME, field="config")
        if self._checkpoint is None:
            self._set_log_aside()
            return 0

        return self._checkpoint.log_bytes

    def _set_log_aside(self) -> None:
        """Keep a copy of a log that fits no checkpoint, if a model's answers are in it."""
        log = self._checkpoints.log
        if self.faults and log.stat().st_size and not self._is_repeatable:
            aside = _free_name(log.with_name(f"damaged_{log.name}"))
            with log.open("rb") as damaged, replacing(aside) as copy:
                copyfileobj(damaged, copy)

            self.faults.append(f"{log}: fits no checkpoint, so it is kept as {aside.name}")

    def _holds_answers(self) -> bool:
        """Return whether log or prompts hold an answer of a model, which somebody has paid for."""
        prompts = self.path / PROMPTS_NAME
        if prompts.exists() and any(True for _ in read_prompts(prompts, on_fault=lambda _: None)):
            return True

        events = (
            line for block in read_blocks(self._checkpoints.log) for line in block.data.splitlines()
        )
        return any(orjson.loads(line).get("source") == "model" for line in events)

    def _opened(self) -> RunLog:
        if self._log is None:
            raise SimulationError(
                f"{self.path}: open the folder with writing() before keeping anything"
            )
        return self._log

    def _write_summary(self, outcome: Mapping[str, Any]) -> None:
        told = describe_run(self._config, outcome, self._charts)
        text = json.dumps(told, indent=2, allow_nan=False) + "\n"
        write_durably(self.path / SUMMARY_NAME, text.encode())


def problem_of_version(summary: Mapping[str, Any]) -> str | None:
    """Return why this version of prism does not resume a run, or None if it does."""
    begun_by = summary["prism"]
    if begun_by == __version__:
        return None

    return (
        f"was begun by prism {begun_by}, and this is {__version__}, which may not write the same "
        f"bytes: resume it with prism {begun_by}"
    )


def is_begun(folder: Path) -> bool:
    """Return whether there is a run in a folder that can be resumed."""
    return (folder / SUMMARY_NAME).exists()


def _set_prompts_aside(path: Path, *, is_damaged: bool) -> None:
    """Make room for the prompts of a run that begins again."""
    # the prompts are asked again, unless a checkpoint was damaged
    if is_damaged:
        path.replace(_free_name(path.with_name(f"damaged_{PROMPTS_NAME}")))
    else:
        path.unlink()


def _forget(folder: Path) -> None:
    memories = folder.glob("memory*.*")
    for path in (*(folder / name for name in (*LOG_NAMES, SUMMARY_NAME, PROMPTS_NAME)), *memories):
        path.unlink(missing_ok=True)
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
        summary = parse_json(file.read_bytes().decode(), path=file)
    except FileNotFoundError:
        raise _no_run(path) from None
    except NotADirectoryError:
        raise InputError("is a file: name the folder of a run", path=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None
    except InputError as error:
        problem = f"is damaged: it {error.problem}"
        raise InputError(problem, path=file, line=error.line, field=error.field) from None
    except UnicodeDecodeError:
        raise InputError(
            "is damaged: it is not valid JSON, as it is not UTF-8", path=file
        ) from None

    if not isinstance(summary, dict):
        raise InputError("is damaged: it must hold a JSON object", path=file)

    _require_parts(summary, file)
    return summary


def _require_parts(summary: Mapping[str, Any], file: Path) -> None:
    # only some worlds have charts to tell, and results exist once the run is complete
    for name, kind in {**_SUMMARY_KINDS, **_LATER_KINDS}.items():
        missing = name not in summary and name in _SUMMARY_KINDS
        if missing or type(summary.get(name, kind())) is not kind:
            raise InputError("is missing, or not what prism writes", path=file, field=name)


def _no_run(path: Path) -> InputError:
    if not path.exists():
        return InputError("there is no such folder", path=path)
    if below := sorted(each.parent.name for each in path.glob(f"*/{SUMMARY_NAME}")):
        listed = ", ".join(below[:_MOST_NAMED]) + ", ..." * (len(below) > _MOST_NAMED)
        problem = f"holds several runs, and is none itself: name one of them ({listed})"
        return InputError(problem, path=path)

    lost = "it is missing, and no run can be resumed without it: begin a new run in another folder"
    hint = lost if (path / FOLDER_NAME).exists() else "begin one there"
    return InputError(f"holds no run to resume (no {SUMMARY_NAME}): {hint}", path=path)


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

    # reruns and batches write their own files before the run begins
    require_nothing_else(path, own=(*_OWN, RERUN_NAME, TRACEBACK_NAME))


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
        listed = ", ".join(others[:_MOST_NAMED]) + ", ..." * (len(others) > _MOST_NAMED)
        problem = f"holds other files ({listed}): choose an empty folder, or a new one"
        raise InputError(problem, path=path)


def _require_writable(path: Path) -> None:
    # check the nearest existing folder before anything is computed
    nearest = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise InputError(f"cannot be created: {nearest} is a file, not a folder", path=path)
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"cannot be written to: permission denied for {nearest}", path=path)


def _free_name(path: Path) -> Path:
    """Return an unused name, so that no log that was set aside earlier is overwritten."""
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{number}")

    return free


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written to: {error.strerror}", path=path)


_OWN = (*LOG_NAMES, SUMMARY_NAME, FOLDER_NAME, PROMPTS_NAME, DOCUMENTS_NAME)


def refuse_own_file(out: Path, reads: Iterable[Path] = ()) -> None:
    """Refuse to write to a file that is read, or that belongs to a run, under any name.

    Args:
        out: The file to write to.
        reads: The files, and folders of runs, that are read.

    Raises:
        InputError: If it is one of them.
    """
    for read in reads:
        if any(_is_same(out, found) for found in _files_of(read)):
            problem = f"is read by this command ({read}): name another file to write to"
            raise InputError(problem, path=out)

    place = Path(os.path.realpath(out))
    if _belongs_to_a_run(place):
        raise InputError("belongs to a run: name another file to write to", path=out)


def _files_of(read: Path) -> Iterator[Path]:
    if not read.is_dir():
        yield read
        return

    yield from (read / name for name in _OWN)
    yield from read.glob(f"{FOLDER_NAME}/*")
    yield from read.glob(f"{ASIDE_NAME}*")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return False


def _belongs_to_a_run(place: Path) -> bool:
    folder = place.parent
    if folder.name == FOLDER_NAME and _holds_a_run(folder.parent):
        return True

    is_own = place.name in _OWN or place.name.startswith(ASIDE_NAME)
    return is_own and _holds_a_run(folder)


def _holds_a_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in (*LOG_NAMES, SUMMARY_NAME))
