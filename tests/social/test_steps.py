"""What parameters change in what agents do."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prism.agents import SocialAgent, synthetic_population
from prism.errors import FieldValueError
from prism.social import Feed, Parameters, Simulation, SocialRun
from prism.statechart import AgentState, PolicyReasoner
from prism.testing import LateReasoner
from prism.worlds import treatment
from tests.kit.worlds import run_in

LIVELY = Parameters.preset(
    "twitter", posts_per_tick=0.03, compose_chance=0.2, engagement=0.0, most_chance=0.6
)


def ran(parameters: Parameters, agents: int = 80, **options: Any) -> Simulation:
    population = synthetic_population(agents, seed=1).agents
    simulation = Simulation(population, None, seed=1, parameters=parameters, **options)
    simulation.run()
    return simulation


def test_a_root_is_reshared_once_by_an_agent() -> None:
    """However often a cascade comes by; and answered as often as the parameters say."""
    posts = ran(LIVELY).network.posts
    reshares = Counter((post.author_id, post.root) for post in posts if post.kind == "reshare")
    replies = Counter((post.author_id, post.root) for post in posts if post.kind == "reply")
    assert len(reshares) > 50
    assert set(reshares.values()) == {1}
    assert max(replies.values()) <= 3


def test_a_post_of_ones_own_accord_has_its_transitions() -> None:
    """An agent composes it, so that the number of those who compose is true."""
    simulation = ran(LIVELY, rounds=3)
    moves = Counter(
        (record.trigger, record.to_state)
        for agent in simulation.agents
        for record in agent.state_history
    )
    begun = moves["has_idea", AgentState.COMPOSING]
    own = sum(post.kind == "post" for post in simulation.network.posts) - 80
    composing = sum(
        agent.state is AgentState.COMPOSING and agent.pending_action == "post"
        for agent in simulation.agents
    )
    assert begun == own + composing > 20


def test_agents_without_a_word_have_something_to_say() -> None:
    """Common topics keep a population alive whose file says nothing of its agents."""
    wordless = [SocialAgent(f"a{number}") for number in range(60)]
    simulation = Simulation(wordless, None, rounds=4, parameters=LIVELY)
    last = simulation.run().rounds[-1].activity
    assert last.posts > 5
    assert last.decisions_answered > 5


def test_what_is_under_way_goes_on_in_the_next_round() -> None:
    """No round end is a transition, and rounds of one tick get as far as one long round."""
    simulation = ran(LIVELY, rounds=30, ticks_per_round=1)
    triggers = {each.trigger for agent in simulation.agents for each in agent.state_history}
    assert "round_ends" not in triggers
    assert {"compose_done", "action_done"} <= triggers


@pytest.mark.parametrize("stops", [[1], [2, 3]])
def test_a_run_that_is_stopped_carries_on(stops: list[int], tmp_path: Path) -> None:
    """Drafts and posts in hand are part of what is kept: the same bytes in the end."""
    options = SocialRun(40, rounds=4, ticks_per_round=3, seed=2, parameters=LIVELY)
    assert run_in(tmp_path / "stopped", options, stops) == run_in(tmp_path / "whole", options)


def test_the_order_of_answers_changes_nothing() -> None:
    """Agents in a random order, whose answers come late, end as with answers at once."""
    late = LateReasoner(PolicyReasoner(1), most_turns=59)
    told = [
        [(post.author_id, post.kind, post.text) for post in ran(LIVELY, 40, **of).network.posts]
        for of in ({}, {"reasoner": late})
    ]
    assert late.overtaken > 0
    assert told[0] == told[1]


class Restless(Feed):
    """A feed that changes what cannot change any more."""

    @treatment(round=1)
    def wake(self) -> None:
        self.parameters = replace(self.parameters, hours="diurnal")


def test_what_made_the_population_cannot_change_later() -> None:
    """A treatment that would change nothing any more is refused by name."""
    with pytest.raises(FieldValueError, match="hours cannot change in the course of a run"):
        Simulation(synthetic_population(5).agents, world=Restless()).run()


@pytest.mark.long
def test_the_length_of_a_round_changes_no_rate() -> None:
    """Of 60 rounds of 4 ticks and of 5 of 48: each act per agent-tick, within 5 %."""

    def rates(rounds: int, ticks: int) -> list[float]:
        totals: Counter[str] = Counter()
        for seed in range(5):
            agents = synthetic_population(500, seed=seed).agents
            given = replace(LIVELY, posts_per_tick=0.01, compose_chance=0.05)
            run = Simulation(
                agents, None, rounds=rounds, ticks_per_round=ticks, seed=seed, parameters=given
            )
            done = run.run().totals
            for name in ("posts", "replies", "reshares", "likes", "agent_ticks"):
                totals[name] += getattr(done, name)

        steps = totals.pop("agent_ticks")
        return [count / steps for count in totals.values()]

    assert rates(60, 4) == pytest.approx(rates(5, 48), rel=0.05)
