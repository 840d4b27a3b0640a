"""Opening logs: runs, notes on what is wrong with them, and the events of one kind."""

import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from prism.analysis import Log, read_log
from prism.analysis.growing import GrowingLog
from prism.errors import InputError
from tests.kit import make
from tests.kit.commands import Prism
from tests.kit.logs import AGENTS, LogOf, WriteLog

MOVES = [make.move("x", "a", "b")]
LONG = [make.move("x", "a", "b", padding="x" * 900)] * 10_000


def test_real_run_has_one_run_and_no_notes(folder: Path) -> None:
    """A sound log has one run with all of its facts, and no notes."""
    log = read_log(folder)
    (run,) = log.runs
    assert (run.label, run.path) == ("real", folder / "events.jsonl")
    assert (run.started, run.ended, run.agents, run.rounds) == (True, True, AGENTS, 4)
    assert (run.ticks_per_round, run.seed, log.notes) == (12, 3, ())


@pytest.mark.parametrize(
    "keys",
    [
        b'"round": "first", "tick": [1], "latency": "long", "timestamp": "noon", "extra": {"a": 1}',
        *(b'"latency": ' + number for number in (b"NaN", b"Infinity", b"-Infinity")),
    ],
)
def test_a_value_that_is_none_of_its_column_is_null(keys: bytes, log_of: LogOf) -> None:
    """A value of another type, or a number that JSON does not have: the line is read."""
    log = log_of([b'{"event": "reasoner.decision", "agent_id": "x", ' + keys + b"}"])
    columns = "agent_id, round, tick, latency, timestamp"
    assert log.sql(f"select {columns} from events").fetchall() == [("x", *[None] * 4)]


def test_several_logs_make_one_table_with_labels(write_log: WriteLog) -> None:
    """Labels are the ends of paths that tell logs apart; one that cannot be opened is noted."""
    names = ("one/events.jsonl", "two/other.jsonl.gz", "three/other.jsonl")
    paths = [write_log(MOVES, name) for name in names]
    log = read_log(paths[0].parent / "nowhere", *paths)
    assert [note.kind for note in log.notes] == ["unreadable"]
    labels = [f"{paths[0].parent.parent.name}/one", "two/other", "three/other"]
    assert [run.label for run in log.runs] == labels
    assert [row["run"] for row in log.rows("transitions")] == labels


def test_what_is_no_log_is_refused(tmp_path: Path, folder: Path) -> None:
    """Nothing, the same log twice, logs of which none can be opened, and a pipe."""
    os.mkfifo(tmp_path / "pipe")
    for paths, words in (
        ([], "no log given"),
        ([folder, folder / "events.jsonl"], "given more than once"),
        ([tmp_path / "nowhere", tmp_path / "nor here"], "nowhere: there is no such file"),
        ([tmp_path / "pipe"], "is a pipe: write it to a file"),
    ):
        with pytest.raises(InputError, match=words):
            read_log(*paths)


STARTED, ENDED = make.started(), make.event("run.ended")


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ([*MOVES * 199, b'{"event": "stat\xff'], 200, "is not valid JSON and is left out"),
        (
            [*MOVES * 199, {"event": "mine"}],
            None,
            "1 event that is not prism's is left out: mine 1",
        ),
        ([STARTED, *MOVES * 199], None, "real has not ended: it is still running, or was stopped"),
        (
            *([*MOVES * 199, make.event("round.ended"), ENDED], None),
            "real begins in round 1: the lines that say who joined are missing",
        ),
        (
            *([make.started(schema=9), *MOVES * 199, ENDED], None),
            "real has events of version 9, and this prism knows version 1: unknown parts are left "
            "out; a newer prism may read them",
        ),
    ],
)
def test_what_is_wrong_with_a_log_is_noted(
    lines: list[Any], line: int | None, message: str, write_log: WriteLog
) -> None:
    """All the rest is read."""
    log = read_log(write_log(lines, "real/events.jsonl"))
    assert [(note.line, note.message) for note in log.notes] == [(line, message)]
    assert [row["count"] for row in log.rows("transitions")] == [199]


