"""A file holds one run: what begins and ends it, and what happens with a second."""

from datetime import datetime
from typing import Any

import pytest

from prism.analysis import Log
from tests.kit import make
from tests.kit.logs import LogOf

LAST = "the last run begins here: an earlier run before it in this file, left out (--all-runs)"
X, Y, Z = (make.joined(agent) for agent in "xyz")
ENDED = make.event("run.ended")
OPENED = make.event("run.started", schema=1)


def moved(agent: str) -> make.Event:
    """Return a transition that leads nowhere else."""
    return make.move(agent, "idle", "idle")


def runs_of(log: Log) -> list[tuple[bool, bool]]:
    """Return whether each run of a log was started and has ended."""
    return [(run.started, run.ended) for run in log.runs]


@pytest.mark.parametrize(
    ("first", "second", "is_read"),
    [
        (1767259800.5, 1767259860, True),
        ("2026-01-01T10:30:00.5+01:00", "2026-01-01T09:31:00Z", True),
        ("2026-01-01T09:30:00.5", "2026-01-01 09:31:00", True),
        ("Thu Jan 1", "Fri Jan 2", False),
    ],
)
def test_times_of_other_forms_are_read(
    first: Any, second: Any, is_read: bool, log_of: LogOf
) -> None:
    """A configuration of structlog decides how its log writes them."""
    log = log_of([make.event("run.ended", timestamp=time) for time in (first, second)])
    times = [time for (time,) in log.sql("select timestamp from events order by line").fetchall()]
    half, whole = datetime(2026, 1, 1, 9, 30, 0, 500_000), datetime(2026, 1, 1, 9, 31)
    assert times == ([half, whole] if is_read else [None, None])
    assert log.notes == ()


@pytest.mark.parametrize("start", [make.started(), OPENED])
def test_of_several_runs_the_last_is_read(start: make.Event, log_of: LogOf) -> None:
    """Those that follow each other in a file are counted in a note that names the line."""
    log = log_of([start, X, moved("x"), ENDED, start, Y, moved("y"), ENDED])
    assert runs_of(log) == [(True, True)]
    assert [(note.line, note.message) for note in log.notes] == [(5, LAST)]
    assert [row["agent_id"] for row in log.rows("events_of", "statechart.transition")] == ["y"]


@pytest.mark.parametrize("end", [[], [ENDED]])
def test_all_runs_of_a_file_are_one_if_asked(end: list[make.Event], log_of: LogOf) -> None:
    """Whoever was there stays there when a service restarts, and nothing counts twice."""
    log = log_of([OPENED, X, Z, moved("x"), ENDED, OPENED, X, Y, *end], all_runs=True)
    assert runs_of(log) == [(True, bool(end))]
    assert [note.kind for note in log.notes] == ([] if end else ["unfinished"])
    rows = log.sql("select agent_id, transitions from agents").fetchall()
    assert rows == [("x", 1), ("y", 0), ("z", 0)]
    assert log.rows("states")[-1]["agents"] == 3
    assert log.sql("select sum(visits) from dwell").fetchall() == [(4,)]
