"""Opening logs: runs, notes on what is wrong with them, and the events of one kind."""

import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.agents import synthetic_population
from prism.analysis import Note, read_log, state_counts, transition_counts
from prism.errors import InputError
from prism.runlog import configure
from prism.social import Simulation
from prism.statechart import Statechart, Transition, state_enum
from prism.telemetry.events import SCHEMA_VERSION

WriteLog = Callable[..., Path]


def kinds(notes: tuple[Note, ...]) -> list[str]:
    return [note.kind for note in notes]


def test_real_run_has_one_run_and_no_notes(folder: Path) -> None:
    """Of a sound log all that it says of its run is known, and nothing is noted."""
    logs = read_log(folder)
    (run,) = logs.runs
    assert (run.label, run.path, run.started, run.ended) == (
        "real",
        folder / "events.jsonl",
        True,
        True,
    )
    assert (run.schema, run.agents, run.rounds, run.ticks_per_round, run.seed) == (
        SCHEMA_VERSION,
        80,
        4,
        12,
        3,
    )
    assert logs.notes == ()


def test_compressed_log_reads_the_same(folder: Path, tmp_path: Path) -> None:
    """A gzip copy gives the same tables."""
    packed = tmp_path / "events.jsonl.gz"
    packed.write_bytes(gzip.compress((folder / "events.jsonl").read_bytes()))
    assert transition_counts(read_log(packed)).equals(transition_counts(read_log(folder)))
    assert transition_counts(read_log(tmp_path)).equals(transition_counts(read_log(folder)))


