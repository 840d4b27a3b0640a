"""What agents weigh, write and remember, by the parameters of their feed."""

import re
from collections import Counter
from typing import Any

import pytest

from prism import Run
from prism.agents import SeedPost, SocialAgent, synthetic_population
from prism.llm import Model
from prism.reasoner import PolicyReasoner
from prism.social import Feed
from prism.statechart import AgentState
from prism.testing import FakeOllama, RecordingReasoner
from tests.kit.servers import chats_of
from tests.kit.worlds import Done

S = AgentState

LIVELY: dict[str, Any] = {
    "preset": "twitter",
    "posts_per_tick": 0.03,
    "compose_chance": 0.2,
    "engagement": 0.0,
    "most_chance": 0.6,
}


def ran(agents: int = 80, rounds: int = 4, **parameters: Any) -> Feed:
    feed = Feed(**parameters)
    Run(feed, agents, rounds=rounds, seed=1).run()
    return feed


def test_a_root_is_reshared_once_by_an_agent() -> None:
    """However often a cascade comes by; and answered as often as the parameters say."""
    posts = ran(rounds=7, **LIVELY).posts
    reshares = Counter((post.author_id, post.root) for post in posts if post.kind == "reshare")
    replies = Counter((post.author_id, post.root) for post in posts if post.kind == "reply")
    assert len(reshares) > 50
    assert set(reshares.values()) == {1}
    assert max(replies.values()) <= 3


def test_a_post_on_ones_own_initiative_has_its_transitions(run_logged: Any) -> None:
    """An agent composes it, so that the number of those who compose is true."""
    done: Done = run_logged(parameters={**LIVELY, "post_share": 0.0}, rounds=4)
    moves = Counter(each["trigger"] for each in done.events("statechart.transition"))
    posts = [each for each in done.events("post.published") if each["kind"] == "post"]
    composing = [each.pending_action for each in done.run.agents if each.state is S.COMPOSING]
    begun = sum(each["round"] > 0 for each in posts) + composing.count("post")
    assert moves["has_idea"] == begun > 20


def test_agents_without_a_word_have_something_to_say() -> None:
    """Common topics keep a population alive whose file says nothing of its agents."""
    wordless = [SocialAgent(f"a{number}") for number in range(60)]
    last = Run(Feed(**LIVELY), wordless, rounds=4).run().rounds[-1]
    assert min(last.counts["posts"], last.counts["decisions_answered"]) > 5


@pytest.mark.long
def test_the_length_of_a_round_changes_no_rate() -> None:
    """Of 60 rounds of 4 ticks and of 5 of 48: each act per agent-tick, within 5 %."""

    def rates(rounds: int, ticks: int) -> list[float]:
        totals: Counter[str] = Counter()
        for seed in range(5):
            feed = Feed(**LIVELY | {"posts_per_tick": 0.01, "compose_chance": 0.05})
            done = Run(feed, 500, rounds=rounds, ticks=ticks, seed=seed).run().totals()
            for name in ("posts", "replies", "reshares", "likes", "agent_ticks"):
                totals[name] += done[name]
        steps = totals.pop("agent_ticks")
        return [count / steps for count in totals.values()]

    assert rates(60, 4) == pytest.approx(rates(5, 48), rel=0.05)


class Voted(Feed):
    """A feed of one opening post with votes."""

    ticks = 3
    common_topics = 0
    posts_per_tick = 0.0
    votes: tuple[int, int] = (0, 0)

    def round_begins(self) -> None:
        """Give the post its votes."""
        self.vote(self.posts[0], likes=self.votes[0], dislikes=self.votes[1])


def odds(likes: int = 0, dislikes: int = 0, **parameters: Any) -> dict[Any, float]:
    """Return the odds of a reader that weighs a post with some votes."""
    feed = Voted(
        first_posts=[SeedPost("ann", "Hello.", ("tea",))], votes=(likes, dislikes), **parameters
    )
    asking = RecordingReasoner(PolicyReasoner())
    agents = [SocialAgent("ann"), SocialAgent("bo", following=["ann"])]
    Run(feed, agents, rounds=1, reasoner=asking).run()
    weights = asking.questions[0].weights
    assert weights is not None
    return dict(weights)


@pytest.mark.parametrize(
    ("weights", "likes", "dislikes", "pull"),
    [
        ((2.0, None), 1, 0, 2.0),
        ((2.0, None), 0, 1, -2.0),
        ((0.5, None), 9, 2, 1.5),
        ((1.0, None), 0, 3, -2.0),
        ((0.5, -0.25), 1, 0, 0.5),
        ((0.5, -0.25), 0, 3, 0.5),
        ((0.0, None), 5, 0, 0.0),
        ((1.0, None), 2, 2, 0.0),
    ],
)
def test_a_score_pulls_by_its_logarithm(
    weights: tuple[float, Any], likes: int, dislikes: int, pull: float
) -> None:
    """A weight is what a score of 1 adds to the utility of liking; each sign may have its own."""
    up, down = weights
    like = odds(likes, dislikes, like_chance=0.01, herding=up, herding_down=down)[S.ENGAGING_LIKE]
    assert like == pytest.approx(0.01 * 2.718281828459045**pull)


