"""Telling apart the runs of one file."""

from collections.abc import Callable
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


def test_two_runs_in_one_file_have_two_labels(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A second start in a file begins a second run, with its own label."""
    first = [make.started(seed=1), make.move("x", "a", "b"), make.event("run.ended")]
    second = [make.started(seed=2), make.move("x", "a", "c"), make.move("x", "c", "a")]
    logs = read_log(write_log([*first, *second], "mixed.jsonl"))
    assert [(run.label, run.seed, run.ended) for run in logs.runs] == [
        ("mixed#1", 1, True),
        ("mixed#2", 2, False),
    ]
    assert kinds(logs.notes) == ["mixed_runs", "unfinished"]
    assert "begin at lines 1, 4" in logs.notes[0].message
    counts = transition_counts(logs)
    assert counts.select("run", "to_state").rows() == [
        ("mixed#1", "b"),
        ("mixed#2", "c"),
        ("mixed#2", "a"),
    ]
    assert logs.scan("statechart.transition").collect()["run"].to_list() == [
        "mixed#1",
        "mixed#2",
        "mixed#2",
    ]


def test_simulations_in_an_application_log_are_runs(tmp_path: Path) -> None:
    """An application's log has the runs of its simulations, and no other."""
    results = []
    with configure(tmp_path / "own.jsonl"):
        for seed in (1, 2):
            population = synthetic_population(20, seed=seed)
            results.append(
                Run(
                    Feed(first_posts=population.posts), population.agents, rounds=3, seed=seed
                ).run()
            )
    logs = read_log(tmp_path / "own.jsonl")
    assert [(run.label, run.seed, run.ended) for run in logs.runs] == [
        ("own#1", 1, True),
        ("own#2", 2, True),
    ]
    assert kinds(logs.notes) == ["mixed_runs"]
    ends = state_counts(logs).filter(tick=12).select("run", "round", "state", "agents")
    for run, result in zip(logs.runs, results, strict=True):
        for summary in result.rounds:
            counts = dict(
                ends.filter(run=run.label, round=summary.number)
                .select("state", "agents")
                .iter_rows()
            )
            assert {state: count for state, count in summary.states.items() if count} == {
                state: count for state, count in counts.items() if count
            }


def test_transitions_around_simulations_are_runs(tmp_path: Path) -> None:
    """In an application's log, transitions before, between and after simulations are sound runs."""
    mood = state_enum("Mood", ["calm", "angry"])
    chart = Statechart(
        mood, [Transition("bump", mood("calm"), mood("angry"))], initial=mood("calm")
    )
    with configure(tmp_path / "own.jsonl"):
        for seed in (1, 2):
            chart.fire(SimpleNamespace(agent_id="me", state=mood("calm")), "bump")
            population = synthetic_population(5, seed=seed)
            Run(Feed(first_posts=population.posts), population.agents, rounds=1, seed=seed).run()
        chart.fire(SimpleNamespace(agent_id="me", state=mood("calm")), "bump")
    logs = read_log(tmp_path / "own.jsonl")
    told = [(run.started, run.ended, run.seed) for run in logs.runs]
    assert told == [
        (True, True, None),
        (True, True, 1),
        (False, False, None),
        (True, True, 2),
        (False, True, None),
    ]
    assert kinds(logs.notes) == ["mixed_runs"]
    assert "contains 5 runs, which begin at lines 1, 3, " in logs.notes[0].message
    assert "each is treated separately" in logs.notes[0].message


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.slow
def test_lines_after_the_end_are_another_run(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Lines after the end of a run are another run, in the same block or a later one."""
    first = [
        make.started(seed=1),
        make.joined("x"),
        make.move("x", "idle", "b"),
        make.event("run.ended", posts=1),
    ]
    tail = [make.move("x", "c", "d"), make.event("run.ended", posts=2)]
    padding = [{"event": "app.works", "text": "x" * 200}] * 200
    for between in ([], padding):
        logs = read_log(write_log([*first, *between, *tail], "after.jsonl"))
        assert [(run.label, run.seed, run.started, run.ended) for run in logs.runs] == [
            ("after#1", 1, True, True),
            ("after#2", None, False, True),
        ]
        (note,) = (note for note in logs.notes if note.kind == "mixed_runs")
        assert (
            note.message
            == f"contains 2 runs, which begin at lines 1, {5 + len(between)}: each is treated "
            "separately"
        )
        state_counts(logs)
        assert "broken_chain" not in kinds(logs.notes)


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


ONE = ["start 1", "join x", "move x", "end 1"]

OTHER = ["start 2", "join y", "move y", "end 2"]


@pytest.mark.parametrize(
    ("order", "runs", "line"),
    [
        (
            [
                "start 1",
                "start 2",
                "join x",
                "join y",
                "move x",
                "move y",
                "end 2",
                "move x",
                "end 1",
            ],
            2,
            8,
        ),
        (["start 1", "start 2", "join x", "join y", "move x", "move y", "end 2", "end 1"], 2, 8),
        (
            [
                "start 1",
                "join x",
                "start 2",
                "join y",
                "move x",
                "move y",
                "end 1",
                "move y",
                "end 2",
            ],
            2,
            8,
        ),
        (["start 1", "join x", "join y", "join x", "move x", "end 1"], 1, 4),
        (["start 1", "start 2", "join x", "join x", "move x", "end 2"], 2, 4),
        (["start 1", "join x", "end 1", "end 2"], 1, 4),
    ],
)
def test_interleaved_runs_are_noted(
    order: list[str], runs: int, line: int, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """If lines of several runs are interleaved, a note names the line that shows it."""
    logs = read_log(write_log([written(what, make) for what in order]))
    assert len(logs.runs) == runs
    (note,) = (note for note in logs.notes if note.kind == "mixed_runs")
    assert f"as line {line} shows: they cannot be separated, so tables mix them" in note.message
    assert "by itself" not in note.message
    starts, ends = (sum(what.startswith(kind) for what in order) for kind in ("start", "end"))
    assert ("unfinished" in kinds(logs.notes)) == (starts > ends)


@pytest.mark.parametrize(
    ("order", "runs"),
    [
        ([*ONE, *OTHER], 2),
        ([*ONE[:3], *OTHER], 2),
        ([*ONE, *OTHER[:3]], 2),
        ([*ONE, *OTHER[1:]], 2),
        (ONE * 3, 3),
    ],
)
def test_runs_end_to_end_are_not_interleaved(
    order: list[str], runs: int, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Runs that follow each other are told apart, though one lacks its start or its end."""
    logs = read_log(write_log([written(what, make) for what in order]))
    assert len(logs.runs) == runs
    assert "each is treated separately" in logs.notes[0].message


def written(what: str, make: SimpleNamespace) -> dict[str, Any]:
    """Return the event that two words stand for."""
    kind, name = what.split()
    if kind == "start":
        return dict(make.started(seed=int(name)))
    if kind == "join":
        return dict(make.joined(name))
    return dict(
        make.move(name, "idle", "idle")
        if kind == "move"
        else make.event("run.ended", posts=int(name))
    )


def test_transitions_before_the_first_start_are_a_run(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Events before the first start belong to another run."""
    logs = read_log(write_log([make.move("x", "a", "b"), make.started(), make.event("run.ended")]))
    assert [run.started for run in logs.runs] == [False, True]
