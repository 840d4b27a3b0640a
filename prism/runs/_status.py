"""The progress of runs, as seen by another process, during a run or afterwards."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, Literal

import orjson

from prism.errors import InputError
from prism.files import parse_json
from prism.runlog import SimulatedClock
from prism.runlog._reader import LOG_NAME, LOG_NAMES, locate_log, read_blocks
from prism.runlog._writer import is_being_written
from prism.runs._folder import SUMMARY_NAME, problem_of_version, read_summary
from prism.runs._runnable import Runnable
from prism.telemetry.events import RUN_ENDED

RunState = Literal["running", "stopped", "complete", "not begun", "damaged"]

HEARTBEAT_NAME = "heartbeat.json"
SECONDS_BETWEEN = 1.0
_MOST_BYTES = 64 << 10
_MOST = 2**53
_OF_MODELS = ("spent", "asking")

_MARKS = (*LOG_NAMES, SUMMARY_NAME)
_DEEPEST = 4
_TAIL_BYTES = 64 << 10
_ALIVE_SECONDS = 5 * SECONDS_BETWEEN


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The progress of a run.

    Args:
        path: Its folder, or its log if there is only a log.
        state: ``running`` if a process is writing its log, ``complete``, ``stopped`` if it is
            neither, ``not begun`` if there is only an empty log, ``damaged`` if its state is
            unknown.
        round: The current round, counted from 1; None if unknown.
        tick: Tick of that round.
        rounds: Number of its rounds.
        ticks_per_round: Ticks of each round.
        questions: Open questions; None if it is not running, or unknown.
        rate: Ticks per second (rounds per second if the run has no ticks) since it began or was
            resumed; None if it is not running, or has only just begun.
        seconds_left: Seconds until its end at that rate.
        problem: What is damaged, why this version of prism cannot resume the run, or the exception
            that ended an application's own loop.
        spent: The use of its model so far: ``calls``, ``tokens`` and, if agents have different
            models, ``by_model``, the ``trials`` of servers before the run, by model, and what was
            spent ``earlier``, before it was resumed, on trials and lost answers, with an estimate
            of its ``money``; None if none is asked, or the run is neither running nor complete.
        asking: The open requests to its model: ``open`` (``text``, ``model`` and ``seconds`` of the
            requests that have waited longest), ``hosts`` (``address``, ``in_flight`` and ``limit``
            of each) and ``waiting`` (requests that have no slot); None if it is not running.
    """

    path: Path
    state: RunState
    round: int | None = None
    tick: int | None = None
    rounds: int | None = None
    ticks_per_round: int | None = None
    questions: int | None = None
    rate: float | None = None
    seconds_left: float | None = None
    problem: str | None = None
    spent: Mapping[str, Any] | None = None
    asking: Mapping[str, Any] | None = None


def run_status(path: Path | str) -> RunStatus:
    """Return the progress of a run, without disturbing it.

    A run is alive as long as a process has its log locked, however old its last heartbeat is. If
    files cannot be locked, as on Windows, it is alive if its last heartbeat is at most five seconds
    old.

    Args:
        path: The run's folder, or its log.

    Raises:
        InputError: If there is no run.
    """
    given = Path(path)
    log = locate_log(given)
    folder = log.parent if given.is_dir() or log.name.startswith(LOG_NAME) else None
    try:
        summary = {} if folder is None else _summary(folder)
    except InputError as error:
        return RunStatus(given, "damaged", problem=str(error))

    try:
        found = _of_process(given, log, folder, summary)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=log) from None

    return found


def find_runs(folder: Path | str) -> list[Path]:
    """Return the folders of runs in a folder and up to four levels below it, by name.

    Hidden folders and symbolic links are skipped, and so is everything inside a run.
    """
    return sorted(_runs_below(Path(folder), _DEEPEST))


def is_run(folder: Path) -> bool:
    """Return True for a folder with a log or a summary in it."""
    try:
        return any((folder / name).is_file() for name in _MARKS)
    except OSError:  # a folder of another user
        return False


def _of_process(
    given: Path, log: Path, folder: Path | None, summary: Mapping[str, Any]
) -> RunStatus:
    last = _last_event(log) or _nothing_in(log)
    heartbeat = None if folder is None else Heartbeat.read(folder)
    status = _planned(RunStatus(given, _state(log, folder, summary, last)), summary)
    status = replace(status, round=_count(last, "round"), tick=_count(last, "tick"))
    if status.state == "complete":
        return replace(status, spent=_spent(summary.get("spent")))
    if status.state == "stopped":
        error = last.get("error") if last.get("event") == RUN_ENDED else None
        problem = problem_of_version(summary) if summary else error
        status = replace(status, problem=problem)
    if heartbeat is None or status.state == "not begun":
        return status

    # A log lags behind the run; after a resume, it is ahead of it.
    status = replace(
        status,
        round=heartbeat.round,
        tick=heartbeat.tick,
        rounds=heartbeat.rounds,
        ticks_per_round=heartbeat.ticks_per_round,
    )

    return _timed(status, heartbeat) if status.state == "running" else status