def test_keys_of_an_application_are_columns(log_of: LogOf) -> None:
    """Keys that prism does not know have the narrowest type; columns without values are absent."""
    values = [(1, True, [1]), (2.5, None, {"b": 1})]
    log = log_of([make.event("vote.cast", n=n, sure=s, more=m) for n, s, m in values])
    table = log.table("events_of", "vote.cast")
    assert "from_state" not in table.columns
    rows = table.project("n, sure, more").fetchall()
    assert rows == [(1.0, True, "[1]"), (2.5, None, '{"b":1}')]


def test_a_query_may_use_every_table(folder: Path) -> None:
    """A query reads tables and events; what DuckDB refuses is an error that names what there is."""
    log = read_log(folder)
    query = "select count(*) from agents join states on agents.state = states.state"
    assert log.sql(query).fetchall()[0][0] > 0
    for ask, wrong, words in (
        (log.sql, "select stat from states", r"stat.*the columns of states are run, round,"),
        (log.sql, "select state from staets", r"staets.*the tables are runs, steps,"),
        (log.table, "staets", "there is no table 'staets'; did you mean 'states'"),
        (log.table, "states_at", r"'states_at' must be used as states_at\(depth\)"),
        (log.table, "diff", "diff compares two logs, not 1"),
    ):
        with pytest.raises(InputError, match=words):
            ask(wrong)


@pytest.mark.slow
def test_a_long_log_is_loaded_once(
    write_log: WriteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept in the user's cache by its content, and read into memory where none can be."""
    path = write_log(LONG)
    for cache in (tmp_path / "cache", Path("/dev/null")):
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
        for _ in range(2):
            assert [row["count"] for row in read_log(path).rows("transitions")] == [10_000]
    (kept,) = (tmp_path / "cache").rglob("*.duckdb")
    write_log([make.event("run.started"), *LONG[:5_000]] * 2)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for all_runs, number in ((False, 5_000), (True, 10_000)) * 2:
        rows = read_log(path, all_runs=all_runs).rows("transitions")
        assert [row["count"] for row in rows] == [number]
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


LAST = "the last run begins here: an earlier run before it in this file, left out (--all-runs)"
X, Y, Z = (make.joined(agent) for agent in "xyz")
OPENED = make.event("run.started", schema=1)


def moved(agent: str) -> make.Event:
    """Return a transition that leads nowhere else."""
    return make.move(agent, "idle", "idle")


def runs_of(log: Log) -> list[tuple[bool, bool]]:
    """Return whether each run of a log was started and has ended."""
    return [(run.started, run.ended) for run in log.runs]


TIMES = [
    *(1767259800.5, 1767259800500, "2026-01-01T10:30:00.5+01:00", "2026-01-01T09:30:00.5Z"),
    *("2026-01-01T09:30:00.5", "2026-01-01 09:30:00.5", "2026-01-01T04:30:00.5-0500"),
]


def test_times_of_other_forms_are_read_anywhere_or_noted(write_log: WriteLog, prism: Prism) -> None:
    """A configuration of structlog decides how its log writes them, in seconds or as texts."""
    lines = [make.event("run.ended", timestamp=time) for time in (*TIMES, "Thu Jan 1", None)]
    elsewhere = "import os; os.environ['TZ'] = 'America/New_York'"
    query = "select timestamp from events order by line"
    ended = prism.run("log", query, write_log(lines), "-o", "-", first=elsewhere)
    assert ended.out.splitlines() == ["timestamp", *["2026-01-01 09:30:00.5"] * 7, "", ""]
    assert "line 8: has a time that cannot be read: Thu Jan 1 (lines like this: 1)" in ended.err


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