def test_cut_off_last_line_is_noted(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A last line that is cut off is told of with its number, and the lines before it are read."""
    logs = read_log(write_log([make.move("x", "a", "b"), b'{"event":"statechart.tr'], end=b""))
    (note,) = logs.notes
    assert (note.kind, note.line) == ("truncated", 2)
    assert str(note) == f"{logs.runs[0].path}, line 2: is cut off in its middle and is left out"
    assert transition_counts(logs)["count"].sum() == 1


def test_last_line_without_line_feed_is_read(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A last line that is whole counts, though nothing ends it."""
    logs = read_log(write_log([make.move("x", "a", "b"), make.move("x", "b", "a")], end=b""))
    assert transition_counts(logs)["count"].sum() == 2
    assert logs.notes == ()


@pytest.mark.parametrize(
    "bad",
    [
        b"hello",
        b'{"event":"statechart.transition","agent_id":"\\ud800"}',
        b'{"event":"statechart.transition","fr{"event":"post.liked"}',
        b"\x00\x00\x00",
        b'{"event":"\xff"}',
        b"{",
    ],
)
def test_corrupt_line_is_noted_and_the_rest_is_read(
    bad: bytes, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A line that is no JSON is told of with its number, blank lines before it or not, and all others are read."""
    lines = [make.move("x", "a", "b"), b"", bad, make.move("x", "b", "a"), make.move("x", "a", "b")]
    logs = read_log(write_log(lines))
    assert transition_counts(logs)["count"].sum() == 3
    assert [(note.kind, note.line) for note in logs.notes] == [("corrupt", 3)]
    assert logs.scan("statechart.transition").collect()["line"].to_list() == [1, 4, 5]


def test_many_corrupt_lines_are_summed_up(write_log: WriteLog, make: SimpleNamespace) -> None:
    """The first ten corrupt lines are named one by one, the others counted."""
    notes = read_log(write_log([make.move("x", "a", "b"), *[b"?"] * 25])).notes
    assert [note.line for note in notes] == [*range(2, 12), None]
    assert notes[-1].message == "15 more lines are not valid JSON and are left out"


def test_line_that_is_nested_too_deep_costs_no_other(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A line that is nested without end is told of, in one way or another, and its neighbours are read."""
    deep = b'{"event":"x","deep":' + b"[" * 5000 + b"]" * 5000 + b"}"
    logs = read_log(write_log([make.move("x", "a", "b"), deep, make.move("x", "b", "a")]))
    assert transition_counts(logs)["count"].sum() == 2
    assert len(logs.notes) == 1


def test_values_of_other_types_are_null(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A key that holds something else than it should is null, and the line is read all the same."""
    odd = make.move(
        "x",
        "a",
        "b",
        round="first",
        tick=[1],
        ticks_in_state=1.5,
        timestamp="noon",
        extra={"any": 1},
    )
    row = read_log(write_log([odd])).scan("statechart.transition").collect().row(0, named=True)
    assert [row[name] for name in ("round", "tick", "ticks_in_state", "timestamp")] == [None] * 4
    assert (row["agent_id"], row["to_state"]) == ("x", "b")


def test_newer_schema_is_noted_and_read(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A log of a newer version is told of and read as far as it is known."""
    lines = [
        make.started(schema=SCHEMA_VERSION + 1),
        make.move("x", "a", "b"),
        make.event("run.ended"),
    ]
    logs = read_log(write_log(lines))
    assert kinds(logs.notes) == ["newer_schema"]
    assert f"version {SCHEMA_VERSION + 1}" in logs.notes[0].message
    assert transition_counts(logs)["count"].sum() == 1


def test_run_that_has_not_ended_is_noted(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A run that began and does not say that it ended is called unfinished; a log that never says so is not."""
    assert kinds(read_log(write_log([make.started(), make.move("x", "a", "b")])).notes) == [
        "unfinished"
    ]
    assert read_log(write_log([make.move("x", "a", "b")])).notes == ()


def test_log_that_grows_gives_more_when_it_is_read_again(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Each table reads the log as it is at that time."""
    path = write_log([make.started(), make.move("x", "a", "b")])
    logs = read_log(path)
    assert transition_counts(logs)["count"].sum() == 1
    shutil.copyfile(
        write_log(
            [make.started(), make.move("x", "a", "b"), make.event("run.ended")], "more.jsonl"
        ),
        path,
    )
    assert kinds(logs.notes) == ["unfinished"]
    transition_counts(logs)
    assert logs.notes == ()


def test_two_runs_in_one_file_are_taken_apart(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A second beginning in a file begins a second run, with a label of its own."""
    first = [make.started(seed=1), make.move("x", "a", "b"), make.event("run.ended")]
    second = [make.started(seed=2), make.move("x", "a", "c"), make.move("x", "c", "a")]
    logs = read_log(write_log([*first, *second], "mixed.jsonl"))
    assert [(run.label, run.seed, run.ended) for run in logs.runs] == [
        ("mixed#1", 1, True),
        ("mixed#2", 2, False),
    ]
    assert kinds(logs.notes) == ["mixed_runs", "unfinished"]
    assert "begin in lines 1, 4" in logs.notes[0].message
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


def test_simulations_in_a_log_of_ones_own_are_runs(tmp_path: Path) -> None:
    """A log that an application opened before its simulations holds their runs, by round, and no other."""
    results = []
    with configure(tmp_path / "own.jsonl"):
        for seed in (1, 2):
            population = synthetic_population(20, seed=seed)
            results.append(
                Simulation(population.agents, population.posts, rounds=3, seed=seed).run()
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


def test_moves_of_ones_own_around_simulations_are_runs_that_end(tmp_path: Path) -> None:
    """In a log that an application opened, its own moves before, between and after simulations are sound runs."""
    mood = state_enum("Mood", ["calm", "angry"])
    chart = Statechart(
        mood, [Transition("bump", mood("calm"), mood("angry"))], initial=mood("calm")
    )
    with configure(tmp_path / "own.jsonl"):
        for seed in (1, 2):
            chart.fire(SimpleNamespace(agent_id="me", state=mood("calm")), "bump")
            population = synthetic_population(5, seed=seed)
            Simulation(population.agents, population.posts, rounds=1, seed=seed).run()
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
    assert "holds 5 runs, which begin in lines 1, 3, " in logs.notes[0].message
    assert "each is taken by itself" in logs.notes[0].message


def test_lines_after_the_end_of_a_run_are_another(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """The tail of a run whose beginning is lost is a run by itself, in the same block of lines or a later one."""
    first = [
        make.started(seed=1),
        make.joined("x"),
        make.move("x", "idle", "b"),
        make.event("run.ended", posts=1),
    ]
    tail = [make.move("x", "c", "d"), make.event("run.ended", posts=2)]
    padding = [{"event": "app.works", "text": "x" * 100_000}] * 200
    for between in ([], padding):
        logs = read_log(write_log([*first, *between, *tail], "after.jsonl"))
        assert [(run.label, run.seed, run.started, run.ended) for run in logs.runs] == [
            ("after#1", 1, True, True),
            ("after#2", None, False, True),
        ]
        (note,) = (note for note in logs.notes if note.kind == "mixed_runs")
        assert (
            note.message
            == f"holds 2 runs, which begin in lines 1, {5 + len(between)}: each is taken by itself"
        )
        state_counts(logs)
        assert "broken_chain" not in kinds(logs.notes)


@pytest.mark.parametrize("opened", [True, False])
def test_what_a_reasoner_says_of_itself_is_no_run(
    opened: bool, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A reasoner's warning before a run and after it belongs to that run, in an application's log or a simulation's."""
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
def test_runs_whose_lines_are_mixed_are_told_of(
    order: list[str], runs: int, line: int, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Where lines of several runs stand between each other the note says so, and names the line that shows it."""
    logs = read_log(write_log([written(what, make) for what in order]))
    assert len(logs.runs) == runs
    (note,) = (note for note in logs.notes if note.kind == "mixed_runs")
    assert f"as line {line} shows: they cannot be told apart, so tables mix them" in note.message
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
def test_runs_laid_end_to_end_are_not_mixed(
    order: list[str], runs: int, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A run that follows another is taken by itself, though one of them lacks its beginning or its end."""
    logs = read_log(write_log([written(what, make) for what in order]))
    assert len(logs.runs) == runs
    assert "each is taken by itself" in logs.notes[0].message


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


def test_moves_before_the_first_beginning_are_a_run(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """What stands before a run begins belongs to another run."""
    logs = read_log(write_log([make.move("x", "a", "b"), make.started(), make.event("run.ended")]))
    assert [run.started for run in logs.runs] == [False, True]


def test_events_of_others_are_counted_and_left_out(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Other events between prism's are told of, the most frequent by name, and disturb nothing."""
    foreign = [
        {"event": f"app.{number % 7}", "round": "x", "agent_id": {"a": 1}} for number in range(20)
    ]
    logs = read_log(
        write_log([*foreign, make.move("x", "a", "b"), {"message": "no event"}, [1, 2], 5])
    )
    (note,) = logs.notes
    assert note.kind == "foreign_events"
    assert note.message.startswith("23 events of others are left out: ")
    assert note.message.endswith(": app.0 3, app.1 3, app.2 3, app.3 3, app.4 3, and 3 kinds more")
    assert transition_counts(logs)["count"].sum() == 1


@pytest.mark.parametrize(
    ("lines", "message"), [([], "is empty"), ([{"event": "app.start"}], "holds no event of prism")]
)
def test_empty_log_gives_empty_tables(lines: list[Any], message: str, write_log: WriteLog) -> None:
    """A log without anything of prism is told of, and its tables have columns and no rows."""
    logs = read_log(write_log(lines, end=b""))
    assert transition_counts(logs).columns == [
        "from_state",
        "to_state",
        "trigger",
        "count",
        "probability",
    ]
    assert transition_counts(logs).height == 0
    assert logs.runs == ()
    assert message in logs.notes[-1].message
    assert logs.notes[-1].kind == "empty"


def test_several_logs_make_one_table_with_labels(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Several logs are told apart by their folders or names, and by their paths where these are the same."""
    moves = [make.move("x", "a", "b")]
    paths = [
        write_log(moves, name)
        for name in ("one/events.jsonl", "two/other.jsonl.gz", "three/other.jsonl")
    ]
    logs = read_log(*paths)
    labels = ["one", str(paths[1]), str(paths[2])]
    assert [run.label for run in logs.runs] == labels
    assert transition_counts(logs)["run"].to_list() == sorted(labels, key=labels.index)


def test_log_that_is_not_there_does_not_keep_others_from_being_read(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Of several logs those that cannot be opened are told of; only if all cannot, it is an error."""
    path = write_log([make.move("x", "a", "b")])
    logs = read_log(path.parent / "nowhere", path)
    assert kinds(logs.notes) == ["unreadable"]
    assert transition_counts(logs).select("run", "count").rows() == [(path.parent.name, 1)]
    with pytest.raises(InputError, match="nowhere: cannot be read: No such file"):
        read_log(path.parent / "nowhere", path.parent / "nowhere either")


def test_same_log_twice_is_refused(folder: Path) -> None:
    """The same log is not counted twice, and no log at all is refused."""
    with pytest.raises(InputError, match="given more than once"):
        read_log(folder, folder / "events.jsonl")
    with pytest.raises(InputError, match="no log given"):
        read_log()


def test_scan_gives_the_events_as_they_stand(folder: Path, events: list[dict[str, Any]]) -> None:
    """A scan has every event of a kind, in order, with UTC times, and takes filters and heads."""
    posts = [event for event in events if event["event"] == "post.published"]
    scan = read_log(folder).scan("post.published")
    table = scan.collect(engine="streaming")
    for key in ("agent_id", "post_id", "kind", "parent_id", "root_id", "text", "round", "tick"):
        assert table[key].to_list() == [post[key] for post in posts]
    assert table["timestamp"][0] == datetime(2026, 1, 1, tzinfo=UTC)
    assert scan.head(3).collect()["post_id"].to_list() == [post["post_id"] for post in posts[:3]]
    replies = (
        scan.filter(pl.col("kind") == "reply").select("post_id").collect()["post_id"].to_list()
    )
    assert replies == [post["post_id"] for post in posts if post["kind"] == "reply"]


def test_scan_gives_objects_as_json(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Objects are JSON, of the rows that are asked for, whether columns are chosen, filtered by, or neither."""
    about = {"quote": 'he said "no" \\ \n', 'k"ey': 1}
    lines = [
        make.decision("x", ["b"], "b", context=about),
        make.decision("y", ["b"], "b", probabilities={"b": 1.0}),
    ]
    scan = read_log(write_log(lines)).scan("reasoner.decision")
    first, second = scan.collect().iter_rows(named=True)
    assert (json.loads(first["context"]), first["probabilities"]) == (about, None)
    assert (second["context"], second["probabilities"]) == (None, '{"b":1.0}')
    assert scan.filter(pl.col("context").is_not_null()).select("agent_id").collect().rows() == [
        ("x",)
    ]
    assert scan.filter(pl.col("agent_id") == "y").select("probabilities").collect().rows() == [
        ('{"b":1.0}',)
    ]


def test_scan_of_unknown_events_is_refused(folder: Path) -> None:
    """A kind of which there is no table is named, with those there are."""
    with pytest.raises(
        InputError, match=r"no table of 'round\.ended': choose one of .*statechart\.transition"
    ):
        read_log(folder).scan("round.ended")


def test_logs_of_many_blocks_are_read_whole(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A log of more than one block gives every line, corrupt ones by number, wherever blocks are cut."""
    padding = "x" * 100_000
    lines: list[Any] = [make.move("x", "a", "b", padding=padding) for _ in range(200)]
    lines[150] = b"?"
    logs = read_log(write_log(lines))
    assert transition_counts(logs)["count"].sum() == 199
    assert [(note.kind, note.line) for note in logs.notes] == [("corrupt", 151)]


def test_without_polars_the_room_names_its_extra() -> None:
    """Without polars the import says what to install."""
    code = "import sys; sys.modules['polars'] = None; import prism.analysis"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "MissingExtraError: prism.analysis needs the package 'polars'" in last
    assert "pip install 'prism-statecharts[analysis]'" in last