def test_chances_are_those_of_the_parameters() -> None:
    """Without votes, an agent of mean activity writes and likes with the chances that are set."""
    found = odds(compose_chance=0.25, like_chance=0.125, activity="equal")
    assert found == pytest.approx({S.COMPOSING: 0.25, S.ENGAGING_LIKE: 0.125, S.SCROLLING: 0.625})


def test_a_root_has_one_virality() -> None:
    """Over many roots its median is 1; it counts once more for each step from the root."""

    def chances(sigma: float) -> list[float]:
        posts = [SeedPost("ann", "Hello.", post_id=f"p{number}") for number in range(400)]
        feed = Feed(
            first_posts=posts,
            posts_per_tick=0.0,
            compose_chance=0.0001,
            activity="equal",
            virality_sigma=sigma,
            feed_length=400,
            candidates=400,
        )
        asking = RecordingReasoner(PolicyReasoner())
        agents = [SocialAgent("ann"), SocialAgent("bo", following=["ann"], timeout_threshold=999)]
        Run(feed, agents, rounds=1, ticks=300, reasoner=asking).run()
        return sorted((each.weights or {})[S.COMPOSING] for each in asking.questions)

    usual, viral = chances(0.0), chances(1.0)
    assert len({*usual}) == 1
    assert viral[len(viral) // 2] == pytest.approx(usual[0], rel=0.35)
    assert viral[-1] > 5 * usual[0]


@pytest.mark.slow
def test_agents_dislike_what_they_scroll_past(run_logged: Any) -> None:
    """At the rate that is set, of posts that were weighed; nothing else changes."""
    without: Done = run_logged(world=Feed(), rounds=4)
    done: Done = run_logged(world=Feed(dislike_chance=0.25), rounds=4)
    moves = "statechart.transition"
    assert done.events(moves) == without.events(moves)
    passed = {
        (each["agent_id"], each["context"]["post_id"])
        for each in done.events(moves)
        if each["trigger"] in ("decides", "ignores") and each["to_state"] == "scrolling"
    }
    disliked = {(each["agent_id"], each["post_id"]) for each in done.events("post.disliked")}
    assert disliked <= passed
    assert len(disliked) / len(passed) == pytest.approx(0.25, abs=3 * (0.1875 / len(passed)) ** 0.5)
    assert not without.events("post.disliked")


@pytest.mark.slow
def test_who_opens_is_drawn_by_followers() -> None:
    """Each agent in proportion to its followers, and with a large exponent the hub."""
    agents = synthetic_population(20, seed=1).agents
    followers = Counter(name for agent in agents for name in agent.following)

    def authors(seeds: int, **parameters: Any) -> Counter[str]:
        names = []
        for seed in range(seeds):
            feed = Feed(common_topics=0, **parameters)
            Run(feed, agents, seed=seed).prepare(None)
            names += [post.author_id for post in feed.posts]
        return Counter(names)

    drawn = authors(600, opening_authors="drawn", opening_bias=1.0)
    for name, count in followers.most_common(3):
        assert drawn[name] / 600 == pytest.approx(count / followers.total(), abs=0.05)
    hub = min(followers, key=lambda name: (-followers[name], name))
    assert authors(100, opening_authors="drawn", opening_bias=99.0)[hub] > 90


def prompts_of(rounds: int = 3, **options: Any) -> list[str]:
    """Return the prompts of a feed with a model that chooses by the prompt alone."""
    with FakeOllama(
        choose=lambda asked: asked.options[sum(map(ord, asked.prompt)) % len(asked.options)]
    ) as server:
        model = Model("llama3.2", (server.host,), mode="chat", **options)
        parameters = {"preset": "classic", "shows_scores": True}
        Run(Feed, 25, rounds=rounds, seed=3, model=model, parameters=parameters).run()
        return [chat["messages"][-1]["content"] for chat in chats_of(server)]


@pytest.mark.slow
def test_a_model_is_told_of_the_post_its_votes_and_the_reader() -> None:
    """What others wrote stands in quotation marks on a line of its own."""
    prompts = prompts_of()
    assert len(prompts) > 20
    for prompt in prompts:
        assert re.search(r"^agent_\d+ wrote this (post|reply|reshare) about .*:$", prompt, re.M)
        assert re.search(r'^    ".*"$', prompt, re.M)
        assert re.search(r"^It has \d+ likes and 0 dislikes\.$", prompt, re.M)
        assert re.search(r"^You are agent_\d+, a social media user\.$", prompt, re.M)
        assert "What you remember" not in prompt


@pytest.mark.slow
def test_a_model_is_told_what_the_agent_did_about_posts() -> None:
    """With a memory, prompts have the posts that an agent saw, and what it did about them."""
    prompts = prompts_of(5, remember=4)
    for act in ("scrolled on", "liked it", "replied", "reshared it"):
        assert any(f"and {act}." in prompt for prompt in prompts), act
    assert any('You published a reply: "' in prompt for prompt in prompts)
