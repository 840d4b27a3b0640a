"""Opening logs: runs, notes on what is wrong with them, and the events of one kind."""

import gzip
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.analysis import Note, read_log, transition_counts
from prism.errors import InputError
from prism.telemetry.events import SCHEMA_VERSION
from tests.kit.logs import AGENTS

WriteLog = Callable[..., Path]


def kinds(notes: tuple[Note, ...]) -> list[str]:
    return [note.kind for note in notes]


def test_real_run_has_one_run_and_no_notes(folder: Path) -> None:
    """A sound log has one run with all of its facts, and no notes."""
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
        AGENTS,
        4,
        12,
        3,
    )
    assert logs.notes == ()


@pytest.mark.slow
def test_compressed_log_reads_the_same(folder: Path, tmp_path: Path) -> None:
    """A gzip copy gives the same tables."""
    packed = tmp_path / "events.jsonl.gz"
    packed.write_bytes(gzip.compress((folder / "events.jsonl").read_bytes()))
    assert transition_counts(read_log(packed)).equals(transition_counts(read_log(folder)))
    assert transition_counts(read_log(tmp_path)).equals(transition_counts(read_log(folder)))


def test_values_of_other_types_are_null(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A value of another type is null, and its line is read."""
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


def test_growing_log_is_read_again_by_each_table(
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


def test_several_logs_make_one_table_with_labels(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Several logs are labelled by the ends of their paths that tell them apart."""
    moves = [make.move("x", "a", "b")]
    paths = [
        write_log(moves, name)
        for name in ("one/events.jsonl", "two/other.jsonl.gz", "three/other.jsonl")
    ]
    logs = read_log(*paths)
    labels = [f"{paths[0].parent.parent.name}/one", "two/other", "three/other"]
    assert [run.label for run in logs.runs] == labels
    assert transition_counts(logs)["run"].to_list() == sorted(labels, key=labels.index)


def test_missing_log_does_not_prevent_reading_others(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A log that cannot be opened is noted; only if none can be, it is an error."""
    path = write_log([make.move("x", "a", "b")])
    logs = read_log(path.parent / "nowhere", path)
    assert kinds(logs.notes) == ["unreadable"]
    assert transition_counts(logs).select("run", "count").rows() == [(path.parent.name, 1)]
    with pytest.raises(InputError, match="nowhere: there is no such file"):
        read_log(path.parent / "nowhere", path.parent / "nowhere either")


def test_same_log_twice_is_refused(folder: Path) -> None:
    """The same log is not counted twice, and no log at all is refused."""
    with pytest.raises(InputError, match="given more than once"):
        read_log(folder, folder / "events.jsonl")
    with pytest.raises(InputError, match="no log given"):
        read_log()


def test_scan_returns_the_events_in_order(folder: Path, events: list[dict[str, Any]]) -> None:
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
    """Objects are JSON text, whichever columns are selected or filtered by."""
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


@pytest.mark.usefixtures("small_blocks")
def test_logs_of_many_blocks_are_read_whole(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A log of several blocks is read whole, and corrupt lines have their numbers."""
    padding = "x" * 200
    lines: list[Any] = [make.move("x", "a", "b", padding=padding) for _ in range(200)]
    lines[150] = b"?"
    logs = read_log(write_log(lines))
    assert transition_counts(logs)["count"].sum() == 199
    assert [(note.kind, note.line) for note in logs.notes] == [("corrupt", 151)]
