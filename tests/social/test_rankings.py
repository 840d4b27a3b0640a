"""What each kind of feed shows, held against a plain reading of all posts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from prism import Run
from prism.agents import SeedPost, SocialAgent
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
    late: Any = ()

    def round_begins(self) -> None:
        """Publish what is due; in the last round, let some join before."""
        is_last = self.round == max(1, len(self.script))
        if is_last:
            self.visit_chance = 1.0
            for agent in self.late:
                self.add(agent)
        there = {reader.agent_id: reader for reader in self.agents}
        for posts in self.script[self.round - 1 : self.round]:
            for author, *topics in posts:
                if author in there:
                    self.publish(there[author], "text", topics)


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


FRIENDS = [SocialAgent(name, following=["a1"]) for name in NAMES]


@example((FRIENDS, [[("a1", "art")] * 3, [("a1", "bees")]]), "chronological", 1)
@given(stories(), st.sampled_from(["interests", "chronological"]), st.integers(0, 2))
def test_feeds_have_the_newest_posts_of_the_followed_or_on_ones_topics(
    story: tuple[list[SocialAgent], Any], kind: Any, late: int
) -> None:
    """It is what a full scan says, up to the length of a feed, also for those who join late."""
    agents, script = story
    scene = Scene(first_posts=(), script=script, feed=kind, late=agents[:late])
    Run(scene, agents[late:], rounds=len(script), seed=3).run()
    assert len(scene.agents) == len(NAMES)
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
        assert not {post.number for post in posts} & {*reader.looked_at}
        assert not [post for post in posts if post.author_id == reader.agent_id]
        return sorted(posts, key=lambda post: post.author_id, reverse=True)


def test_a_ranking_of_ones_own_is_used() -> None:
    """A feed's own method orders the unseen posts of others, each time that a feed is opened."""
    agents = [SocialAgent(name) for name in NAMES]
    scene = Longest(first_posts=(), script=[[(name, "art") for name in NAMES]])
    run = Run(scene, agents, rounds=2, ticks=30)
    run.run(lambda done: done.number == 1 and scene.publish(scene.agents[0], "text"))
    for reader in scene.agents:
        authors = [scene.posts[number].author_id for number in reader.looked_at]
        assert authors[:5] == [name for name in reversed(NAMES) if name != reader.agent_id]


class Changing(Scene):
    """A scene in which follows change in the second round."""

    @treatment
    def change(self) -> None:
        """Ann follows bo, and no longer cem."""
        ann, bo, cem = self.agents
        self.follow(ann, bo)
        self.unfollow(ann, cem)


def test_a_follow_shows_what_comes_from_then_on() -> None:
    """An unfollowed author is not shown any more; the agents that were passed do not change."""
    agents = [SocialAgent("ann", following=["cem"]), SocialAgent("bo"), SocialAgent("cem")]
    scene = Changing(first_posts=(), script=[[("bo", "x")], [("bo", "y"), ("cem", "y")]])
    Run(scene, agents, rounds=2, treatments=["change@2"]).run()
    (ann, *_) = scene.agents
    assert [(post.author_id, post.topics) for post in ann.unread] == [("bo", ("y",))]
    assert [*ann.follows] == ["bo"]
    assert agents[0].following == ("cem",)
