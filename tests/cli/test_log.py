"""``prism log``: tables of a run's log, as a person and as a program reads them."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.kit.commands import Prism

TABLES = ["states", "transitions", "dwell", "decisions", "participation", "cascades", "agent"]
MINE = """
from prism.statechart import Statechart, Transition, state_enum
S = state_enum("S", ["a", "b"])
chart = Statechart(S, [Transition("go", S("a"), S("b"))], S("a"), name="mine")
"""
INTERRUPTED = """
import signal
from prism.analysis import Log
def sql(log, query):
    try: signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt: raise RuntimeError from None
Log.sql = sql
"""


@pytest.fixture
def log(prism: Prism) -> Prism:
    """Return ``prism log``, in an empty folder."""
    return replace(prism, group=("log",))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run."""
    folder = tmp_path_factory.mktemp("logged") / "run"
    line = ("simulate", "--seed", 5, "--agents", 40, "--rounds", 3, "--out", folder)
    assert Prism(folder.parent)(*line).status == 0
    return folder


def arguments_for(table: str, run: Path) -> list[str | Path]:
    """Return the arguments of a table's command."""
    return ["agent", "agent_0001", run] if table == "agent" else [table, run]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.sampled(7)
def test_a_table_is_readable_and_the_same_in_every_format(
    table: str, run: Path, log: Prism
) -> None:
    """It fits 80 columns, also of two runs; CSV, JSON and Parquet have the same rows."""
    (log.folder / "other.jsonl").write_bytes((run / "events.jsonl").read_bytes())
    for others in ([], ["other.jsonl"]):
        ran = log(*arguments_for(table, run), *others)
        assert (ran.status, ran.err) == (0, "")
        assert max(len(line.rstrip()) for line in ran.out.splitlines()) <= 80
        assert "…" not in ran.out

    as_csv = list(csv.DictReader(io.StringIO(log(*arguments_for(table, run), "-o", "-").out)))
    as_json = log(*arguments_for(table, run), "--json", "-o", "table.parquet").rows
    as_parquet = pl.read_parquet(log.folder / "table.parquet")
    assert len(as_csv) == len(as_json) == as_parquet.height > 0
    assert list(as_csv[0]) == list(as_json[0]) == as_parquet.columns


def test_the_log_of_a_restarted_service_is_read_whole_if_asked(log: Prism) -> None:
    """The last run alone is read, with a note; tables without rounds have the time."""
    about = {"agent_id": "o1", "chart": "order", "timestamp": "2026-01-01T00:00:00Z"}
    ends = {"from_state": "new", "to_state": "paid", "trigger": "pay"}
    run = [{"event": "run.started"}, {"event": "statechart.transition", **about, **ends}]
    lines = "".join(json.dumps(line) + "\n" for line in run * 2)
    (log.folder / "svc.jsonl").write_text(lines, encoding="utf-8")
    counts = [log("transitions", "svc.jsonl", *each, "--json") for each in ([], ["--all-runs"])]
    assert [ran.rows[0]["count"] for ran in counts] == [1, 2]
    assert ["(--all-runs)" in ran.err for ran in counts] == [True, False]
    story = log("agent", "o1", "svc.jsonl", "--all-runs").out
    assert "2026-01-01" in story
    assert "round" not in story


def test_a_query_is_a_table(run: Path, log: Prism) -> None:
    """Its rows are drawn or written like those of a table; what is no query is refused."""
    query = 'select "trigger", count(*) as n from events where to_state is not null group by all'
    assert {row["trigger"] for row in log(query, run, "--json").rows} >= {"decides", "sees_post"}
    assert log("run-measures", run, "--json").rows
    rows = log("from decisions_by(['source', 'round'])", run, "--json").rows
    assert [(row["source"], row["round"]) for row in rows] == [("policy", n) for n in (1, 2, 3)]
    assert "no chart with states inside" in log("from states_at(1)", run).err
    assert "only a log with details=True" in log("stuck-agents", run).err
    many = log("select event, line, agent_id from events", run).out.splitlines()
    assert (len(many) < 50, many[-1]) == (True, "the first 40 rows; all with --json")
    for wrong in ("staets", "states-at", "select 'x'::int", "drop table events"):
        ran = log(wrong, run)
        assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_an_interrupted_query_ends_in_a_line(run: Path, log: Prism) -> None:
    """DuckDB raises an error of its own for a Ctrl-C."""
    ran = log.run("select 1", run, first=INTERRUPTED)
    assert (ran.status, ran.out, ran.err) == (130, "", "prism: interrupted\n")


