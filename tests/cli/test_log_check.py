"""``prism log check``: a log against a chart."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from tests.cli.test_log import simulated
from tests.kit.commands import Prism

TINY = {
    "schema": 2,
    "name": "social_feed",
    "states": ["idle"],
    "initial": "idle",
    "transitions": [],
}
"""A chart that hardly any step of a run follows."""


@pytest.fixture
def log(prism: Prism) -> Prism:
    """Return ``prism log``, in an empty folder."""
    return replace(prism, group=("log",))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run."""
    return simulated(tmp_path_factory.mktemp("checked") / "run", "--agents", "24", "--rounds", "3")


@pytest.mark.slow
def test_check_of_a_sound_run_passes(run: Path, log: Prism) -> None:
    """A run agrees with its chart: status 0, no output, and the number of steps checked."""
    said = log("check", run, "--chart", "social_feed")
    assert (said.status, said.out) == (0, "")
    assert said.err.startswith("prism: ")
    assert said.err.endswith(" steps and 24 first states agree\n")


def test_check_reports_violations(run: Path, log: Prism) -> None:
    """Violations have line and agent, are counted by kind, and end with status 1 in any format."""
    text = (
        (run / "events.jsonl").read_text().replace('"trigger":"sees_post"', '"trigger":"snubs"', 2)
    )
    (log.folder / "log.jsonl").write_text(text)
    said = log("check", "log.jsonl", "--chart", "social_feed")
    assert said.status == 1
    assert said.out.count("unknown_trigger") == 2
    assert max(map(len, said.out.splitlines())) <= 80
    assert said.err.startswith("prism: 2 violations in ")
    assert said.err.endswith(" steps and 24 first states (unknown_trigger 2)\n")
    as_json = log("check", "log.jsonl", "--chart", "social_feed", "--format", "json")
    assert as_json.status == 1
    (first, _) = as_json.rows
    assert (first["kind"], first["found"]) == ("unknown_trigger", "snubs")
    assert first["allowed"].startswith("scrolling allows ")


def test_check_writes_every_violation(run: Path, log: Prism) -> None:
    """Formats for programs have every violation; a drawn table says how many there are."""
    (log.folder / "tiny.json").write_text(json.dumps(TINY))
    arguments = ("check", run, "--chart", "tiny.json")
    as_csv = list(csv.DictReader(io.StringIO(log(*arguments, "--format", "csv").out)))
    as_json = log(*arguments, "--format", "json").rows
    said = log(*arguments, "-o", "all.parquet")
    as_parquet = pl.read_parquet(log.folder / "all.parquet")
    assert as_json == as_parquet.to_dicts()
    assert [{**row, "line": str(row["line"])} for row in as_json] == as_csv
    assert len(as_csv) > 1000
    assert said.err.startswith(f"prism: {len(as_csv):,} violations in ")
    assert f"the first 40 rows of {len(as_csv):,}; all with --format csv" in log(*arguments).out


def test_check_against_a_chart_of_a_module(run: Path, log: Prism) -> None:
    """A chart can come from a module; a log of another chart has nothing to check."""
    (log.folder / "mine.py").write_text(
        "from prism.statechart import Statechart, Transition, state_enum\n"
        "S = state_enum('S', ['a', 'b'])\n"
        "chart = Statechart(S, [Transition('go', S('a'), S('b'))], S('a'), name='mine')\n"
    )
    move = {
        "event": "statechart.transition",
        "agent_id": "x",
        "chart": "mine",
        "from_state": "a",
        "to_state": "b",
    }
    lines = [
        json.dumps({**move, "trigger": "go"}),
        json.dumps({**move, "chart": "else", "trigger": "go"}),
    ]
    (log.folder / "mine.jsonl").write_text("\n".join(lines) + "\n")
    said = log("check", "mine.jsonl", "--chart", "mine:chart")
    assert (said.status, said.err) == (
        0,
        "prism: 1 steps agree; 1 transitions by the chart else not checked\n",
    )
    said = log("check", "mine.jsonl", "--chart", "social_feed")
    assert said.status == 2
    assert (
        "nothing to check: its transitions are by the chart else, mine, not social_feed" in said.err
    )
