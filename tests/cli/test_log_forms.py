"""``prism log agents``, ``states``, ``faults`` and ``costs``, as people and programs read them."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.kit import processes
from tests.kit.commands import Prism

WriteLog = Callable[..., Path]


@pytest.fixture
def log(prism: Prism) -> Prism:
    """Return ``prism log``, in an empty folder."""
    return replace(prism, group=("log",))


@pytest.mark.slow
def test_faults_are_said_with_every_table(
    log: Prism, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Guards and actions that raised are noted by whatever table is made, and listed by faults."""
    ends = {"chart": "c", "agent_id": "ann", "from_state": "a", "to_state": "b", "trigger": "go"}
    names = ("statechart.guard_failed", "statechart.action_failed", "statechart.action_failed")
    path = write_log(
        [make.move("ann", "a", "b"), *(make.event(name, **ends, error="E: x") for name in names)]
    )
    for table in ("transitions", "faults", "agents"):
        first, second = log(table, path).err.splitlines()
        assert "line 2: a guard raised an exception once, and counted as false" in first
        assert "line 3: an action raised an exception 2 times" in second

    rows = log("faults", path, "--format", "json").rows
    assert [(row["fault"], row["count"]) for row in rows] == [
        ("guard_failed", 1),
        ("action_failed", 2),
    ]
    assert "guard_failed" in log("faults", path).out


def test_a_log_is_read_from_standard_input(folder: Path) -> None:
    """A hyphen in the place of a run is standard input, whether a pipe or a file."""
    command = [sys.executable, "-c", "from prism.cli import main; main()", "log", "transitions"]
    log = (folder / "events.jsonl").read_bytes()
    piped = processes.run([*command, "-"], input=log, capture_output=True, check=True)
    named = processes.run([*command, folder], capture_output=True, check=True)
    assert piped.stdout == named.stdout


def test_costs_say_the_money_that_a_run_spent(
    log: Prism, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Below the table stands what the summary of the run has, of which a log knows no prices."""
    asked = make.decision("x", ["a"], "a", source="model", model="tiny", latency=1.5, attempts=1)
    path = write_log([make.started(), asked, make.event("run.ended")])
    spent = {"calls": 1, "tokens": 30, "money": 2.5}
    summary = {"prism": "0.1.0", "schema": 1, "config": {}, "results": {}, "spent": spent}
    (path.parent / "run.json").write_text(json.dumps(summary), encoding="utf-8")
    assert "spent: 1 call, 30 tokens, 2.50 by its prices" in log("costs", path.parent).out
    assert "max" in log("decisions", path.parent).out.split()
