"""What each kind of feed shows, held against a plain reading of all posts."""

from collections import Counter
from collections.abc import Sequence
from math import log10
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from prism import Run
from prism.agents import SeedPost, SocialAgent
from prism.errors import FieldValueError
from prism.social import Feed, Post, Reader
from prism.worlds import treatment


class Scene(Feed):
    """A feed in which nobody looks until the last round, when everybody opens their feed.

    ``script`` has, for each round, what is published: an author's id and the topics. ``acts`` is
    called at the beginning of the last round.
    """

    rounds = 1
    ticks = 1
    posts_per_tick = 0.0
    common_topics = 0
    visit_chance = 0.0
    engagement = 0.0
    feed_length = 8

    script: Any = ()
    acts: Any = None

    def round_begins(self) -> None:
        """Publish what is due."""
        if self.round <= len(self.script):
            for author, *topics in self.script[self.round - 1]:
                self.publish(author, "text", topics)
        if self.round == max(1, len(self.script)):
            if self.acts is not None:
                self.acts(self)
            self.visit_chance = 1.0


def shown(
    agents: list[SocialAgent], script: Any, *, seed: int = 3, acts: Any = None, **parameters: Any
) -> Scene:
    """Return a scene that has been played, in which ``unread`` is everybody's feed."""
    scene = Scene(first_posts=(), script=script, acts=acts, **parameters)
    Run(scene, agents, rounds=max(1, len(script)), seed=seed).run()
    return scene


def feeds_of(scene: Feed) -> dict[str, list[Post]]:
    """Return the feed of each agent."""
    return {reader.agent_id: list(reader.unread) for reader in scene.agents}


NAMES = tuple(f"a{number}" for number in range(6))
TOPICS = ("art", "bees", "chess")
REDDIT = 45_000 / 300 * log10(2)
"""Half-life of Reddit's own formula, in ticks of five minutes."""

Story = tuple[list[SocialAgent], Any, Any]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Return agents, what they publish in some rounds, and who likes and dislikes what."""
    agents = [
        SocialAgent(
            name,
            interests=draw(st.lists(st.sampled_from(TOPICS), unique=True)),
            following=draw(
                st.lists(st.sampled_from([each for each in NAMES if each != name]), unique=True)
            ),
        )
        for name in NAMES
    ]
    post = st.tuples(st.sampled_from(NAMES), st.sampled_from(TOPICS))
    script = draw(st.lists(st.lists(post, max_size=5), min_size=1, max_size=8))
    some = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 40)), max_size=30)
    votes = draw(some)

    def acts(scene: Feed) -> None:
        for place, (_, number) in enumerate(votes):
            for post in scene.posts[number : number + 1]:
                scene.vote(post, likes=place % 2, dislikes=2 - 2 * (place % 2))

    return agents, script, acts


def play(story: Story, **parameters: Any) -> Scene:
    agents, script, acts = story
    return shown(agents, script, acts=acts, hot_half_life=REDDIT, **parameters)


def newest(scene: Feed, reader: Reader) -> list[Post]:
    """Return the posts of others, newest first."""
    return [post for post in reversed(scene.posts) if post.author_id != reader.agent_id]


def reddit(post: Post) -> float:
    """Return Reddit's hot score as it is published."""
    sign = (post.score > 0) - (post.score < 0)
    return sign * log10(max(abs(post.score), 1)) + post.published / 45_000


@given(stories())
@settings(max_examples=25)
def test_a_feed_of_interests_has_the_newest_of_the_followed_and_on_its_topics(
    story: Story,
) -> None:
    """It is what its definition by a full scan says."""
    scene = play(story, feed_length=99)
    for reader in scene.agents:
        assert reader.unread == [
            post
            for post in newest(scene, reader)
            if post.author_id in reader.follows or {*post.topics} & {*reader.interests}
        ]


@given(stories(), st.booleans())
@settings(max_examples=25)
def test_chronological_feeds_have_the_newest(story: Story, is_beyond: bool) -> None:
    """Posts of the followed come newest first; beyond them, those of all others."""
    beyond = 1.0 if is_beyond else None
    scene = play(story, feed="chronological", beyond_follows=beyond)
    for reader in scene.agents:
        posts = newest(scene, reader)
        wanted = [post for post in posts if (post.author_id in reader.follows) is not is_beyond]
        assert reader.unread == wanted[:8]


@given(stories())
@settings(max_examples=25)
def test_popular_feeds_have_the_highest_hot_scores(story: Story) -> None:
    """No order that Reddit's formula gives is broken."""
    scene = play(story, feed="popular")
    for reader in scene.agents:
        scores = [reddit(post) for post in reader.unread]
        best = sorted(map(reddit, newest(scene, reader)), reverse=True)
        assert scores == pytest.approx(best[:8])


@given(stories(), st.sampled_from(["random", "interests", "popular"]))
@settings(max_examples=40)
def test_no_feed_repeats_a_post_or_shows_its_readers_own(story: Story, feed: str) -> None:
    """A feed has each post once, and at most as many as it may."""
    scene = play(story, feed=feed, beyond_follows=0.5)
    for reader in scene.agents:
        assert len({*reader.unread}) == len(reader.unread) <= 8
        assert {*reader.unread} <= {*newest(scene, reader)}


