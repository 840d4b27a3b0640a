"""The progress of runs, as seen by another process, during a run or afterwards."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any, Literal

import orjson

from prism.errors import InputError
from prism.runlog import SimulatedClock
from prism.runlog._prompts import read_line
from prism.runlog._reader import LOG_NAMES, locate_log, read_blocks
from prism.runlog._writer import is_being_written
from prism.runs._folder import SUMMARY_NAME, problem_of_version, read_summary
from prism.telemetry.events import RUN_ENDED

RunState = Literal["running", "stopped", "complete", "not begun", "damaged"]

HEARTBEAT_NAME = "heartbeat.json"
SECONDS_BETWEEN = 1.0
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
    folder = log.parent if given.is_dir() or log.name in LOG_NAMES else None
    try:
        is_kept = folder is not None and (folder / SUMMARY_NAME).exists()
        summary = read_summary(log.parent) if is_kept else {}
    except InputError as error:
        return RunStatus(given, "damaged", problem=str(error))
    try:
        last = _last_event(log)
        state = _state(log, folder, summary, last)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=log) from None

    config = summary.get("config", {})
    status = RunStatus(
        given,
        state,
        _count(last, "round"),
        _count(last, "tick"),
        # a turn of a workflow is a round
        _count(config, "rounds") or _count(config, "turns"),
        _count(config, "ticks_per_round"),
    )
    if state == "complete":
        return replace(status, spent=summary.get("spent"))
    if state == "stopped":
        raised = last.get("error") if last.get("event") == RUN_ENDED else None
        status = replace(status, problem=problem_of_version(summary) if summary else raised)
    heartbeat = {} if folder is None or state == "not begun" else read_heartbeat(folder)
    # a log lags behind the run; after a resume, it is ahead of it
    places = {name: heartbeat[name] for name in _PLACES if name in heartbeat}
    status = replace(status, **places)
    return _timed(status, heartbeat) if heartbeat and state == "running" else status


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


_PLACES = ("round", "tick", "rounds", "ticks_per_round")
_MEANWHILE = ("questions", "spent", "asking")


def _timed(status: RunStatus, heartbeat: Mapping[str, Any]) -> RunStatus:
    """Add what is known only during a run."""
    meanwhile: dict[str, Any] = {name: heartbeat.get(name) for name in _MEANWHILE}
    status = replace(status, **meanwhile)
    if not heartbeat["done"] or not heartbeat["seconds"]:
        return status

    rate = heartbeat["done"] / heartbeat["seconds"]
    ticks, past = heartbeat["ticks_per_round"] or 1, max(heartbeat["round"] - 1, 0)
    come_to = past * ticks + (heartbeat["tick"] if heartbeat["ticks_per_round"] else 0)
    left = max(heartbeat["rounds"] * ticks - come_to, 0)
    return replace(status, rate=rate, seconds_left=left / rate)


def _state(
    log: Path, folder: Path | None, summary: Mapping[str, Any], last: Mapping[str, Any]
) -> RunState:
    if "results" in summary:
        return "complete"
    if _is_alive(log, folder):
        return "running"
    # the log of an application's own loop has no summary, but an end
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


def _count(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if type(value) is int else None


def _last_event(log: Path) -> dict[str, Any]:
    """Return the last complete event of a log, or nothing if it has none.

    Raises:
        InputError: If the file is no log.
    """
    if log.suffix == ".gz":
        data = b"".join(block.data for block in read_blocks(log))[-_TAIL_BYTES:]
    else:
        with log.open("rb") as file:
            is_log = file.read(1) in (b"", b"{", b"\x00")
            file.seek(max(log.stat().st_size - _TAIL_BYTES, 0))
            data = file.read()
        if not is_log:
            raise InputError("is no log of a run: give its folder or its log", path=log)
    events = (read_line(line) for line in reversed(data.split(b"\n")))
    return next((event for event in events if event is not None), {})


def read_heartbeat(folder: Path) -> dict[str, Any]:
    """Return the progress of a run a moment ago; nothing if it is unknown.

    ``done`` are the ticks since the process began or resumed the run (rounds, if it has no ticks),
    and ``seconds`` the time since then. The other keys are those of `RunStatus`.
    """
    with suppress(OSError, ValueError):
        found = orjson.loads((folder / HEARTBEAT_NAME).read_bytes())
        if isinstance(found, dict) and {*_PLACES, "done", "seconds"} <= found.keys():
            return found
    return {}


@contextmanager
def beating(
    folder: Path,
    run: Any,
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
    path, stopped, began = folder / HEARTBEAT_NAME, Event(), monotonic()
    faults: list[str | None] = []

    def beat() -> None:
        try:
            told = {**_progress(run, clock, monotonic() - began), **of_models()}
            _unfinished(path).touch(0o600)  # it may hold prompts, which are private
            _unfinished(path).write_text(json.dumps(told), encoding="utf-8")
            _unfinished(path).replace(path)
        except OSError as error:
            faults.append(error.strerror)

    def beat_on() -> None:
        while not faults and not stopped.wait(SECONDS_BETWEEN):
            beat()

    beat()
    thread = Thread(target=beat_on, name="prism-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        try:
            remove_heartbeat(folder)
        except OSError as error:
            faults.append(error.strerror)
        if faults:
            warn(f"{path}: cannot be written ({faults[0]}), so prism status cannot follow the run")


def _progress(run: Any, clock: SimulatedClock, seconds: float) -> dict[str, Any]:
    now, ticks = clock.moment, getattr(run, "ticks_per_round", None)
    past = max(now.round - 1, 0)
    return {
        "round": now.round,
        "rounds": run.rounds,
        "tick": now.tick,
        "ticks_per_round": ticks,
        "questions": getattr(run, "open_questions", None),
        "done": past if ticks is None else past * ticks + now.tick,
        "seconds": round(seconds, 3),
    }


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
