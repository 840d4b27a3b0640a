"""Who interacts with whom, and who follows whom."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism import Run
from prism.agents import synthetic_population
from prism.analysis import follow_networks, follows, interaction_graph, interactions, read_log
from prism.errors import InputError, MissingExtraError
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed, Parameters, RemoveAgents

WriteLog = Callable[..., Path]

KINDS = {"reply": "replies", "reshare": "reshares"}


def counted(events: list[dict[str, Any]]) -> dict[tuple[str, str], Counter[str]]:
    """Return the interactions of a log, read the plain way."""
    authors = {
        event["post_id"]: event["agent_id"]
        for event in events
        if event["event"] == "post.published"
    }
    found: dict[tuple[str, str], Counter[str]] = {}
    for event in events:
        if event["event"] == "post.liked":
            pair, what = (event["agent_id"], event["author_id"]), "likes"
        elif event["event"] == "post.published" and event["kind"] in KINDS:
            pair, what = (event["agent_id"], authors[event["parent_id"]]), KINDS[event["kind"]]
        else:
            continue
        found.setdefault(pair, Counter())[what] += 1
    return found


def test_interactions_are_those_of_the_log(folder: Path, events: list[dict[str, Any]]) -> None:
    """Every pair has the replies, reshares and likes that a plain reading of the log gives."""
    table = interactions(read_log(folder))
    found = {
        (row["agent_id"], row["author_id"]): {
            name: row[name] for name in ("replies", "reshares", "likes") if row[name]
        }
        for row in table.iter_rows(named=True)
    }
    assert found == {pair: dict(counts) for pair, counts in counted(events).items()}
    assert table["total"].to_list() == sorted(
        (counts.total() for counts in counted(events).values()), reverse=True
    )


def test_the_graph_has_every_agent_and_pair(folder: Path, events: list[dict[str, Any]]) -> None:
    """Nodes are all agents with their facts, and edges have the counts and their sum as weight."""
    graph = interaction_graph(read_log(folder))
    joined = [event for event in events if event["event"] == "agent.joined"]
    assert {name: graph.nodes[name]["archetype"] for name in graph} == {
        event["agent_id"]: event["archetype"] for event in joined
    }
    assert {
        (agent, author): (edge["likes"], edge["weight"])
        for agent, author, edge in graph.edges(data=True)
    } == {pair: (counts["likes"], counts.total()) for pair, counts in counted(events).items()}


def test_a_post_that_is_lost_has_no_author(write_log: WriteLog, make: SimpleNamespace) -> None:
    """An answer to a post that is not in the log counts with an unknown author, and in no graph."""
    lines = [make.post("ann", "p2", "p1"), make.like("ann", "p9", "ben"), make.joined("cat")]
    logs = read_log(write_log(lines))
    assert interactions(logs).rows() == [("ann", None, 1, 0, 0, 1), ("ann", "ben", 0, 0, 1, 1)]
    graph = interaction_graph(logs)
    assert sorted(graph) == ["ann", "ben", "cat"]
    assert list(graph.edges) == [("ann", "ben")]


def test_a_like_tells_whose_a_lost_post_was(write_log: WriteLog, make: SimpleNamespace) -> None:
    """An answer to a post that is not in the log has the author that a like of the post names."""
    logs = read_log(write_log([make.post("ann", "p2", "p1"), make.like("cat", "p1", "ben")]))
    assert interactions(logs).rows() == [("ann", "ben", 1, 0, 0, 1), ("cat", "ben", 0, 0, 1, 1)]


@pytest.mark.usefixtures("small_blocks")
def test_an_author_may_come_after_the_answer(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Blocks that begin between a post and its answers, or a wrong order, lose no author."""
    padding = make.event("my.own", text="x" * 200)
    lines = [make.post("ann", "p2", "p1"), *[padding] * 100, make.post("ben", "p1")]
    assert interactions(read_log(write_log(lines))).rows() == [("ann", "ben", 1, 0, 0, 1)]


def test_runs_are_told_apart(write_log: WriteLog, make: SimpleNamespace) -> None:
    """The same ids in two runs are different agents, and a graph of both is refused."""
    lines = [make.post("ann", "p1"), make.like("ben", "p1", "ann")]
    logs = read_log(write_log(lines, "a.jsonl"), write_log(lines, "b.jsonl"))
    assert interactions(logs).select("run", "total").rows() == [("a", 1), ("b", 1)]
    with pytest.raises(InputError, match="a graph shows one run, but there are 2"):
        interaction_graph(logs)


def test_without_networkx_the_extra_is_named(
    write_log: WriteLog, make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where networkx is missing the error carries the command that installs it."""
    logs = read_log(write_log([make.move("x", "a", "b")]))
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'prism-statecharts\[science\]'"):
        interaction_graph(logs)


def test_the_graph_is_made_again_from_the_log(tmp_path: Path) -> None:
    """All follows stand in the table, with networkx's mean and reciprocity in the other."""
    networkx = pytest.importorskip("networkx")
    population, clock = synthetic_population(60), SimulatedClock()
    changed = Parameters(network="scale_free", mean_follows=5, logs_follows=True)
    with RunLog(tmp_path / "run.jsonl", clock) as log:
        run = Run(
            Feed(first_posts=(), parameters=changed),
            population.agents,
            rounds=1,
            logger=log.logger,
            clock=clock,
        )
        run.run()

    logs = read_log(log.path)
    pairs = follows(logs)
    told = set(pairs.select("agent_id", "author_id").iter_rows())
    assert told == {(agent.agent_id, other) for agent in run.agents for other in agent.following}
    assert all(mutual == ((b, a) in told) for a, b, mutual, _ in pairs.iter_rows())

    (row,) = follow_networks(logs).iter_rows(named=True)
    graph = networkx.DiGraph(list(told))
    assert (row["agents"], row["follows"], row["mean_follows"]) == (60, 300, 5.0)
    assert row["reciprocity"] == pytest.approx(networkx.overall_reciprocity(graph))
    assert row["most_followers"] == max(degree for _, degree in graph.in_degree())


def test_follows_end_with_whom_they_lead_from_and_to(tmp_path: Path) -> None:
    """The follows of and to an agent that is removed have the round of that, and no others."""
    run = tmp_path / "run"
    parameters = Parameters(logs_follows=True)
    gone = RemoveAgents(2, agents=("agent_0007",))
    Run(Feed, 30, rounds=2, treatments=(gone,), parameters=parameters).keep(run)

    pairs = follows(read_log(run))
    ended = {(one, other): number for one, other, _, number in pairs.iter_rows()}
    assert {pair for pair, number in ended.items() if number == 2} == {
        pair for pair in ended if "agent_0007" in pair
    }
    assert set(ended.values()) == {None, 2}


def test_a_log_that_does_not_tell_is_noted(tmp_path: Path) -> None:
    """Both tables are empty then, and a note says what to do."""
    population, clock = synthetic_population(5), SimulatedClock()
    with RunLog(tmp_path / "run.jsonl", clock) as log:
        Run(
            Feed(first_posts=(), parameters=Parameters.preset("classic")),
            population.agents,
            rounds=1,
            logger=log.logger,
            clock=clock,
        ).run()

    logs = read_log(log.path)
    assert follows(logs).is_empty()
    assert follow_networks(logs).is_empty()
    assert {note.kind for note in logs.notes} == {"no_follows"}
