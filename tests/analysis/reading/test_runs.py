"""A file holds one run: what begins and ends it, and what happens with a second."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism.analysis import Note, read_log
from tests.kit.tables import events_of

WriteLog = Callable[..., Path]


def kinds(notes: tuple[Note, ...]) -> list[str]:
    return [note.kind for note in notes]


LAST = "the last run begins here: an earlier run before it in this file, left out (--all-runs)"


@pytest.mark.parametrize(
    ("first", "second", "read", "notes"),
    [
        (1767259800.5, 1767259860, True, []),
        ("2026-01-01T10:30:00.5+01:00", "2026-01-01T09:31:00Z", True, []),
        ("2026-01-01T09:30:00.5", "2026-01-01 09:31:00", True, []),
        ("Thu Jan 1", "Fri Jan 2", False, []),
    ],
)
def test_times_of_other_forms_are_read_or_noted(
    first: Any,
    second: Any,
    read: bool,
    notes: list[str],
    write_log: WriteLog,
    make: SimpleNamespace,
) -> None:
    """A configuration of structlog decides how its log writes them."""
    lines = [{**make.move("x", "a", "b"), "timestamp": time} for time in (first, second)]
    logs = read_log(write_log(lines))
    times = [time for (time,) in logs.sql("select timestamp from events order by line").fetchall()]
    half, whole = datetime(2026, 1, 1, 9, 30, 0, 500_000), datetime(2026, 1, 1, 9, 31)
    assert times == ([half, whole] if read else [None, None])
    assert kinds(logs.notes) == notes


@pytest.mark.parametrize("start", ["start", "open"])
def test_of_several_runs_the_last_is_read(
    start: str, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Those that follow each other in a file are counted in a note that names the line."""
    order = [f"{start} 1", "join x", "move x", "end 1", f"{start} 2", "join y", "move y", "end 2"]
    log = read_log(write_log([written(what, make) for what in order], "mixed.jsonl"))
    assert [(run.label, run.ended) for run in log.runs] == [("mixed", True)]
    assert [(note.line, note.message) for note in log.notes] == [(5, LAST)]
    assert events_of(log, "statechart.transition")["agent_id"].to_list() == ["y"]


@pytest.mark.parametrize("crashed", [False, True])
def test_all_runs_of_a_file_are_one_if_asked(
    crashed: bool, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Whoever was there stays there when a service restarts, and nothing counts twice."""
    order = ["open 1", "join x", "join z", "move x", "end 1", "open 2", "join x", "join y", "end 2"]
    lines = [written(what, make) for what in order[: len(order) - crashed]]
    log = read_log(write_log(lines), all_runs=True)
    assert [(run.started, run.ended) for run in log.runs] == [(True, not crashed)]
    assert "earlier_runs" not in kinds(log.notes)
    assert [(row["agent_id"], row["transitions"]) for row in log.rows("agents")] == [
        ("x", 1),
        ("y", 0),
        ("z", 0),
    ]
    assert [row["agents"] for row in log.rows("states")][-1:] == [3]
    ((_, visits),) = log.sql("select state, count(*) from visits group by state").fetchall()
    assert visits == 4


def written(what: str, make: SimpleNamespace) -> dict[str, Any]:
    """Return the event that two words stand for."""
    kind, name = what.split()
    if kind == "start":
        return dict(make.started(seed=int(name)))
    if kind == "open":
        return dict(make.event("run.started", schema=1))
    if kind == "join":
        return dict(make.joined(name))
    return dict(
        make.move(name, "idle", "idle")
        if kind == "move"
        else make.event("run.ended", posts=int(name))
    )
