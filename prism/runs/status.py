"""The progress of runs, as seen by another process, during a run or afterwards."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from prism.errors import InputError
from prism.files.durable import is_locked
from prism.runlog.reader import (
    ANSWERS_NAME,
    LOG_NAMES,
    locate_log,
    read_journal,
    read_line,
    unreadable,
)
from prism.runs._models import Spent, priced
from prism.runs.folder import STOPPED, SUMMARY_NAME, is_begun, read_summary
from prism.telemetry.events import RUN_ENDED

RunState = Literal["running", "stopped", "complete", "not begun", "damaged"]
"""Status of a run, as another process sees it."""

_RUN_FILES = {*LOG_NAMES, SUMMARY_NAME}
_TAIL_BYTES = 64 << 10
_NO_REASON = "its process ended without a reason: it was killed, or the machine stopped"


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
        problem: What is damaged, or why the run stopped.
        spent: The use of its model by a run that is complete, as in ``run.json``.
    """

    path: Path
    state: RunState
    round: int | None = None
    tick: int | None = None
    rounds: int | None = None
    ticks_per_round: int | None = None
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
    path = Path(path)
    log = locate_log(path)
    is_kept = is_begun(log.parent) and (path.is_dir() or log.name in LOG_NAMES)
    try:
        summary = read_summary(log.parent) if is_kept else {}
    except InputError as error:
        return RunStatus(path, "damaged", problem=str(error))
    try:
        last = _last_event(log)
        state = _state(log, summary, last)
    except OSError as error:
        raise unreadable(log, error) from None
    except EOFError:
        raise InputError("is cut off", path=log) from None

    config = summary.get("config", {})
    ended = last.get("error") if last.get("event") == RUN_ENDED else summary.get(STOPPED)
    return RunStatus(
        path,
        state,
        _count(last, "round"),
        _count(last, "tick"),
        _count(config, "rounds"),
        _count(config, "ticks_per_round"),
        (ended or _NO_REASON) if state == "stopped" else None,
        summary.get("spent"),
    )


def spent_in(run: Path) -> dict[str, Any] | None:
    """Return what a run has spent until now, by its journal; None if it asked nobody."""
    spent, answers = Spent(), run / ANSWERS_NAME
    for line in read_journal(answers) if answers.exists() else ():
        spent.add(line)
    return priced(spent) if spent.calls else None


def find_runs(folder: Path | str) -> list[Path]:
    """Return the folders of runs in a folder and below it, by name.

    Hidden folders and symbolic links are skipped, and so is everything inside a run.
    """
    folders = []
    for name, below, files in os.walk(folder):
        if not _RUN_FILES.isdisjoint(files):
            folders.append(Path(name))
            below.clear()
        below[:] = [each for each in below if not each.startswith(".")]
    return sorted(folders)


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
    with gzip.open(log) if log.suffix == ".gz" else log.open("rb") as file:
        if file.read(1) not in (b"", b"{", b"\x00"):
            raise InputError("is no log of a run: give its folder or its log", path=log)
        file.seek(max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
        lines = file.read().split(b"\n")
    events = map(read_line, reversed(lines))
    return next((event for event in events if event is not None), {})