def crowd(posts: int, followed: int = 0, **parameters: Any) -> Scene:
    """Return the feeds of 400 readers who follow some of the authors, each with one post."""
    authors = [SocialAgent(f"author{number}") for number in range(posts)]
    names = [author.agent_id for author in authors[:followed]]
    readers = [SocialAgent(f"reader{number}", following=names) for number in range(400)]
    script = [[(author.agent_id, "art") for author in authors]]
    return shown([*authors, *readers], script, **parameters)


def read_in(scene: Scene) -> list[list[Post]]:
    return [posts for name, posts in feeds_of(scene).items() if name.startswith("reader")]


def test_random_feeds_are_fair() -> None:
    """Over many readers each post is shown as often as the others, and first as often."""
    feeds = read_in(crowd(20, feed="random"))
    for counts in (
        Counter(post.number for feed in feeds for post in feed),
        Counter(feed[0].number for feed in feeds),
    ):
        assert len(counts) == 20
        assert chisquare([*counts.values()]).pvalue > 0.001


def share_of_followed(scene: Scene) -> float:
    follows = scene.agents[-1].follows
    posts = [post for feed in read_in(scene) for post in feed]
    return sum(post.author_id in follows for post in posts) / len(posts)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.sampled(3)
def test_a_share_of_the_places_is_for_others(share: float) -> None:
    """The share of posts of authors who are not followed is what the parameter says."""
    scene = crowd(40, followed=20, feed="random", beyond_follows=share)
    assert 1 - share_of_followed(scene) == pytest.approx(share, abs=0.025)


def test_of_more_opening_posts_than_a_feed_holds_each_reader_has_a_draw() -> None:
    """All opening posts are equally likely to be in a first feed, as all are equally new."""
    agents = [SocialAgent("ann", interests=["tea"])]
    agents += [SocialAgent(f"r{number}", interests=["art"]) for number in range(300)]
    posts = [SeedPost("ann", f"{number}", ("art",)) for number in range(40)]
    scene = Scene(first_posts=posts)
    Run(scene, agents, rounds=1).run()
    counts = Counter(post.number for feed in feeds_of(scene).values() for post in feed)
    assert len(counts) == 40
    assert chisquare([*counts.values()]).pvalue > 0.001


class Liked(Scene):
    """A feed whose last post gets likes after it was ranked."""

    feed = "popular"
    orders: Any = ()

    def round_begins(self) -> None:
        """Publish, or vote; note the order."""
        if self.round == 1:
            for name in NAMES:
                self.publish(name, "text", ["art"])
        else:
            self.vote(self.orders[0][-1], likes=9)
        self.orders = (*self.orders, [*self.hot.posts()])


def test_votes_change_the_order_of_what_was_ranked() -> None:
    """A post that was the last is the first after many likes."""
    scene = Liked(first_posts=())
    Run(scene, [SocialAgent(name) for name in NAMES], rounds=2).run()
    before, after = scene.orders
    assert after == [before[-1], *before[:-1]]


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


class Wrong(Feed):
    """A feed whose ranking returns something else."""

    def rank(self, reader: Reader, posts: Any, stream: Any) -> Any:
        return [reader]


def test_a_ranking_of_something_else_is_refused() -> None:
    """A ranking returns the posts that it was given, in whatever order."""
    with pytest.raises(FieldValueError, match="must return posts that it was given, got <Reader"):
        Run(Wrong(), 5, rounds=1).run()


# Follows


class Changing(Scene):
    """A scene in which follows change in the second round."""

    @treatment(round=2)
    def change(self) -> None:
        """Ann follows bo, and no longer cem."""
        self.follow("ann", "bo")
        self.unfollow("ann", self.agent("cem"))


def test_a_follow_shows_what_comes_from_then_on(tmp_path: Any) -> None:
    """An unfollowed author is not shown any more, and the log says who changed what."""
    agents = [SocialAgent("ann", following=["cem"]), SocialAgent("bo"), SocialAgent("cem")]
    scene = Changing(first_posts=(), script=[[("bo", "x")], [("bo", "y"), ("cem", "y")]])
    Run(scene, agents, rounds=2).run()
    (ann, *_) = scene.agents
    assert [(post.author_id, post.topics) for post in ann.unread] == [("bo", ("y",))]
    assert [*ann.follows] == ["bo"]
    assert agents[0].following == ("cem",)


@pytest.mark.parametrize(("one", "other"), [("agent_0001", "agent_0001"), ("agent_0001", "zoe")])
def test_only_another_agent_of_the_run_is_followed(one: str, other: str) -> None:
    """An agent follows neither itself nor somebody unknown."""

    class Odd(Feed):
        def round_begins(self) -> None:
            self.follow(one, other)

    with pytest.raises(FieldValueError, match=f"cannot follow itself|no agent {other!r}"):
        Run(Odd(), 5, rounds=1).run()
