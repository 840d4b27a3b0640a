"""What each kind of feed shows, held against a plain reading of all posts."""

from collections import Counter
from collections.abc import Sequence
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
    return shown(agents, script, acts=acts, **parameters)


def newest(scene: Feed, reader: Reader) -> list[Post]:
    """Return the posts of others, newest first."""
    return [post for post in reversed(scene.posts) if post.author_id != reader.agent_id]


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


@given(stories())
@settings(max_examples=25)
def test_chronological_feeds_have_the_newest_of_the_followed(story: Story) -> None:
    """They come newest first, up to the length of a feed."""
    scene = play(story, feed="chronological")
    for reader in scene.agents:
        posts = newest(scene, reader)
        assert reader.unread == [post for post in posts if post.author_id in reader.follows][:8]


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
