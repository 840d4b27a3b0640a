"""``prism log``: tables of a run's log, as a person and as a program reads them."""

import csv
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.kit import processes
from tests.kit.commands import Prism

TABLES = [
    "states",
    "transitions",
    "dwell",
    "decisions",
    "participation",
    "cascades",
    "agent",
]
COLUMNS = {
    "states": ["round", "tick", "state", "agents", "share"],
    "transitions": ["from_state", "to_state", "trigger", "count", "probability"],
}


@pytest.fixture
def log(prism: Prism) -> Prism:
    """Return ``prism log``, in an empty folder."""
    return replace(prism, group=("log",))


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run."""
    return simulated(tmp_path_factory.mktemp("logged") / "run", "--agents", "40", "--rounds", "3")


def simulated(folder: Path, *options: str) -> Path:
    """Make a run, and return its folder."""
    assert Prism(folder.parent)("simulate", "--seed", 5, "--out", folder, *options).status == 0
    return folder


def arguments_for(table: str, run: Path) -> list[str | Path]:
    """Return the arguments of a table's command."""
    return ["agent", "agent_0001", run] if table == "agent" else [table, run]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.sampled(14)
def test_every_table_is_readable_in_80_columns(
    table: str, several: bool, run: Path, log: Prism
) -> None:
    """Every table fits the terminal, with no heading or number cut, and without notes."""
    (log.folder / "other.jsonl").write_bytes((run / "events.jsonl").read_bytes())
    said = log(*arguments_for(table, run), *(["other.jsonl"] if several else []))
    assert (said.status, said.err) == (0, "")
    lines = said.out.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    ruler = next(line for line in lines if "─" in line)
    assert len(ruler.rstrip()) < 80  # one that fills the line may have been cut
    assert "…" not in said.out
    assert len(lines) > 4


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.sampled(7)
def test_every_format_has_the_same_rows(table: str, run: Path, log: Prism) -> None:
    """CSV, JSON and Parquet have the same columns and rows."""
    arguments = arguments_for(table, run)
    as_csv = list(csv.DictReader(io.StringIO(log(*arguments, "--format", "csv").out)))
    as_json = log(*arguments, "--format", "json").rows
    said = log(*arguments, "-o", "table.parquet")
    assert (said.status, said.out, said.err) == (0, "", "")
    as_parquet = pl.read_parquet(log.folder / "table.parquet")
    assert len(as_csv) == len(as_json) == as_parquet.height > 0
    assert list(as_csv[0]) == list(as_json[0]) == as_parquet.columns
    assert as_parquet.columns[: len(COLUMNS.get(table, []))] == COLUMNS.get(table, [])


def test_drawn_states_are_those_at_the_ends_of_rounds(run: Path, log: Prism) -> None:
    """Drawn states are those of the run's summary, with a hint at the other ticks."""
    said = log("states", run)
    summary = json.loads((run / "run.json").read_text())
    split = [line.split() for line in said.out.splitlines()]
    rows = {
        cells[0]: [*map(int, cells[1:])]
        for cells in split
        if len(cells) == 4 and cells[1].isdigit()
    }
    assert rows.pop("state") == [1, 2, 3]
    for number, each in enumerate(summary["results"]["rounds"]):
        assert {state: counts[number] for state, counts in rows.items() if counts[number]} == {
            state: count for state, count in each["states"].items() if count
        }
    assert "Agents at the end of 3 of 3 rounds; --format csv has every tick" in said.out