def test_two_runs_differ(run: Path, log: Prism) -> None:
    """The table ``diff`` has the first difference, and no rows for the same log."""
    line = ("simulate", "--seed", 6, "--agents", 40, "--rounds", 3, "--out", "other")
    assert replace(log, group=())(*line).status == 0
    assert len(log("diff", run, "other", "--json").rows) > 0


def test_ids_and_whole_numbers_are_not_changed(log: Prism) -> None:
    """An id that begins as a formula, and a number beyond what a float holds, stay as they are."""
    event = {"event": "agent.joined", "agent_id": "@user", "state": "=a", "following": 2**53 + 1}
    (log.folder / "odd.jsonl").write_text(json.dumps(event) + "\n")
    (row,) = csv.DictReader(io.StringIO(log("agents", "odd.jsonl", "-o", "-").out))
    assert (row["agent_id"], row["state"]) == ("@user", "=a")
    out = log("select following from events", "odd.jsonl", "-o", "-").out
    assert out == f"following\n{2**53 + 1}\n"


def test_a_damaged_log_has_tables_and_notes(run: Path, log: Prism) -> None:
    """Notes go to standard error, a line each, and the table is printed all the same."""
    data = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    (log.folder / "broken.jsonl").write_bytes(b"".join([*data[:50], b"garbage\n", data[50][:40]]))
    ran = log("transitions", "broken.jsonl", "-o", "-")
    assert (ran.status, ran.out.startswith("from_state,")) == (0, True)
    assert ran.err.splitlines()[:2] == [
        "prism: broken.jsonl, line 51: is not valid JSON and is left out",
        "prism: broken.jsonl, line 52: is cut off and is left out",
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (("states", "app.jsonl"), "app.jsonl: contains no events of prism"),
        (("agent", "nobody", "RUN"), "no agent 'nobody' in the log"),
        (("states", "RUN", "-o", "nowhere/a.csv"), "nowhere/a.csv: cannot be written to: No such"),
        (("states", "RUN", "-o", "a.txt"), "a.txt: must end with .csv, .json, .parquet"),
        (("select event::int from events", "RUN"), "QUERY: Conversion Error: Could not convert"),
        (("select 1; select 2", "RUN"), "QUERY must be one query: begin with select, from or"),
    ],
)
@pytest.mark.sampled(4)
def test_mistakes_are_one_line(line: tuple[str, ...], problem: str, run: Path, log: Prism) -> None:
    """What cannot be read or written is one line with status 2."""
    (log.folder / "app.jsonl").write_text('{"event": "app"}\n')
    ran = log(*(run if each == "RUN" else each for each in line))
    assert (ran.status, ran.out) == (2, "")
    assert problem in ran.err.splitlines()[-1]


def test_check_holds_a_log_against_a_chart(run: Path, log: Prism) -> None:
    """A sound run agrees; violations are counted by kind, with their line and agent."""
    ran = log("check", run, "--chart", "social_feed")
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.endswith(" steps agree\n")

    text = (run / "events.jsonl").read_text()
    (log.folder / "log.jsonl").write_text(text.replace('"sees_post"', '"snubs"', 2))
    ran = log("check", "log.jsonl", "--chart", "social_feed")
    assert (ran.status, "steps: unknown_trigger 2\n" in ran.err) == (1, True)
    first = log("check", "log.jsonl", "--chart", "social_feed", "--json").rows[0]
    assert (first["kind"], first["logged"]) == ("unknown_trigger", "snubs")
    assert first["allowed"].startswith("scrolling allows ")

    (log.folder / "own_mine.py").write_text(MINE)
    ran = log("check", run, "--chart", "own_mine:chart")
    assert (ran.status, "are by the chart social_feed, not mine" in ran.err) == (2, True)


@pytest.mark.slow
def test_without_duckdb_the_extra_is_named(run: Path) -> None:
    """Without DuckDB a table is refused with the install command; other commands work."""
    blocked = "import sys; sys.modules['duckdb'] = None; from prism.cli import main; main()"
    command = [sys.executable, "-c", blocked, "log"]
    done = subprocess.run([*command, "states", str(run)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("prism: the package 'duckdb' of the extra 'analysis'")
    done = subprocess.run([*command, "--help"], capture_output=True, text=True)
    assert done.returncode == 0
