"""The success criteria of ``spec/spec.md``."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from prism.statechart import AgentState, agents_in_state, social_media_chart, state_distribution
from prism.telemetry.events import DECISION, TRANSITION
from prism.worlds import WorldResults, WorldRound

AGENTS, ROUNDS = 100, 10


@dataclass(frozen=True)
class Ran:
    """A run of a hundred agents, and what could be asked of them while it went on."""

    agents: list[SocialAgent]
    results: WorldResults
    events: list[dict[str, Any]]
    states: list[dict[str, AgentState]]
    distributions: list[dict[AgentState, int]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run a hundred agents for ten rounds, asking for their states after every one."""
    path: Path = tmp_path_factory.mktemp("run") / "events.jsonl"
    population = synthetic_population(AGENTS)
    clock = SimulatedClock()
    states: list[dict[str, AgentState]] = []
    distributions: list[dict[AgentState, int]] = []

    def ask(summary: WorldRound) -> None:
        states.append({agent.agent_id: agent.state for agent in simulation.agents})
        distributions.append(state_distribution(simulation.agents))

    with RunLog(path, clock) as log:
        simulation = Run(
            Feed(first_posts=population.posts),
            population.agents,
            rounds=ROUNDS,
            logger=log.logger,
            clock=clock,
        )
        results = simulation.run(ask)
    events = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    return Ran(simulation.agents, results, events, states, distributions)


def test_no_deadlocks(run: Ran) -> None:
    """A simulation of 100 agents finishes its 10 rounds, every agent having had every tick."""
    assert [summary.number for summary in run.results.rounds] == list(range(1, ROUNDS + 1))
    assert run.results.totals()["agent_ticks"] == AGENTS * ROUNDS * 12


def test_state_is_queryable_in_every_round(run: Ran) -> None:
    """Every agent reports a valid state after every round, alone, by count and by distribution."""
    assert len(run.states) == ROUNDS
    for states, distribution in zip(run.states, run.distributions, strict=True):
        assert len(states) == AGENTS
        assert all(state in AgentState for state in states.values())
        assert distribution == {state: Counter(states.values())[state] for state in AgentState}
    assert sum(agents_in_state(state, run.agents) for state in AgentState) == AGENTS


def test_every_change_of_state_is_traced(run: Ran) -> None:
    """Every agent has a history, and no agent is in a state that its last entry did not lead to."""
    assert all(len(agent.state_history) > 0 for agent in run.agents)
    assert all(agent.state_history[-1].to_state == agent.state for agent in run.agents)
    moves = Counter(event["agent_id"] for event in run.events if event["event"] == TRANSITION)
    assert all(len(agent.state_history) == min(moves[agent.agent_id], 50) for agent in run.agents)


@pytest.mark.parametrize(
    "state",
    [
        AgentState.EVALUATING,
        AgentState.COMPOSING,
        AgentState.ENGAGING_LIKE,
        AgentState.ENGAGING_REPLY,
        AgentState.ENGAGING_RESHARE,
    ],
)
def test_stuck_agent_recovers(state: AgentState) -> None:
    """An agent stuck for 10 ticks is back in SCROLLING at the next, alone or in a run."""
    chart = social_media_chart()
    agent = SocialAgent("stuck", state=state, ticks_in_state=10)
    assert agent.is_timed_out()
    assert chart.tick(agent) is AgentState.SCROLLING
    assert (agent.state, agent.ticks_in_state) == (AgentState.SCROLLING, 0)

    feed, stuck = Feed(first_posts=()), SocialAgent("stuck", state=state, ticks_in_state=10)
    results = Run(feed, [stuck], rounds=1, ticks=1).run()
    assert results.rounds[0].states["scrolling"] == 1
    assert results.totals()["timeouts"] == {state.value: 1}
    assert feed.agents[0].state_history[0].trigger == "timeout"


def test_reasoner_is_asked_only_where_it_is_ambiguous(run: Ran) -> None:
    """Decisions are logged only for EVALUATING agents, with several options and one chosen."""
    states = dict.fromkeys((agent.agent_id for agent in run.agents), "idle")
    decisions = 0
    for event in run.events:
        if event["event"] == TRANSITION:
            states[event["agent_id"]] = event["to_state"]
        elif event["event"] == DECISION:
            decisions += 1
            assert states[event["agent_id"]] == event["state"] == "evaluating"
            assert event["chosen"] in event["options"]
            assert len(event["options"]) > 1
    assert decisions == run.results.totals()["decisions_asked"] > 100
