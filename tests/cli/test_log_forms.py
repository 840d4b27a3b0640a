"""``prism log agents``, ``interactions`` and ``why``, as a person and as a program reads them."""

import csv
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.analysis import interactions, read_log, reasons
from tests.kit import processes
from tests.kit.commands import Prism
from tests.kit.later import Later
from tests.kit.logs import AGENTS

networkx = Later("networkx")

WriteLog = Callable[..., Path]


@pytest.fixture
def log(prism: Prism) -> Prism:
    """Return ``prism log``, in an empty folder."""
    return replace(prism, group=("log",))


@pytest.mark.parametrize("arguments", [["agents"], ["interactions"], ["why", "agent_0001"]])
@pytest.mark.slow
def test_the_tables_are_readable_in_80_columns(
    arguments: list[str], folder: Path, log: Prism
) -> None:
    """Every table fits a terminal of 80 columns, and all formats have the same rows."""
    said = log(*arguments, folder)
    assert (said.status, said.err) == (0, "")
    assert max(len(line.rstrip()) for line in said.out.splitlines()) <= 80
    rows = log(*arguments, folder, "--format", "json").rows
    assert len(
        list(csv.DictReader(io.StringIO(log(*arguments, folder, "--format", "csv").out)))
    ) == (len(rows))
    assert log(*arguments, folder, "-o", "table.parquet").status == 0
    assert pl.read_parquet(log.folder / "table.parquet").height == len(rows) > 5


@pytest.mark.slow
def test_why_shows_relevance_and_choice(folder: Path, log: Prism) -> None:
    """The table to read has relevance and threshold, and what was chosen why."""
    lines = log("why", "agent_0001", folder).out.splitlines()
    heading = next(line for line in lines if "relevance" in line)
    for name in ("round", "tick", "post id", "threshold", "why"):
        assert name in heading
    rows = log("why", "agent_0001", folder, "--format", "json").rows
    assert [row["relevance"] for row in rows] == reasons(read_log(folder), "agent_0001")[
        "relevance"
    ].to_list()


@pytest.mark.slow
def test_why_says_what_an_older_log_lacks(
    log: Prism, write_log: WriteLog, events: list[dict[str, Any]]
) -> None:
    """A log without weighings gives the table all the same, and one line on standard error."""
    path = write_log([each for each in events if each["event"] != "post.weighed"])
    said = log("why", "agent_0001", path)
    assert said.status == 0
    assert "has no relevance and threshold" in said.err
    assert said.err.count("\n") == 1


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
def test_an_edge_list_is_read_by_networkx(folder: Path, log: Prism) -> None:
    """Edges, printed or in a file of that name, are the pairs of the table, with their totals."""
    said = log("interactions", folder, "--format", "edges")
    assert log("interactions", folder, "-o", "run.edges").status == 0
    assert (log.folder / "run.edges").read_bytes() == said.stdout
    graph = networkx.parse_edgelist(
        said.out.splitlines(),
        delimiter="\t",
        data=[("weight", int)],
        create_using=networkx.DiGraph,
    )
    pairs = interactions(read_log(folder)).select("agent_id", "author_id", "total").rows()
    assert {(*pair, graph.edges[pair]["weight"]) for pair in graph.edges} == set(pairs)


@pytest.mark.slow
def test_graphml_is_read_by_networkx(folder: Path, log: Prism) -> None:
    """GraphML, printed or in a file of that name, has every agent, and pairs with their counts."""
    said = log("interactions", folder, "--format", "graphml")
    assert log("interactions", folder, "-o", "run.graphml").status == 0
    assert (log.folder / "run.graphml").read_bytes() == said.stdout
    graph = networkx.read_graphml(log.folder / "run.graphml")
    assert graph.number_of_nodes() == AGENTS
    assert {
        (*pair, *(graph.edges[pair][name] for name in ("replies", "reshares", "likes", "weight")))
        for pair in graph.edges
    } == set(interactions(read_log(folder)).rows())


def test_agents_that_xml_cannot_tell_apart_are_refused(log: Prism) -> None:
    """Ids that differ in control characters alone would be one agent; CSV holds both."""
    pytest.importorskip("networkx")
    liked = {"event": "post.liked", "post_id": "p", "author_id": "bo", "round": 1}
    lines = [json.dumps({**liked, "agent_id": f"ann{end}"}) for end in "\x01\x02"]
    (log.folder / "run.jsonl").write_text("\n".join([*lines, ""]))
    refused = log("interactions", "run.jsonl", "--format", "graphml")
    assert refused.status == 2
    assert "several agents would be written as 'ann" in refused.err
    assert "use --format csv" in refused.err
    rows = log("interactions", "run.jsonl", "--format", "csv").out.splitlines()
    assert [row.partition(",")[0] for row in rows[1:]] == ["ann\x01", "ann\x02"]


NAMES = ["plain", "a b", "Zoë", "<&\"'>", "tab\there", "\x01\x1f", "line\nbreak", "#", "\ufffe", ""]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(12)
def test_any_name_can_be_written(
    name: str, log: Prism, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Whatever an agent is called, GraphML is sound XML; an edge list is sound or refused."""
    joined = make.joined(name, display_name=name, archetype=None)
    path = write_log([joined, make.post(name, "p1"), make.like("ben", "p1", name)])
    assert log("interactions", path, "-o", "run.graphml").status == 0
    graph = networkx.read_graphml(log.folder / "run.graphml")
    assert graph.number_of_nodes() == 2
    assert [edge["likes"] for _, _, edge in graph.edges(data=True)] == [1]

    said = log("interactions", path, "--format", "edges")
    is_sound = name and not set("\t\n\r#") & set(name)
    assert (said.status, said.out) == ((0, f"ben\t{name}\t1\n") if is_sound else (2, ""))


@pytest.mark.parametrize("as_format", ["edges", "graphml"])
@pytest.mark.sampled(2)
def test_a_network_is_of_one_run(as_format: str, folder: Path, log: Prism) -> None:
    """Two runs are not mixed in one network, and a file that cannot be written is one line."""
    (log.folder / "other.jsonl").write_bytes((folder / "events.jsonl").read_bytes())
    said = log("interactions", folder, "other.jsonl", "--format", as_format)
    assert (said.status, said.out) == (2, "")
    assert "one run" in said.err
    said = log("interactions", folder, "-o", f"nowhere/run.{as_format}")
    assert (said.status, said.err.count("\n")) == (2, 1)
    assert "cannot be written to" in said.err


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
