"""A file holds one run: what begins and ends it, and what happens with a second."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism import Run
from prism.agents import synthetic_population
from prism.analysis import Note, read_log, state_counts, transition_counts
from prism.runlog import configure
from prism.social import Feed
from prism.statechart import Statechart, Transition, state_enum

WriteLog = Callable[..., Path]


def kinds(notes: tuple[Note, ...]) -> list[str]:
    return [note.kind for note in notes]


SECOND = "a second run begins here: it is left out, since a file holds one run"
LAST = "the last run begins here: an earlier run before it in this file, left out"


@pytest.mark.parametrize(
    ("start", "second", "message", "agent"),
    [
        ("start 1", ["start 2", "join y", "move y", "end 2"], SECOND, "x"),
        ("start 1", ["join y", "move y"], SECOND, "x"),  # which lost its start
        ("open 1", ["open 2", "join y", "move y", "end 2"], LAST, "y"),
    ],
)
@pytest.mark.parametrize("padding", [0, 200])
@pytest.mark.usefixtures("small_blocks")
def test_of_two_runs_one_is_read(
    start: str,
    second: list[str],
    message: str,
    agent: str,
    padding: int,
    write_log: WriteLog,
    make: SimpleNamespace,
) -> None:
    """Of those of an application it is the last, with a note that names the line."""
    first = [start, "join x", "move x", "end 1"]
    lines = [written(what, make) for what in (*first, *second)]
    lines[4:4] = [{"event": "app.works", "text": "x" * 200}] * padding
    logs = read_log(write_log(lines, "mixed.jsonl"))
    assert [(run.label, run.ended) for run in logs.runs] == [("mixed", True)]
    (note,) = (note for note in logs.notes if note.kind in ("second_run", "earlier_runs"))
    assert (note.line, note.message) == (5 + padding, message)
    assert transition_counts(logs)["count"].to_list() == [1]
    assert logs.scan("statechart.transition").collect()["agent_id"].to_list() == [agent]


@pytest.mark.parametrize(
    ("start", "kind", "ended"), [("start", "second_run", False), ("open", "earlier_runs", True)]
)
def test_a_run_may_begin_before_the_end_of_another(
    start: str, kind: str, ended: bool, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """As after a crash: lines of two runs cannot be told apart."""
    order = [f"{start} 1", "join x", "move x", f"{start} 2", "move x", "join y", "end 1", "end 2"]
    logs = read_log(write_log([written(what, make) for what in order]))
    assert [run.ended for run in logs.runs] == [ended]
    assert kinds(logs.notes) == [kind, *([] if ended else ["unfinished"])]
    assert transition_counts(logs)["count"].to_list() == [1]


def test_a_simulation_is_the_run_of_an_application_log(tmp_path: Path) -> None:
    """The states are those of the simulation, and neither start nor end of the log is a run."""
    population = synthetic_population(20, seed=1)
    with configure(tmp_path / "own.jsonl"):
        feed = Feed(first_posts=population.posts)
        result = Run(feed, population.agents, rounds=3, seed=1).run()
    logs = read_log(tmp_path / "own.jsonl")
    assert [(run.label, run.seed, run.ended) for run in logs.runs] == [("own", 1, True)]
    assert logs.notes == ()
    ends = state_counts(logs).filter(tick=12)
    for summary in result.rounds:
        counts = ends.filter(round=summary.number).select("state", "agents").iter_rows()
        assert {state: count for state, count in summary.states.items() if count} == {
            state: count for state, count in counts if count
        }


def test_what_an_application_did_before_a_simulation_is_its_run(tmp_path: Path) -> None:
    """The simulation is a second run then."""
    mood = state_enum("Mood", ["calm", "angry"])
    chart = Statechart(
        mood, [Transition("bump", mood("calm"), mood("angry"))], initial=mood("calm")
    )
    with configure(tmp_path / "own.jsonl"):
        chart.fire(SimpleNamespace(agent_id="me", state=mood("calm")), "bump")
        population = synthetic_population(5, seed=1)
        Run(Feed(first_posts=population.posts), population.agents, rounds=1, seed=1).run()
    logs = read_log(tmp_path / "own.jsonl")
    assert [(run.started, run.ended, run.seed) for run in logs.runs] == [(True, False, None)]
    assert kinds(logs.notes) == ["second_run", "unfinished"]
    assert transition_counts(logs)["count"].sum() == 1


@pytest.mark.parametrize("opened", [True, False])
def test_warnings_of_a_reasoner_are_no_run(
    opened: bool, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A reasoner's warnings before and after a run belong to it, in any log."""
    warning = make.event("reasoner.cache_failed", error="disk full")
    start = [make.event("run.started", schema=1)] if opened else []
    end = [make.event("run.ended")] if opened else []
    run = [make.started(), warning, make.move("x", "a", "b"), make.event("run.ended", posts=0)]
    logs = read_log(write_log([*start, warning, *run, warning, *end, warning]))
    (only,) = logs.runs
    assert (only.started, only.ended, only.seed, logs.notes) == (True, True, 7, ())


@pytest.mark.parametrize(
    ("first", "second", "read", "notes"),
    [
        (1767259800.5, 1767259860, True, []),
        ("2026-01-01T10:30:00.5+01:00", "2026-01-01T09:31:00Z", True, []),
        ("2026-01-01T09:30:00.5", "2026-01-01 09:31:00", True, ["times"]),
        ("Thu Jan 1", "Fri Jan 2", False, ["times"]),
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
    times = logs.scan("statechart.transition").collect()["timestamp"]
    half, whole = datetime(2026, 1, 1, 9, 30, 0, 500_000), datetime(2026, 1, 1, 9, 31)
    assert times.dt.replace_time_zone(None).to_list() == ([half, whole] if read else [None, None])
    assert kinds(logs.notes) == notes


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
