"""Opening logs: runs, notes on what is wrong with them, and the events of one kind."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from prism.analysis import Note, read_log
from prism.analysis._growing import GrowingLog
from prism.errors import InputError
from tests.kit.logs import AGENTS
from tests.kit.tables import events_of, transition_counts

WriteLog = Callable[..., Path]


def kinds(notes: tuple[Note, ...]) -> list[str]:
    return [note.kind for note in notes]


def test_real_run_has_one_run_and_no_notes(folder: Path) -> None:
    """A sound log has one run with all of its facts, and no notes."""
    logs = read_log(folder)
    (run,) = logs.runs
    assert (run.label, run.path) == ("real", folder / "events.jsonl")
    assert (run.started, run.ended, run.agents, run.rounds) == (True, True, AGENTS, 4)
    assert (run.ticks_per_round, run.seed) == (12, 3)
    assert logs.notes == ()


@pytest.mark.parametrize(
    "keys",
    [
        b'"round": "first", "tick": [1], "latency": "long", "timestamp": "noon", "extra": {"a": 1}',
        *(b'"latency": ' + number for number in (b"NaN", b"Infinity", b"-Infinity")),
    ],
)
def test_a_value_that_is_none_of_its_column_is_null(keys: bytes, write_log: WriteLog) -> None:
    """A value of another type, or a number that JSON does not have: the line is read."""
    line = b'{"event": "reasoner.decision", "agent_id": "x", ' + keys + b"}"
    log = read_log(write_log([line]))
    columns = "agent_id, round, tick, latency, timestamp"
    assert log.sql(f"select {columns} from events").fetchall() == [("x", *[None] * 4)]


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


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """A log is read twice, so the message says to write it to a file."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a pipe: write it to a file"):
        read_log(tmp_path / "pipe")


def test_same_log_twice_is_refused(folder: Path) -> None:
    """The same log is not counted twice, and no log at all is refused."""
    with pytest.raises(InputError, match="given more than once"):
        read_log(folder, folder / "events.jsonl")
    with pytest.raises(InputError, match="no log given"):
        read_log()


def test_logs_of_many_blocks_are_read_whole(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A log of several blocks is read whole, and corrupt lines have their numbers."""
    padding = "x" * 200
    lines: list[Any] = [make.move("x", "a", "b", padding=padding) for _ in range(200)]
    lines[150] = b"?"
    logs = read_log(write_log(lines))
    assert transition_counts(logs)["count"].sum() == 199
    assert [(note.kind, note.line) for note in logs.notes] == [("corrupt", 151)]


def test_keys_of_an_application_are_columns(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Keys that prism does not know have the narrowest type that fits all values."""
    values = [(1, True, "a", [1]), (2.5, None, 3, {"b": 1})]
    lines = [make.event("vote.cast", n=n, sure=s, said=t, more=m) for n, s, t, m in values]
    rows = events_of(read_log(write_log(lines)), "vote.cast").select("n", "sure", "more").rows()
    assert rows == [(1.0, True, "[1]"), (2.5, None, '{"b":1}')]


def test_a_query_may_use_every_table(folder: Path) -> None:
    """A query reads tables and events; what DuckDB refuses is an error that names the tables."""
    log = read_log(folder)
    query = "select count(*) from agents join states on agents.state = states.state"
    assert log.sql(query).fetchall()[0][0] > 0
    with pytest.raises(InputError, match=r"stat.*the tables are runs, steps,"):
        log.sql("select stat from states")
    with pytest.raises(InputError, match="there is no table 'staets': there are runs, steps,"):
        log.table("staets")


def test_a_long_log_is_loaded_once(
    write_log: WriteLog, make: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept in the user's cache by its content, and read into memory where none can be."""
    path = write_log([make.move("x", "a", "b", padding="x" * 900)] * 10_000)
    counts = [("a", "b", "go", 10_000, 1.0)]
    for cache in (tmp_path / "cache", Path("/dev/null")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        for _ in range(2):
            assert transition_counts(read_log(path)).rows() == counts
    (kept,) = (tmp_path / "cache").rglob("*.duckdb")
    again = [make.event("run.started"), *[make.move("x", "b", "a", padding="x" * 900)] * 5_000]
    write_log(again * 2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for all_runs, number in ((False, 5_000), (True, 10_000)) * 2:
        table = transition_counts(read_log(path, all_runs=all_runs))
        assert table["count"].to_list() == [number]
    assert len([*kept.parent.iterdir()]) == 3


@pytest.mark.parametrize("grows", [False, True])
def test_queries_of_a_locked_log_reach_no_file(grows: bool, folder: Path, tmp_path: Path) -> None:
    """As those from a page: neither reading, writing, attaching nor unlocking."""
    path = folder / "events.jsonl"
    log = GrowingLog(path, "run") if grows else read_log(path)
    if not grows:
        log.lock()
    for query in (
        f"from read_text('{path}')",
        f"copy (select 1) to '{tmp_path / 'out.csv'}'",
        f"attach '{tmp_path / 'other.duckdb'}'",
        "set enable_external_access = true",
    ):
        with pytest.raises((InputError, duckdb.Error)):
            log.sql(query).fetchall()
    log.close()
    assert not [*tmp_path.iterdir()]