def _timed(status: RunStatus, heartbeat: Heartbeat) -> RunStatus:
    """Add what is known only during a run."""
    status = replace(
        status,
        questions=heartbeat.questions,
        spent=_spent(heartbeat.spent),
        asking=_asking(heartbeat.asking),
    )
    if not heartbeat.done or not heartbeat.seconds:
        return status

    rate = heartbeat.done / heartbeat.seconds
    ticks, past = heartbeat.ticks_per_round or 1, max(heartbeat.round - 1, 0)
    come_to = past * ticks + (heartbeat.tick if heartbeat.ticks_per_round else 0)
    left = max(heartbeat.rounds * ticks - come_to, 0)

    return replace(status, rate=rate, seconds_left=left / rate)


def _state(
    log: Path, folder: Path | None, summary: Mapping[str, Any], last: Mapping[str, Any]
) -> RunState:
    if "results" in summary:
        return "complete"
    if _is_alive(log, folder):
        return "running"
    # The log of an application's own loop has no summary, but an end.
    if not summary and last.get("event") == RUN_ENDED and "error" not in last:
        return "complete"

    return "stopped" if summary or last or log.stat().st_size else "not begun"


def _is_alive(log: Path, folder: Path | None) -> bool:
    is_locked = is_being_written(log)
    if is_locked is not None or folder is None:
        return bool(is_locked)

    try:
        age = time.time() - (folder / HEARTBEAT_NAME).stat().st_mtime
    except FileNotFoundError:
        return False

    return age < _ALIVE_SECONDS


def _summary(folder: Path) -> dict[str, Any]:
    if not (folder / SUMMARY_NAME).exists():
        return {}
    return read_summary(folder)


def _planned(status: RunStatus, summary: Mapping[str, Any]) -> RunStatus:
    config = summary.get("config", {})
    # a turn of a workflow is a round
    rounds = _count(config, "rounds") or _count(config, "turns")

    return replace(status, rounds=rounds, ticks_per_round=_count(config, "ticks_per_round"))


def _spent(found: Any) -> Mapping[str, Any] | None:
    """Return the spending, if it has the form that prism writes."""
    spent = found if isinstance(found, dict) else {}
    parts = [spent.get(name, {}) for name in ("by_model", "trials")]
    groups = [each for part in parts for each in (part.values() if isinstance(part, dict) else [0])]
    is_whole = _has_counts(spent, "calls", "tokens") and all(
        _has_counts(group, "calls", "input_tokens", "output_tokens") for group in groups
    )

    return spent if is_whole else None


def _asking(found: Any) -> Mapping[str, Any] | None:
    """Return the open requests, if they have the form that prism writes."""
    told = found if isinstance(found, dict) else {}
    requests, hosts = told.get("open"), told.get("hosts")
    if not isinstance(requests, list) or not isinstance(hosts, list):
        return None

    is_whole = (
        _has_counts(told, "waiting")
        and all(map(_is_request, requests))
        and all(_has_counts(each, "in_flight", "limit") for each in hosts)
    )

    return told if is_whole else None


def _is_request(found: Any) -> bool:
    told = found if isinstance(found, dict) else {}
    return isinstance(told.get("text"), str) and isinstance(told.get("seconds"), int | float)


def _has_counts(found: Any, *names: str) -> bool:
    return isinstance(found, dict) and all(_count(found, name) is not None for name in names)


def _count(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _last_event(log: Path) -> dict[str, Any]:
    """Return the last complete event of a log, or nothing if it has none."""
    if log.suffix != ".jsonl":
        return _last_packed(log)

    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - _TAIL_BYTES, 0))
        lines = file.read().split(b"\n")

    for line in reversed(lines):
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(event, dict):
            return event

    return {}


def _nothing_in(log: Path) -> dict[str, Any]:
    """Return no event of a file that has none yet, but begins as a log does, plain or packed.

    Raises:
        InputError: If it begins otherwise, so that it is no log.
    """
    with log.open("rb") as file:
        if file.read(1) not in (b"", b"{", b"\x1f"):
            raise InputError("is no log of a run: give its folder or its log", path=log)

    return {}


def _last_packed(log: Path) -> dict[str, Any]:
    data = b""
    for block in read_blocks(log):
        data = block.data or data
    lines = data.splitlines()
    try:
        found = orjson.loads(lines[-1]) if lines else {}
    except orjson.JSONDecodeError:
        return {}

    return found if isinstance(found, dict) else {}