def drawn_by_run(text: str) -> dict[str, dict[str, list[str]]]:
    """Return the cells of a drawn table of several runs, by run and state."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in text.splitlines():
        cells = line.split()
        if (
            len(cells) > 2
            and cells[1] != "state"
            and all(cell.isdigit() or cell == "-" for cell in cells[2:])
        ):
            found.setdefault(cells[0], {})[cells[1]] = cells[2:]
    return found


def test_unfinished_run_is_drawn_beside_a_finished_one(run: Path, log: Prism) -> None:
    """A run that was stopped in its second round is drawn up to there."""
    lines = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    middle = next(n for n, line in enumerate(lines) if json.loads(line).get("round") == 2) + 40
    (log.folder / "stopped.jsonl").write_bytes(b"".join(lines[:middle]))
    drawn = drawn_by_run(log("states", run, "stopped.jsonl").out)
    assert list(drawn) == ["run", "stopped"]
    for state, (first, second, third) in drawn["stopped"].items():
        assert first == drawn["run"].get(state, ["0"])[0]
        assert second.isdigit()
        assert third == "-"
    assert sum(int(cells[1]) for cells in drawn["stopped"].values()) == 40


@pytest.mark.slow
def test_long_table_says_how_to_get_the_rest(log: Prism) -> None:
    """A long table is cut after 40 rows and says so; in a file it is whole."""
    run = simulated(log.folder / "many", "--agents", "50", "--rounds", "1")
    said = log("agents", run)
    assert "the first 40 rows of " in said.out
    assert "all with --format csv" in said.out
    log("agents", run, "-o", "all.txt")
    count = len(log("agents", run, "--format", "json").rows)
    assert count > 40
    whole = (log.folder / "all.txt").read_text().splitlines()
    assert sum(line.startswith(" agent_0") for line in whole) == count


def test_decisions_are_grouped_by_the_option(run: Path, log: Prism) -> None:
    """``decisions_by`` takes the groups; an unknown name is refused in one line."""
    rows = log("decisions_by(['source', 'round'])", run, "--format", "json").rows
    assert [(row["source"], row["round"]) for row in rows] == [
        ("policy", 1),
        ("policy", 2),
        ("policy", 3),
    ]
    said = log("decisions_by(['colour'])", run)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("prism: decisions_by cannot group by colour: use columns of events")


def test_a_query_is_a_table(run: Path, log: Prism) -> None:
    """Its rows are drawn or written like those of a table; a wrong name is refused with a list."""
    query = 'select "trigger", count(*) as n from events where to_state is not null group by all'
    rows = log(query, run, "--format", "json").rows
    assert {row["trigger"] for row in rows} >= {"decides", "sees_post"}
    assert log(query, run, "-o", "n.csv").status == 0
    assert "sees_post" in (log.folder / "n.csv").read_text()
    for wrong in ("staets", "select stat from states", "drop table events"):
        said = log(wrong, run)
        assert (said.status, said.out) == (2, "")
        assert said.err.count("\n") == 1
    assert "the tables are runs, " in log("select stat from states", run).err


def test_ids_and_whole_numbers_are_not_changed(log: Prism) -> None:
    """An id that begins as a formula, and a number beyond what a float holds, stay as they are."""
    event = {"event": "agent.joined", "agent_id": "@user", "state": "=a", "following": 2**53 + 1}
    (log.folder / "odd.jsonl").write_text(json.dumps(event) + "\n")
    (row,) = csv.DictReader(io.StringIO(log("agents", "odd.jsonl", "--format", "csv").out))
    assert (row["agent_id"], row["state"]) == ("@user", "=a")
    query = "select following from events"
    assert log(query, "odd.jsonl", "--format", "csv").out == f"following\n{2**53 + 1}\n"


def test_notes_go_to_stderr_one_line_each(run: Path, log: Prism) -> None:
    """Notes on a log go to standard error, a line each, and the table is printed all the same."""
    data = (run / "events.jsonl").read_bytes().splitlines(keepends=True)
    broken = log.folder / "broken.jsonl"
    broken.write_bytes(
        b"".join(
            [*data[:50], b"garbage\n", b'{"event":"app.hello"}\n', *data[50:-30], data[-30][:40]]
        )
    )
    said = log("transitions", broken, "--format", "csv")
    assert said.status == 0
    assert said.out.startswith("from_state,")
    lines = said.err.splitlines()
    assert lines == [
        f"prism: {broken}, line 51: is not valid JSON and is left out",
        f"prism: {broken}, line {len(data) - 27:,}: is cut off and is left out",
        f"prism: {broken}: 1 event that is not prism's is left out: app.hello 1",
        f"prism: {broken}: broken has not ended: it is still running, or was stopped",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty: nothing has been written to it"),
        (b'{"event":"app"}\n', "contains no events of prism"),
        (None, "no such file or folder"),
    ],
)
@pytest.mark.parametrize("table", ["states", "transitions"])
@pytest.mark.sampled(6)
def test_nothing_to_show_is_status_2(
    content: bytes | None, problem: str, table: str, log: Prism
) -> None:
    """An empty or missing log is reported, and ends with status 2."""
    if content is not None:
        (log.folder / "log.jsonl").write_bytes(content)
    said = log(table, "log.jsonl")
    assert (said.status, said.out) == (2, "")
    assert problem in said.err.splitlines()[-1]
    assert all(line.startswith("prism: log.jsonl") for line in said.err.splitlines())


def test_unknown_agent_is_status_2(run: Path, log: Prism) -> None:
    """An unknown agent is reported in one line."""
    said = log("agent", "nobody", run)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(
        "prism: no agent 'nobody' in the log; the first in it are agent_0001, "
    )
    assert said.err.count("\n") == 1


def test_parquet_is_not_for_a_terminal(run: Path, log: Prism) -> None:
    """Parquet is refused on a terminal, and written into a pipe."""
    said = log.on_terminal("transitions", run, "--format", "parquet")
    assert (said.status, said.out.replace("\r", "")) == (
        2,
        "prism: --format parquet cannot be shown on a terminal: name a file with --out, or pipe "
        "the output\n",
    )
    assert (
        pl.read_parquet(io.BytesIO(log("transitions", run, "--format", "parquet").stdout)).height
        > 5
    )


def test_file_that_cannot_be_written_is_one_line(run: Path, log: Prism) -> None:
    """An output that cannot be written is named, with status 2."""
    said = log("transitions", run, "-o", "nowhere/table.csv")
    assert (said.status, said.out) == (2, "")
    assert said.err == "prism: nowhere/table.csv: cannot be written to: No such file or directory\n"


@pytest.mark.slow
def test_without_duckdb_the_extra_is_named(run: Path) -> None:
    """Without DuckDB a table is refused with the install command; other commands work."""
    blocked = "import sys; sys.modules['duckdb'] = None; from prism.cli import main; main()"
    done = processes.run(
        [sys.executable, "-c", blocked, "log", "states", str(run)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "prism: prism.analysis needs the package 'duckdb', which is not installed: run"
    )
    done = processes.run(
        [sys.executable, "-c", blocked, "log", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
