"""What each kind of feed shows, held against a plain reading of all posts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from prism import Run
from prism.agents import SeedPost, SocialAgent
from prism.errors import FieldValueError
from prism.social import Feed, Post, Reader
from prism.worlds import treatment


class Scene(Feed):
    """A feed in which nobody looks until the last round, when everybody opens their feed.

    ``script`` has, for each round, what is published: an author's id and the topics.
    """

    rounds = 1
    ticks = 1
    posts_per_tick = 0.0
    common_topics = 0
    visit_chance = 0.0
    engagement = 0.0
    feed_length = 8
    script: Any = ()

    def round_begins(self) -> None:
        """Publish what is due."""
        if self.round <= len(self.script):
            for author, *topics in self.script[self.round - 1]:
                self.publish(author, "text", topics)
        if self.round == max(1, len(self.script)):
            self.visit_chance = 1.0


NAMES = tuple(f"a{number}" for number in range(6))
TOPICS = ("art", "bees", "chess")
SOME_TOPICS = st.lists(st.sampled_from(TOPICS), unique=True)


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[SocialAgent], Any]:
    """Return agents, and what they publish in some rounds."""
    follows = {
        name: draw(st.lists(st.sampled_from([each for each in NAMES if each != name]), unique=True))
        for name in NAMES
    }
    agents = [
        SocialAgent(name, interests=draw(SOME_TOPICS), following=follows[name]) for name in NAMES
    ]
    post = st.tuples(st.sampled_from(NAMES), st.sampled_from(TOPICS))
    return agents, draw(st.lists(st.lists(post, max_size=5), min_size=1, max_size=8))


@given(stories(), st.sampled_from(["interests", "chronological"]))
def test_feeds_have_the_newest_posts_of_the_followed_or_on_ones_topics(
    story: tuple[list[SocialAgent], Any], kind: Any
) -> None:
    """It is what its definition by a full scan says, up to the length of a feed."""
    agents, script = story
    scene = Scene(first_posts=(), script=script, feed=kind)
    Run(scene, agents, rounds=len(script), seed=3).run()
    for reader in scene.agents:
        topics = {*reader.interests} if kind == "interests" else {*""}
        wanted = [
            post
            for post in reversed(scene.posts)
            if post.author_id != reader.agent_id
            and (post.author_id in reader.follows or {*post.topics} & topics)
        ]
        assert reader.unread == wanted[:8]


def test_of_more_opening_posts_than_a_feed_holds_each_reader_has_a_draw() -> None:
    """All opening posts are equally likely to be in a first feed, as all are equally new."""
    agents = [SocialAgent("ann", interests=["tea"])]
    agents += [SocialAgent(f"r{number}", interests=["art"]) for number in range(300)]
    scene = Scene(first_posts=[SeedPost("ann", f"{number}", ("art",)) for number in range(40)])
    Run(scene, agents, rounds=1).run()
    counts = Counter(post.number for reader in scene.agents for post in reader.unread)
    assert len(counts) == 40
    assert chisquare([*counts.values()]).pvalue > 0.001


class Longest(Scene):
    """A feed with a ranking of its own."""

    def rank(self, reader: Reader, posts: Sequence[Post], stream: Any) -> list[Post]:
        return sorted(posts, key=lambda post: post.author_id, reverse=True)


def test_a_ranking_of_ones_own_is_used() -> None:
    """A feed's own method says what is shown."""
    agents = [SocialAgent(name) for name in NAMES]
    scene = Longest(first_posts=(), script=[[(name, "art") for name in NAMES]])
    Run(scene, agents, rounds=1).run()
    for reader in scene.agents:
        authors = [post.author_id for post in reader.unread]
        assert authors == [name for name in reversed(NAMES) if name != reader.agent_id]


class Changing(Scene):
    """A scene in which follows change in the second round."""

    @treatment
    def change(self) -> None:
        """Ann follows bo, and no longer cem."""
        self.follow("ann", "bo")
        self.unfollow("ann", self.agent("cem"))


def test_a_follow_shows_what_comes_from_then_on() -> None:
    """An unfollowed author is not shown any more; the agents that were passed do not change."""
    agents = [SocialAgent("ann", following=["cem"]), SocialAgent("bo"), SocialAgent("cem")]
    scene = Changing(first_posts=(), script=[[("bo", "x")], [("bo", "y"), ("cem", "y")]])
    Run(scene, agents, rounds=2, treatments=["change@2"]).run()
    (ann, *_) = scene.agents
    assert [(post.author_id, post.topics) for post in ann.unread] == [("bo", ("y",))]
    assert [*ann.follows] == ["bo"]
    assert agents[0].following == ("cem",)


class Wrong(Feed):
    """A feed that goes wrong as a test has it."""

    follows: tuple[str, ...] = ()

    def round_begins(self) -> None:
        if self.follows:
            self.follow("agent_0001", self.follows[0])

    def rank(self, reader: Reader, posts: Any, stream: Any) -> Any:
        return [reader]


@pytest.mark.parametrize(
    ("follows", "problem"),
    [
        (("agent_0001",), "cannot follow itself"),
        (("zoe",), "no agent 'zoe'"),
        ((), "must return posts that it was given, got <Reader"),
    ],
)
def test_what_no_feed_can_do_is_refused(follows: tuple[str, ...], problem: str) -> None:
    """An agent follows another agent of the run; a ranking returns posts that it was given."""
    with pytest.raises(FieldValueError, match=problem):
        Run(Wrong(follows=follows), 5, rounds=1).run()