def _runs_below(folder: Path, levels: int) -> Iterator[Path]:
    if is_run(folder):
        yield folder
        return
    if not levels:
        return

    try:
        inside = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:  # a folder of another user
        return

    for entry in inside:
        if not entry.name.startswith("."):
            yield from _runs_below(Path(entry.path), levels - 1)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The progress of a run a moment ago.

    Args:
        round: The current round, 0 before the first.
        rounds: Number of rounds.
        tick: Tick of the round.
        ticks_per_round: Ticks of each round; None if unknown.
        questions: Open questions; None if unknown.
        done: Ticks since this process began or resumed the run; rounds if the run has no ticks.
        seconds: Seconds since then.
        spent: The use of its model, in the form of ``run.json``; None if none is asked.
        asking: The open requests to its model, as in `RunStatus`; None if none is asked.
    """

    round: int
    rounds: int
    tick: int
    ticks_per_round: int | None
    questions: int | None
    done: int
    seconds: float
    spent: dict[str, Any] | None = None
    asking: dict[str, Any] | None = None

    @classmethod
    def read(cls, folder: Path) -> Heartbeat | None:
        """Return the heartbeat in a folder; None if there is none, or it is damaged."""
        try:
            with (folder / HEARTBEAT_NAME).open("rb") as file:
                found = parse_json(file.read(_MOST_BYTES).decode())
        except (OSError, UnicodeDecodeError, InputError):
            return None

        names = [field.name for field in fields(cls)]
        if not isinstance(found, dict) or {*found, *_OF_MODELS} != set(names):
            return None
        if not all(_fits(name, found.get(name)) for name in names):
            return None

        return cls(**found)


@contextmanager
def beating(
    folder: Path,
    run: Runnable[Any],
    clock: SimulatedClock,
    warn: Callable[[str], None],
    of_models: Callable[[], Mapping[str, Any]] = dict,
) -> Iterator[None]:
    """Keep a heartbeat in a folder inside the block, and remove it at the end.

    A separate thread writes it, since a model may take minutes for one answer. It only reads from
    the run, and its failures do not stop the run.

    Args:
        folder: The run's folder.
        run: The run; its ``ticks_per_round`` and ``open_questions`` are included if it has them.
        clock: The run's clock.
        warn: Called if the file cannot be written.
        of_models: Returns the use of its models, and their open requests: ``spent`` and ``asking``.
    """
    heart = _Heart(folder / HEARTBEAT_NAME, run, clock, of_models)
    heart.start()
    try:
        yield
    finally:
        heart.stop()
        if heart.fault is not None:
            warn(
                f"{heart.path}: cannot be written ({heart.fault}), so prism status cannot follow "
                "the run"
            )


def remove_heartbeat(folder: Path) -> None:
    """Remove the heartbeat of a run that has ended.

    Raises:
        OSError: If it cannot be written.
    """
    path = folder / HEARTBEAT_NAME
    path.unlink(missing_ok=True)
    _unfinished(path).unlink(missing_ok=True)


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


class _Heart:
    def __init__(
        self,
        path: Path,
        run: Runnable[Any],
        clock: SimulatedClock,
        of_models: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._of_models = of_models
        self.path = path
        self.fault: str | None = None
        self._unfinished = _unfinished(path)
        self._run = run
        self._clock = clock
        self._ticks: int | None = getattr(run, "ticks_per_round", None)
        self._began = monotonic()
        self._stopped = Event()
        self._thread = Thread(target=self._beat, name="prism-heartbeat", daemon=True)

    def start(self) -> None:
        self._write()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        try:
            remove_heartbeat(self.path.parent)
        except OSError as error:
            self.fault = error.strerror

    def _beat(self) -> None:
        while self.fault is None and not self._stopped.wait(SECONDS_BETWEEN):
            self._write()

    def _write(self) -> None:
        # Not durable, since after a crash of the machine, the log shows where the run was.
        try:
            # it may hold prompts, which are private
            self._unfinished.touch(0o600)
            self._unfinished.write_text(json.dumps(asdict(self._look())), encoding="utf-8")
            self._unfinished.replace(self.path)
        except OSError as error:
            self.fault = error.strerror

    def _look(self) -> Heartbeat:
        now = self._clock.moment
        rounds_before = max(now.round - 1, 0)
        done = rounds_before if self._ticks is None else rounds_before * self._ticks + now.tick

        return Heartbeat(
            round=now.round,
            rounds=self._run.rounds,
            tick=now.tick,
            ticks_per_round=self._ticks,
            questions=getattr(self._run, "open_questions", None),
            done=max(done, 0),
            seconds=round(monotonic() - self._began, 3),
            **self._of_models(),
        )


def _fits(name: str, value: Any) -> bool:
    if value is None:
        return name in ("ticks_per_round", "questions", *_OF_MODELS)
    if name in _OF_MODELS:
        return isinstance(value, dict)
    return type(value) in ((int, float) if name == "seconds" else (int,)) and 0 <= value < _MOST
