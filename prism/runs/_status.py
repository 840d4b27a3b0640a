"""How far runs are, seen from outside: by another process, meanwhile or afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import orjson

from prism.errors import InputError
from prism.runlog._reader import LOG_NAME, locate_log
from prism.runlog._writer import is_being_written
from prism.runs._checkpoints import FOLDER_NAME
from prism.runs._folder import SUMMARY_NAME, read_summary
from prism.runs._heartbeat import HEARTBEAT_NAME, SECONDS_BETWEEN, Heartbeat
from prism.telemetry.events import RUN_ENDED

RunState = Literal["running", "stopped", "complete", "not begun", "damaged"]

_MARKS = (LOG_NAME, f"{LOG_NAME}.gz", SUMMARY_NAME)
_DEEPEST = 4
_TAIL_BYTES = 64 << 10
_ALIVE_SECONDS = 5 * SECONDS_BETWEEN


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How far a run is.

    Args:
        path: Its folder, or its log where there is no more.
        state: ``running`` if a process is writing its log, ``complete``, ``stopped`` in between,
            ``not begun`` if nothing but an empty log is there, ``damaged`` if it cannot be told.
        round: Round that it has come to, counted from 1; None if that is not known.
        tick: Tick of that round.
        rounds: Number of its rounds.
        ticks_per_round: Ticks of each round.
        questions: Questions that it has put and that are not answered yet; None if it is not
            running, or does not say.
        rate: Ticks in a second (rounds in a second if the run has no ticks), since it began or was
            resumed; None if it is not running, or has not come far enough.
        seconds_left: Seconds until its end at that rate.
        problem: What is damaged, if something is.
        spent: What its model has cost so far: ``calls``, ``tokens`` and, where agents have models
            of their own, ``by_model``; None if none is asked, or the run is neither running nor
            complete.
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


def run_status(path: Path | str) -> RunStatus:
    """Say how far a run is, without disturbing it.

    A run is alive as long as a process has its log locked, however old its last sign of life is.
    Where files cannot be locked, as on Windows, it is alive if it gave one within five seconds.

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

    Hidden folders and symbolic links are passed over, and so is what is inside a run.
    """
    return sorted(_runs_below(Path(folder), _DEEPEST))


def is_run(folder: Path) -> bool:
    """Return True for a folder with a log or a summary in it."""
    try:
        return any((folder / name).is_file() for name in _MARKS)
    except OSError:  # a folder of somebody else's
        return False


def _of_process(
    given: Path, log: Path, folder: Path | None, summary: Mapping[str, Any]
) -> RunStatus:
    last = _last_event(log)
    heartbeat = None if folder is None else Heartbeat.read(folder)
    status = _planned(RunStatus(given, _state(log, folder, summary, last)), summary)
    status = replace(status, round=_count(last, "round"), tick=_count(last, "tick"))
    if status.state == "complete":
        return replace(status, spent=_spent(summary.get("spent")))
    if heartbeat is None or status.state == "not begun":
        return status

    # A log is written some way behind; after a resume it is ahead of what the run has come to.
    status = replace(
        status,
        round=heartbeat.round,
        tick=heartbeat.tick,
        rounds=heartbeat.rounds,
        ticks_per_round=heartbeat.ticks_per_round,
    )

    return _timed(status, heartbeat) if status.state == "running" else status


def _timed(status: RunStatus, heartbeat: Heartbeat) -> RunStatus:
    """Add what is known only while a run goes on."""
    status = replace(status, questions=heartbeat.questions, spent=_spent(heartbeat.spent))
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
    # The log of a loop of one's own has no summary, but an end.
    if not summary and last.get("event") == RUN_ENDED:
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
    if not (folder / SUMMARY_NAME).exists() and not (folder / FOLDER_NAME).exists():
        return {}
    return read_summary(folder)


def _planned(status: RunStatus, summary: Mapping[str, Any]) -> RunStatus:
    config = summary.get("config", {})
    # a turn of a workflow is a round
    rounds = _count(config, "rounds") or _count(config, "turns")

    return replace(status, rounds=rounds, ticks_per_round=_count(config, "ticks_per_round"))


def _spent(found: Any) -> Mapping[str, Any] | None:
    """Return what was spent, if it is told as prism tells it."""
    spent = found if isinstance(found, dict) else {}
    by_model = spent.get("by_model", {})
    groups = list(by_model.values()) if isinstance(by_model, dict) else [None]
    is_whole = _has_counts(spent, "calls", "tokens") and all(
        _has_counts(group, "calls", "input_tokens", "output_tokens") for group in groups
    )

    return spent if is_whole else None


def _has_counts(found: Any, *names: str) -> bool:
    return isinstance(found, dict) and all(_count(found, name) is not None for name in names)


def _count(found: Mapping[str, Any], name: str) -> int | None:
    value = found.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _last_event(log: Path) -> dict[str, Any]:
    """Return the last whole event of a log, or nothing if it is compressed or has none."""
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


def _runs_below(folder: Path, levels: int) -> Iterator[Path]:
    if is_run(folder):
        yield folder
        return
    if not levels:
        return

    try:
        inside = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:  # a folder of somebody else's
        return

    for entry in inside:
        if not entry.name.startswith("."):
            yield from _runs_below(Path(entry.path), levels - 1)
