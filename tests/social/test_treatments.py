"""Ready-made treatments of the feed."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.agents import SeedPost, SocialAgent, synthetic_population
from prism.errors import FieldTypeError, FieldValueError
from prism.social import (
    Dislikes,
    Draft,
    Feed,
    Likes,
    PublishPost,
    RemoveAgents,
)
from prism.telemetry.events import TRANSITION
from prism.worlds import SetParameters, Treatment, treatment
from tests.kit.runs import LoggedRun
from tests.kit.worlds import run_in

TREATMENTS: tuple[Treatment, ...] = (
    Likes(1, share=0.3, experiment="votes"),
    Dislikes(2, share=0.3, number=2, experiment="votes", posts=("post", "reply")),
    PublishPost(2, "agent_0001", "Think first.", ("gaming",)),
    RemoveAgents(3, share=0.2),
)


@pytest.mark.slow
def test_a_treated_feed_is_resumed_with_the_same_bytes(tmp_path: Path) -> None:
    """Votes, dislikes, a seeded post, removals: stopped after each round, the log is the same."""
    disliked = {"dislike_chance": 0.2, "herding": 0.7, "feed": "popular"}
    options = Run(
        Feed,
        30,
        rounds=4,
        seed=1,
        treatments=TREATMENTS,
        parameters={"preset": "classic", **disliked},
    )
    whole = run_in(tmp_path / "whole", options)
    assert run_in(tmp_path / "stopped", options, [1, 2, 3]) == whole

    config = json.loads((tmp_path / "whole" / "run.json").read_text())["config"]
    assert Run.from_config(config, tmp_path / "run.json").to_config() == options.to_config()


@pytest.mark.slow
def test_another_rate_of_posts_holds_from_its_round_on(run_logged: Any) -> None:
    """Nobody has an idea while the rate is 0, from the very round of the treatment on."""
    rates = [SetParameters(2, {"posts_per_tick": 0.0}), SetParameters(4, {"posts_per_tick": 0.2})]
    found: LoggedRun = run_logged(rounds=4, parameters={"posts_per_tick": 0.2}, treatments=rates)
    moves = found.events(TRANSITION)
    assert {each["round"] for each in moves if each["trigger"] == "has_idea"} == {1, 4}


def test_votes_stand_in_the_log_and_count(run_logged: Any) -> None:
    """Scores are those that the log gives: votes of treatments and likes of agents."""
    found: LoggedRun = run_logged(rounds=4, treatments=TREATMENTS[:2])
    score: Counter[str] = Counter()
    arms = {each["post_id"]: each["arm"] for each in found.events("treatment.assigned")}
    for each in found.events("post.liked", "post.voted"):
        score[each["post_id"]] += each.get("likes", 1) - each.get("dislikes", 0)

    feed = found.simulation.world
    assert {post.post_id: feed.score_of(post) for post in feed.posts} == {
        post.post_id: score[post.post_id] for post in feed.posts
    }
    voted = {each["post_id"]: each for each in found.events("post.voted")}
    assert {name for name, arm in arms.items() if arm != "control"} == set(voted)
    assert {arms[name] for name in voted} == {"likes", "dislikes"}
    assert all(each["dislikes"] in (0, 2) for each in voted.values())
    # every post of a kind in question is assigned, from the round on
    assert {post.post_id for post in feed.posts} == set(arms)


@pytest.mark.parametrize(("options", "rounds"), [({"until": 2}, {1, 2}), ({}, {1, 2, 3, 4})])
@pytest.mark.slow
def test_votes_end_with_their_last_round(
    run_logged: Any, options: dict[str, Any], rounds: set[int]
) -> None:
    """Posts of later rounds are not assigned."""
    found: LoggedRun = run_logged(rounds=4, treatments=[Likes(1, share=0.5, **options)])
    assert {each["round"] for each in found.events("treatment.assigned")} == rounds


@pytest.mark.slow
def test_existing_posts_are_treated_if_they_are_meant(run_logged: Any) -> None:
    """From round 3 on, new posts alone, or the older ones, too; of some authors only."""
    names = ("agent_0003", "agent_0004", "agent_0005")
    for existing in (False, True):
        likes = Likes(3, existing=existing, agents=names)
        found: LoggedRun = run_logged(rounds=4, treatments=[likes])
        author = {each["post_id"]: each["agent_id"] for each in found.events("post.published")}
        voted = found.events("post.voted")
        assert {author[each["post_id"]] for each in voted} <= set(names)
        is_older = [each["tick"] == 0 for each in voted]
        assert any(is_older) is existing


@pytest.mark.slow
def test_who_is_removed_takes_no_step_and_is_followed_by_nobody(run_logged: Any) -> None:
    """Neither transitions nor posts after the removal; the agent stays in the population."""
    found: LoggedRun = run_logged(rounds=4, treatments=[RemoveAgents(3, share=0.3)])
    gone = {each["agent_id"] for each in found.events("agent.removed")}
    assert 5 < len(gone) < 35
    acts = found.events(
        "statechart.transition", "post.published", "post.liked", "reasoner.decision"
    )
    last: dict[str, int] = defaultdict(int)
    for each in acts:
        last[each["agent_id"]] = max(last[each["agent_id"]], each["round"])

    assert max(last[name] for name in gone) == 2
    assert len(found.simulation.agents) == 60
    ended = found.events("round.ended")
    assert [each["agent_ticks"] for each in ended] == [720] * 2 + [12 * (60 - len(gone))] * 2
    network = found.simulation.world.posted
    followed = {name for reader in network.readers for name in reader.agent.following}
    for author in sorted(followed):
        post = network.publish(author, Draft("post", "Hello.", ()), None)
        readers = {each.agent.agent_id for each in network.readers if post in each.inbox}
        assert not readers & gone
        assert author not in gone or not readers


def test_a_treatment_fills_feeds_that_were_empty() -> None:
    """Readers who found nothing look again as soon as another parameter holds."""
    agents = [SocialAgent(name) for name in "abc"]
    feed = Feed(
        first_posts=[SeedPost("a", "Hello.", ("x",))],
        feed="chronological",
        beyond_follows=0.0,
        posts_per_tick=0.0,
        common_topics=0,
    )
    wider = SetParameters(2, {"beyond_follows": 1.0})
    results = Run(feed, agents, rounds=2, treatments=[wider]).run()
    assert [each.activity.transitions for each in results.rounds] == [0, 10]


def test_a_seeded_post_can_be_told_from_others(run_logged: Any) -> None:
    """It is published in the agent's name at the beginning of the round, and assigned."""
    found: LoggedRun = run_logged(rounds=2, treatments=[TREATMENTS[2]])
    (told,) = found.events("treatment.assigned")
    published = {each["post_id"]: each for each in found.events("post.published")}
    post = published[told["post_id"]]
    assert (post["agent_id"], post["text"], post["tick"], post["round"]) == (
        *("agent_0001", "Think first."),
        *(0, 2),
    )


def test_treatments_of_a_class_of_ones_own_vote_and_remove() -> None:
    """A feed's own treatment does what ready-made ones do."""
    population = synthetic_population(20)

    class Own(Feed):
        """A feed that is treated by its own class."""

        @treatment(round=1)
        def push(self) -> None:
            self.vote(self.posts[0], likes=5)
            self.remove(self.agents[3])

    simulation = Run(Own(first_posts=population.posts), population.agents, rounds=2)
    simulation.run()
    feed = simulation.world
    assert feed.score_of(feed.posts[0]) >= 5
    assert feed.agent("agent_0004") is simulation.agents[3]
    assert not simulation.agents[3].state_history


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (PublishPost(1, "nobody", "Hello"), "no agent 'nobody' in the run"),
        (RemoveAgents(1, where={"archetype": "king"}, agents=("nobody",)), "no agent 'nobody'"),
    ],
)
def test_what_the_feed_cannot_do_is_refused(given: Treatment, problem: str) -> None:
    """Before the first round, and by name."""
    population = synthetic_population(10)
    with pytest.raises((FieldValueError, FieldTypeError), match=problem):
        _ = Run(Feed(first_posts=population.posts), population.agents, treatments=[given]).agents
