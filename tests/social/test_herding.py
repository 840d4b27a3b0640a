"""How the votes of others speak for liking a post."""

from collections import Counter
from statistics import mean
from typing import Any

import pytest

from prism.agents import synthetic_population
from prism.social import Dislikes, Draft, Feed, Likes, Network, Post
from prism.social._steps import dislike_odds, herding_pulls
from prism.statechart import AgentState, PolicyReasoner, Question
from tests.kit.runs import LoggedRun


@pytest.mark.parametrize(
    ("weight", "likes", "dislikes", "pull"),
    [(2.0, 1, 0, 2.0), (2.0, 0, 1, -2.0), (0.5, 9, 2, 1.5), (1.0, 0, 3, -2.0)],
)
def test_a_score_pulls_by_its_logarithm(
    weight: float, likes: int, dislikes: int, pull: float
) -> None:
    """The weight is what a score of 1 adds; likes and dislikes are alike."""
    network, post = _voted(likes, dislikes)
    assert herding_pulls(weight, network, post) == {AgentState.ENGAGING_LIKE: pytest.approx(pull)}


def test_without_weight_or_score_nothing_pulls() -> None:
    """The policy is then what it was."""
    assert herding_pulls(0.0, *_voted(5, 0)) is herding_pulls(1.0, *_voted(2, 2)) is None


def _voted(likes: int, dislikes: int) -> tuple[Network, Post]:
    """Return a post with votes."""
    network = Network(synthetic_population(2).agents)
    post = network.publish("agent_0001", Draft("post", "Hello.", ()), None)
    network.vote(post, likes, dislikes)
    return network, post


def test_the_policy_adds_pulls_to_utilities() -> None:
    """Odds of an option change by the exponential of its pull, those of the others do not."""
    (agent,) = synthetic_population(1).agents
    options = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE, AgentState.SCROLLING)
    plain, pulled = (
        PolicyReasoner().probabilities(
            Question(agent, AgentState.EVALUATING, "decides", options, pulls=pulls)
        )
        for pulls in (None, {AgentState.ENGAGING_LIKE: 1.0})
    )
    assert pulled[0] / pulled[2] == pytest.approx(plain[0] / plain[2])
    assert pulled[1] / pulled[2] == pytest.approx(plain[1] / plain[2] * 2.718281828459045)


def test_agents_dislike_what_they_scroll_past(run_logged: Any) -> None:
    """At the rate that is given, of posts that were weighed; nothing else is another."""
    without: LoggedRun = run_logged(world=Feed())
    found: LoggedRun = run_logged(world=Feed(dislike_chance=0.25))
    moves = "statechart.transition"
    assert found.events(moves) == without.events(moves)
    past = [each for each in found.events(moves) if each["from_state"] == "evaluating"]
    past = [each for each in past if each["trigger"] in ("decides", "ignores")]
    passed = {
        (each["agent_id"], each["context"]["post_id"])
        for each in past
        if each["to_state"] == "scrolling"
    }
    disliked = {(each["agent_id"], each["post_id"]) for each in found.events("post.disliked")}
    assert disliked <= passed
    assert len(disliked) / len(passed) == pytest.approx(0.25, abs=3 * (0.1875 / len(passed)) ** 0.5)
    feed = found.simulation.world
    counts = Counter(post_id for _, post_id in disliked)
    likes = Counter(each["post_id"] for each in found.events("post.liked"))
    assert all(
        feed.score_of(each) == likes[each.post_id] - counts[each.post_id] for each in feed.posts
    )
    assert not without.events("post.disliked")


@pytest.mark.parametrize(("score", "odds"), [(0, 0.2), (1, 0.2 / 2.718281828459045), (-7, 1.0)])
def test_votes_of_others_weigh_on_dislikes(score: int, odds: float) -> None:
    """A score of 1 takes the weight from the utility; what is disliked a lot always is."""
    network, post = _voted(max(score, 0), max(-score, 0))
    assert dislike_odds(0.2, herding_pulls(1.0, network, post)) == pytest.approx(odds)


@pytest.mark.slow
def test_votes_draw_votes_where_agents_follow_others(run_logged: Any) -> None:
    """Over 10 seeds up-treated posts get more likes than controls, down-treated ones fewer.

    Without herding the difference is within noise.
    """
    gaps = {
        weight: [
            _gaps(run_logged(seed=seed, world=Feed(herding=weight), treatments=ARMS))
            for seed in range(10)
        ]
        for weight in (0.0, 1.5)
    }
    up, down = (mean(each) for each in zip(*gaps[1.5], strict=True))
    assert up > 0.5
    assert down < -0.3
    assert all(abs(mean(each)) < 0.25 for each in zip(*gaps[0.0], strict=True))


ARMS = [Likes(1, share=0.33, experiment="v"), Dislikes(1, share=0.33, experiment="v")]


def _gaps(run: LoggedRun) -> tuple[float, float]:
    """Return how many more likes of agents posts in either arm got than those in neither."""
    likes = Counter(each["post_id"] for each in run.events("post.liked"))
    by_arm: dict[str, list[int]] = {}
    for each in run.events("treatment.assigned"):
        by_arm.setdefault(each["arm"], []).append(likes[each["post_id"]])

    control = mean(by_arm["control"])
    return mean(by_arm["likes"]) - control, mean(by_arm["dislikes"]) - control
