"""Who follows whom, in a log that tells it."""

from pathlib import Path

import pytest

from prism.agents import synthetic_population
from prism.analysis import follow_networks, follows, read_log
from prism.runlog import RunLog, SimulatedClock
from prism.runs import begin
from prism.social import Parameters, RemoveAgents, Simulation, SocialRun


def test_the_graph_is_made_again_from_the_log(tmp_path: Path) -> None:
    """All follows stand in the table, with networkx's mean and reciprocity in the other."""
    networkx = pytest.importorskip("networkx")
    population, clock = synthetic_population(60), SimulatedClock()
    changed = Parameters(network="scale_free", mean_follows=5, logs_follows=True)
    with RunLog(tmp_path / "run.jsonl", clock) as log:
        run = Simulation(
            population.agents, rounds=1, parameters=changed, logger=log.logger, clock=clock
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
    begin(SocialRun(30, rounds=2, treatments=(gone,), parameters=parameters), run)

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
        Simulation(
            population.agents, rounds=1, parameters=Parameters(), logger=log.logger, clock=clock
        ).run()

    logs = read_log(log.path)
    assert follows(logs).is_empty()
    assert follow_networks(logs).is_empty()
    assert {note.kind for note in logs.notes} == {"no_follows"}
