"""Treatments of the feed: votes, posts, agents that leave, and other parameters."""

from collections import Counter
from typing import Any

import pytest

from prism import Run
from prism.agents import SeedPost, SocialAgent
from prism.social import Feed
from prism.telemetry.events import TRANSITION
from prism.worlds import treatment
from tests.kit.worlds import Done


@pytest.mark.slow
def test_another_rate_of_posts_holds_from_its_round_on(run_logged: Any) -> None:
    """Nobody has an idea while the rate is 0, from the very round of the treatment on."""
    rates = ["posts_per_tick=0@2", "posts_per_tick=0.2@4"]
    done: Done = run_logged(rounds=4, parameters={"posts_per_tick": 0.2}, treatments=rates)
    moves = done.events(TRANSITION)
    assert {each["round"] for each in moves if each["trigger"] == "has_idea"} == {1, 4}


def test_a_share_of_the_posts_gets_a_vote_from_nobody(run_logged: Any) -> None:
    """Every new post is assigned to an arm; scores are those that the log gives."""
    arms = {"preset": "classic", "up_treated": 0.3, "down_treated": 0.3}
    done: Done = run_logged(rounds=4, parameters=arms)
    assigned = {each["post_id"]: each["arm"] for each in done.events("treatment.assigned")}
    voted = {each["post_id"]: each for each in done.events("post.voted")}
    assert {name for name, arm in assigned.items() if arm != "control"} == set(voted)
    score: Counter[str] = Counter()
    for each in done.events("post.liked", "post.voted"):
        score[each["post_id"]] += each.get("likes", 1) - each.get("dislikes", 0)

    posts = done.run.world.posts
    assert {post.post_id for post in posts} == set(assigned)
    assert {post.post_id: post.score for post in posts} == {
        post.post_id: score[post.post_id] for post in posts
    }
    counts = Counter(assigned.values())
    assert all(0.1 < counts[arm] / len(posts) < 0.5 for arm in ("likes", "dislikes"))


class Treated(Feed):
    """A feed whose own treatments vote and send agents away."""

    preset = "classic"

    @treatment
    def push(self) -> None:
        """Push the first post."""
        self.vote(self.posts[0], likes=5, dislikes=1)

    @treatment
    def thin_out(self) -> None:
        """Let a third of the agents leave."""
        for agent in self.assign("leaves", 0.3):
            agent.leave()


def test_a_feed_is_treated_by_its_own_class(run_logged: Any) -> None:
    """Votes count at once, and those who leave do nothing more."""
    treatments = ["push@1", "thin_out@3"]
    done: Done = run_logged(world=Treated(), rounds=4, treatments=treatments)
    (vote,) = done.events("post.voted")
    assert (vote["likes"], vote["dislikes"], vote["tick"]) == (5, 1, 0)
    gone = {each["agent_id"] for each in done.events("agent.left")}
    assert 5 < len(gone) < 35
    acts = done.events(TRANSITION, "post.published", "post.liked", "reasoner.decision")
    assert max(each["round"] for each in acts if each["agent_id"] in gone) == 2
    ticks = [each["agent_ticks"] for each in done.events("round.ended")]
    assert ticks == [720] * 2 + [12 * (60 - len(gone))] * 2


def test_a_treatment_fills_feeds_that_were_empty() -> None:
    """Readers who found nothing look again as soon as another parameter holds."""
    feed = Feed(
        first_posts=[SeedPost("a", "Hello.", ("x",))],
        feed="chronological",
        posts_per_tick=0.0,
        common_topics=0,
    )
    wider = "feed=interests@2"
    agents = [SocialAgent(name, interests=["x"]) for name in "abc"]
    results = Run(feed, agents, rounds=2, treatments=[wider]).run()
    assert [each.counts["transitions"] for each in results.rounds] == [0, 10]
