"""Notes on what is wrong with a log file, and which of its lines are the run's."""

import gzip
import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prism.analysis import Note, read_log
from prism.analysis._reading.parsing import parse
from prism.analysis._reading.survey import SURVEYED, FileSurvey
from prism.runlog._reader import Block
from prism.telemetry.events import SCHEMA_VERSION
from tests.kit.tables import events_of, transition_counts

WriteLog = Callable[..., Path]

KINDS = ("start", "join", "move", "end", "foreign")


def kinds(notes: tuple[Note, ...]) -> list[str]:
    return [note.kind for note in notes]


def test_cut_off_last_line_is_noted(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A last line that is cut off is noted with its number, and the lines before it are read."""
    logs = read_log(write_log([make.move("x", "a", "b"), b'{"event":"statechart.tr'], end=b""))
    (note,) = logs.notes
    assert (note.kind, note.line) == ("truncated", 2)
    assert str(note) == f"{logs.runs[0].path}, line 2: is cut off and is left out"
    assert transition_counts(logs)["count"].sum() == 1


def test_last_line_without_line_feed_is_read(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A complete last line counts without a line feed."""
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
@pytest.mark.sampled(6)
def test_corrupt_line_is_noted_and_the_rest_is_read(
    bad: bytes, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A line that is not JSON is noted with its number, after blank lines too; others are read."""
    lines = [make.move("x", "a", "b"), b"", bad, make.move("x", "b", "a"), make.move("x", "a", "b")]
    logs = read_log(write_log(lines))
    assert transition_counts(logs)["count"].sum() == 3
    assert [(note.kind, note.line) for note in logs.notes] == [("corrupt", 3)]
    assert events_of(logs, "statechart.transition")["line"].to_list() == [1, 4, 5]


def test_many_corrupt_lines_are_summed_up(write_log: WriteLog, make: SimpleNamespace) -> None:
    """The first ten corrupt lines are named one by one, the others counted."""
    notes = read_log(write_log([make.move("x", "a", "b"), *[b"?"] * 25])).notes
    assert [note.line for note in notes] == [*range(2, 12), None]
    assert notes[-1].message == "15 more lines are not valid JSON and are left out"


def test_deeply_nested_line_costs_no_other(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A line that is nested too deeply is noted, and its neighbours are read."""
    deep = b'{"event":"x","deep":' + b"[" * 5000 + b"]" * 5000 + b"}"
    logs = read_log(write_log([make.move("x", "a", "b"), deep, make.move("x", "b", "a")]))
    assert transition_counts(logs)["count"].sum() == 2
    assert len(logs.notes) == 1


def test_newer_schema_is_noted_and_read(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A log of a newer schema is noted, and read as far as it is known."""
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
    """A run with a start and no end is unfinished; without a start it is not."""
    assert kinds(read_log(write_log([make.started(), make.move("x", "a", "b")])).notes) == [
        "unfinished"
    ]
    assert read_log(write_log([make.move("x", "a", "b")])).notes == ()


def test_foreign_events_are_counted_and_left_out(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Foreign events are noted, the most frequent by name, and left out."""
    foreign = [
        {"event": f"app.{number % 7}", "round": "x", "agent_id": {"a": 1}} for number in range(20)
    ]
    logs = read_log(write_log([*foreign, make.move("x", "a", "b"), {"message": "no event"}]))
    (note,) = logs.notes
    assert note.kind == "foreign_events"
    assert note.message.startswith("20 events that are not prism's are left out: ")
    assert note.message.endswith(": app.0 3, app.1 3, app.2 3, app.3 3, app.4 3, and 2 kinds more")
    assert transition_counts(logs)["count"].sum() == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [([], "is empty"), ([{"event": "app.start"}], "contains no events of prism")],
)
def test_empty_log_gives_empty_tables(lines: list[Any], message: str, write_log: WriteLog) -> None:
    """A log without events of prism is noted, and its tables have columns and no rows."""
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


def line_of(kind: str, name: str) -> bytes:
    """Return the line that a kind of event and a name stand for."""
    keys: dict[str, Any] = {
        "start": {"event": "run.started", "agents": 2, "seed": ord(name)},
        "join": {"event": "agent.joined", "agent_id": name, "state": "idle"},
        "move": {"event": "statechart.transition", "agent_id": name},
        "end": {"event": "run.ended"},
        "foreign": {"event": f"app.{name}"},
    }[kind]
    return json.dumps(keys).encode() + b"\n"


def surveyed(lines: Sequence[bytes], cuts: Sequence[int] = ()) -> tuple[FileSurvey, list[int]]:
    """Survey lines in blocks that begin at the cuts, and return the numbers of the run's lines."""
    survey = FileSurvey(Path("log.jsonl"), "log", 0)
    numbers: list[int] = []
    places = sorted({0, len(lines), *(cut for cut in cuts if cut < len(lines))})
    for begin, end in pairwise(places):
        block = Block(b"".join(lines[begin:end]), begin + 1, end - begin)
        numbers += survey.take(block, parse(block, SURVEYED))["line"].to_list()
    return survey, numbers


EVENTS = st.lists(st.builds(line_of, st.sampled_from(KINDS), st.sampled_from("ab")), max_size=14)


@given(lines=EVENTS, cuts=st.lists(st.integers(1, 14), max_size=6))
@example(lines=[line_of(kind, "a") for kind in ("start", "end", "move")], cuts=[2])
def test_runs_do_not_depend_on_blocks(lines: list[bytes], cuts: list[int]) -> None:
    """The run, its lines and the notes are the same wherever the log is cut into blocks."""
    whole, numbers = surveyed(lines)
    parts, numbers_of_parts = surveyed(lines, cuts)
    assert parts.run == whole.run
    assert list(parts.notes()) == list(whole.notes())
    assert numbers_of_parts == numbers


def test_lines_of_other_charts_belong_to_the_same_run(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Transitions of several charts in one run make one run, without a note."""
    charts = ("c", "another", "c")
    moves = [make.move("x", "a", "a", chart=chart) for chart in charts]
    logs = read_log(write_log([make.started(), *moves, make.event("run.ended")]))
    assert len(logs.runs) == 1
    assert logs.notes == ()


def test_missing_start_is_no_fault(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A run without its first line has no facts, is not called unfinished, and its end is seen."""
    logs = read_log(write_log([make.joined("x"), make.move("x", "idle", "b")]))
    (run,) = logs.runs
    assert (run.started, run.ended, run.seed, run.agents) == (False, False, None, None)
    ended = read_log(write_log([make.joined("x"), make.event("run.ended")], "ended.jsonl"))
    assert [run.ended for run in ended.runs] == [True]
    assert logs.notes == ended.notes == ()


def test_cut_off_compressed_log_is_read_to_its_cut(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A gzip file that is cut off is noted as truncated, and its run as unfinished."""
    path = write_log([make.started(), *[make.move("x", "a", "a")] * 20_000], "log.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-200])
    logs = read_log(path)
    assert transition_counts(logs)["count"].sum() > 0
    assert {"truncated", "unfinished"} == set(kinds(logs.notes))


def test_damaged_gzip_file_is_noted(tmp_path: Path) -> None:
    """A compressed log with damaged bytes is noted."""
    damaged = bytearray(gzip.compress(b'{"event":"run.ended"}\n' * 1000))
    damaged[20] ^= 0xFF
    (tmp_path / "damaged.jsonl.gz").write_bytes(damaged)
    logs = read_log(tmp_path / "damaged.jsonl.gz")
    assert set(kinds(logs.notes)) <= {"corrupt", "truncated", "empty", "unreadable"}
    assert logs.notes


def test_what_is_no_transition_of_a_chart_is_left_out(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A log may say anything of the transitions of its charts."""
    told = {"c": [["a", "b", "t"], ["a", "b"], ["a", "b", 1], "abc", None], "d": {"a": ["b"]}}
    logs = read_log(write_log([make.started(arrows=told), make.move("x", "a", "b")]))
    assert logs.runs[0].arrows == {"c": [["a", "b", "t"]]}


@pytest.mark.parametrize(
    "inside", [5, {"a": 5}, {"a": "bc"}, {"a": [1, {}]}, {"a": ["b"], "b": ["a"]}]
)
def test_charts_that_are_no_trees_are_left_out(
    inside: Any, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """What says wrongly what lies inside of what is as good as not there."""
    log = write_log(
        [make.started(charts={"c": inside, "d": {"a": ["b"]}}), make.move("x", "a", "b")]
    )
    assert read_log(log).runs[0].charts == {"d": {"a": ["b"]}}
