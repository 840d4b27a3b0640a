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


@pytest.mark.slow
def test_agents_can_be_sorted_by_the_states_they_entered(
    log: Prism, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """The largest come first in every format, and a column that is not there is refused."""
    moves = [make.move("x", "a", "b"), make.move("y", "a", "b"), make.move("y", "b", "a")]
    path = write_log([make.started(), *moves, make.move("y", "a", "b")])
    rows = log("agents", path, "--entered", "--sort", "b", "--format", "json").rows
    assert [(row["agent_id"], row["b"]) for row in rows] == [("y", 2), ("x", 1)]
    rows = log("agents", path, "--entered", "--sort", "transitions", "--format", "json").rows
    assert [(row["agent_id"], row["transitions"]) for row in rows] == [("y", 3), ("x", 1)]
    refused = log("agents", path, "--sort", "c")
    assert (refused.status, "use one of agent_id" in refused.err) == (2, True)


def test_fields_of_agents_are_said_to_be_of_the_beginning(
    log: Prism, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A printed field says that it is as the agent joined; programs get its name alone."""
    joined = make.joined("x", attributes={"fatigue": 0.5})
    path = write_log([make.started(world="Town"), joined, make.move("x", "idle", "b")])
    assert {"fatigue", "at", "first"} <= {*log("agents", path).out.split()}
    assert log("agents", path, "--format", "json").rows[0]["fatigue"] == 0.5


def test_a_log_is_read_from_standard_input(folder: Path) -> None:
    """A hyphen in the place of a run is standard input, whether a pipe or a file."""
    command = [sys.executable, "-c", "from prism.cli import main; main()", "log", "transitions"]
    log = (folder / "events.jsonl").read_bytes()
    piped = processes.run([*command, "-"], input=log, capture_output=True, check=True)
    named = processes.run([*command, folder], capture_output=True, check=True)
    assert piped.stdout == named.stdout


@pytest.mark.slow
def test_states_of_one_round(folder: Path, log: Prism) -> None:
    """With a round, its ticks are printed, and other formats have no other; 99 is refused."""
    out = log("states", folder, "--round", "2").out
    assert "tick" in out
    rows = log("states", folder, "--round", "2", "--format", "json").rows
    assert {row["round"] for row in rows} == {2}
    assert log("states", folder, "--round", "99").status == 2


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
