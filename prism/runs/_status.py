"""The progress of runs, as seen by another process, during a run or afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import orjson

from prism.errors import InputError
from prism.files._durable import is_locked
from prism.runlog._reader import LOG_NAMES, locate_log, read_line, read_lines
from prism.runs._folder import SUMMARY_NAME, read_summary
from prism.telemetry.events import RUN_ENDED

RunState = Literal["running", "stopped", "complete", "not begun", "damaged"]

HEARTBEAT_NAME = "heartbeat.json"
_SECONDS_BETWEEN = 1.0
_MARKS = (*LOG_NAMES, SUMMARY_NAME)
_DEEPEST = 4
_TAIL_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The progress of a run.

    Args:
        path: Its folder, or its log if there is only a log.
        state: ``running`` if a process is writing its log, ``complete``, ``stopped`` if it is
            neither, ``not begun`` if there is only an empty log, ``damaged`` if its state is
            unknown.
        round: The last round in its log, counted from 1; None if unknown.
        tick: Tick of that round.
        rounds: Number of its rounds.
        ticks_per_round: Ticks of each round.
        rate: Rounds a second since it began or, resumed, came to where it had been stopped; None
            if it is not running, or no round has ended since then.
        seconds_left: Seconds until its end at that rate.
        problem: What is damaged, or the exception that ended an application's own loop.
        spent: The use of its model up to the last round that has ended: ``calls``, ``tokens`` and,
            with prices, ``money``, ``by_model`` as well; None if none is asked, or the run has
            stopped.
    """

    path: Path
    state: RunState
    round: int | None = None
    tick: int | None = None
    rounds: int | None = None
    ticks_per_round: int | None = None
    rate: float | None = None
    seconds_left: float | None = None
    problem: str | None = None
    spent: Mapping[str, Any] | None = None


def run_status(path: Path | str) -> RunStatus:
    """Return the progress of a run, without disturbing it.

    A run is alive as long as a process has its log locked.

    Args:
        path: The run's folder, or its log.

    Raises:
        InputError: If there is no run.
    """
    given = Path(path)
    log = locate_log(given)
    is_kept = (given.is_dir() or log.name in LOG_NAMES) and (log.parent / SUMMARY_NAME).exists()
    try:
        summary = read_summary(log.parent) if is_kept else {}
    except InputError as error:
        return RunStatus(given, "damaged", problem=str(error))
    try:
        last = _last_event(log)
        state = _state(log, summary, last)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=log) from None

    heartbeat = read_heartbeat(log.parent) if state == "running" else {}
    config = {**summary.get("config", {}), **heartbeat}
    # a turn of an agent in YAML is a round
    rounds = _count(config, "rounds") or _count(config, "turns")
    at = (_count(last, "round"), _count(last, "tick"))
    status = RunStatus(given, state, *at, rounds, _count(config, "ticks_per_round"))
    if state == "complete":
        return replace(status, spent=summary.get("spent"))
    if state == "stopped":
        return replace(
            status, problem=last.get("error") if last.get("event") == RUN_ENDED else None
        )
    status = replace(status, spent=heartbeat.get("spent"))
    if not (heartbeat.get("done") and rounds):
        return status
    rate = heartbeat["done"] / heartbeat["seconds"]
    return replace(status, rate=rate, seconds_left=max(rounds - heartbeat["ended"], 0) / rate)


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
    elif levels:
        with suppress(OSError):  # a folder of another user
            for entry in [*os.scandir(folder)]:
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    yield from _runs_below(Path(entry.path), levels - 1)


def _state(log: Path, summary: Mapping[str, Any], last: Mapping[str, Any]) -> RunState:
    if "results" in summary:
        return "complete"
    with log.open("rb") as file:
        if is_locked(file):
            return "running"
    # the log of an application's own loop has no summary, but an end
    if not summary and last.get("event") == RUN_ENDED and "error" not in last:
        return "complete"
    return "stopped" if summary or last or log.stat().st_size else "not begun"


def _count(event: Mapping[str, Any], name: str) -> int | None:
    value = event.get(name)
    return value if type(value) is int else None


def _last_event(log: Path) -> dict[str, Any]:
    """Return the last complete event of a log, or nothing if it has none.

    Raises:
        InputError: If the file is no log.
    """
    if log.suffix == ".gz":
        lines = [line for _, line in read_lines(log, str)]
    else:
        with log.open("rb") as file:
            is_log = file.read(1) in (b"", b"{", b"\x00")
            file.seek(max(log.stat().st_size - _TAIL_BYTES, 0))
            lines = file.read().split(b"\n")
        if not is_log:
            raise InputError("is no log of a run: give its folder or its log", path=log)
    events = map(read_line, reversed(lines))
    return next((event for event in events if event is not None), {})


# What a run tells about itself


class Heartbeat:
    """A file in the folder of a run that tells others how far it is, until it ends.

    Args:
        folder: The run's folder.
        rounds: The number of its rounds.
        ticks_per_round: Ticks in a round, if it has any.
    """

    def __init__(self, folder: Path, rounds: int, ticks_per_round: int | None) -> None:
        self._path = folder / HEARTBEAT_NAME
        self._about = {"rounds": rounds, "ticks_per_round": ticks_per_round}
        self._began, self._wrote = monotonic(), 0.0
        self._skipped = 0

    def beat(
        self, ended: int, spent: Callable[[], Mapping[str, Any]], *, is_repeating: bool
    ) -> None:
        """Tell that a round has ended, not more often than once a second.

        Args:
            ended: How many rounds have ended.
            spent: Returns what has been spent.
            is_repeating: Whether the run only does again what it did before it was stopped.

        Raises:
            OSError: If it cannot be written.
        """
        now = monotonic()
        if is_repeating:
            self._began, self._skipped = now, ended
        if now - self._wrote < _SECONDS_BETWEEN:
            return
        self._wrote = now
        past = {"done": ended - self._skipped, "seconds": now - self._began}
        part = self._path.with_name(f".{self._path.name}.part")
        part.write_bytes(orjson.dumps({"ended": ended, **past, **self._about, **spent()}))
        part.replace(self._path)


def read_heartbeat(folder: Path) -> dict[str, Any]:
    """Return what a running run tells about itself; nothing if it is unknown.

    ``ended`` rounds have ended, ``done`` of them in the last ``seconds``.
    """
    with suppress(OSError, ValueError):
        found = orjson.loads((folder / HEARTBEAT_NAME).read_bytes())
        if isinstance(found, dict) and {"ended", "done", "seconds"} <= found.keys():
            return found
    return {}


def remove_heartbeat(folder: Path) -> None:
    """Remove the heartbeat of a run that has ended.

    Raises:
        OSError: If it cannot be written.
    """
    (folder / HEARTBEAT_NAME).unlink(missing_ok=True)
