"""What each kind of feed shows, held against a plain reading of all posts."""

from collections import Counter
from math import log10, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.errors import FieldValueError
from prism.runlog import RunLog, SimulatedClock
from prism.social import Draft, Feed, Network, Post, Reader
from prism.social._feeds import Feeds
from prism.social._parameters import FEEDS
from tests.kit.feeds import network_of_agents
from tests.kit.tables import events_of

AGENTS = 6
TOPICS = ("art", "bees", "chess")
MINUTE = 60
REDDIT = 45_000 / MINUTE * log10(2)
"""Half-life, in ticks, of Reddit's own formula."""

Scene = tuple[Network, list[Reader]]


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Return a network in which agents have posted, liked and read at random."""
    names = [f"a{number}" for number in range(AGENTS)]
    agents = [
        SocialAgent(
            name,
            interests=draw(st.lists(st.sampled_from(TOPICS), unique=True)),
            following=draw(
                st.lists(st.sampled_from([each for each in names if each != name]), unique=True)
            ),
        )
        for name in names
    ]
    network = network_of_agents(agents)
    places = st.integers(0, AGENTS - 1)
    for author, topic, hours in draw(
        st.lists(st.tuples(places, st.sampled_from(TOPICS), st.integers(0, 9)), max_size=30)
    ):
        network.now += hours * 60 * MINUTE
        network.publish(names[author], Draft("post", "text", (topic,)), None)

    if network.posts:
        some = st.lists(st.tuples(places, st.sampled_from(network.posts)), max_size=30)
        for place, post in draw(some):
            network.like(post, network.readers[place])
        for _, post in draw(some):
            network.vote(post, 0, 2)
        for place, post in draw(some):
            network.readers[place].seen.add(post.number)

    return network, network.readers


def shown(network: Network, reader: Reader, **changed: Any) -> list[Post]:
    """Return what a feed of 8 shows."""
    (posts,) = shown_to(network, [reader], **changed)
    return posts


def shown_to(network: Network, readers: list[Reader], **changed: Any) -> list[list[Post]]:
    """Return what a feed of 8 shows each of some readers."""
    now = Feed(feed_length=8, hot_half_life=REDDIT, **changed)
    feeds = Feeds(network, 3, SimulatedClock(), now)
    for reader in readers:
        # as when a treatment changes the parameters
        reader.found_nothing = False
        feeds.refresh(reader)

    return [list(reader.unread) for reader in readers]


def unseen(network: Network, reader: Reader) -> list[Post]:
    """Return what may be shown to a reader, newest first."""
    own = reader.agent.agent_id
    return [
        post
        for post in reversed(network.posts)
        if post.number not in reader.seen and post.author_id != own
    ]


def reddit(network: Network, post: Post) -> float:
    """Return Reddit's hot score as it is published."""
    score = network.likes[post.post_id] - network.dislikes[post.post_id]
    sign = (score > 0) - (score < 0)
    return sign * log10(max(abs(score), 1)) + network.published[post.number] / 45_000


@pytest.mark.parametrize("kind", [kind for kind in FEEDS if kind != "mixed"])
def test_no_feed_is_longer_than_it_may_be(kind: str) -> None:
    """Of twenty posts that concern a reader, a feed of 8 has 8, however it is made."""
    network = network_of_agents(
        [SocialAgent("ann", interests=["art"], following=["ben"]), SocialAgent("ben")]
    )
    for _ in range(20):
        network.publish("ben", Draft("post", "text", ("art",)), None)

    assert len(shown(network, network.readers[0], feed=kind)) == 8


@given(scenes())
def test_chronological_feeds_have_the_newest_of_the_followed(scene: Scene) -> None:
    """The unseen posts of the followed come newest first; beyond them, those of all others."""
    network, (reader, *_) = scene
    follows = reader.agent.following
    posts = unseen(network, reader)
    assert (
        shown(network, reader, feed="chronological")
        == [post for post in posts if post.author_id in follows][:8]
    )
    assert (
        shown(network, reader, feed="chronological", beyond_follows=1.0)
        == [post for post in posts if post.author_id not in follows][:8]
    )


@given(scenes())
def test_popular_feeds_have_the_highest_hot_scores(scene: Scene) -> None:
    """No order that Reddit's formula gives is broken, also after further votes."""
    network, (reader, *_) = scene
    now = Feed(feed="popular", feed_length=8, hot_half_life=REDDIT)
    feeds = Feeds(network, 3, SimulatedClock(), now)
    for _ in range(2):
        feeds.refresh(reader)
        scores = [reddit(network, post) for post in reader.unread]
        best = sorted((reddit(network, post) for post in unseen(network, reader)), reverse=True)
        assert scores == pytest.approx(best[:8])
        for post in network.posts[:5]:
            network.vote(post, 3, 0)


@pytest.mark.slow
@given(scenes())
def test_collaborative_feeds_have_what_similar_readers_like(scene: Scene) -> None:
    """Posts are rated by the cosines of all others who like them; then come the popular ones."""
    network, (reader, *others) = scene
    own = {post.number for post in reader.liked}
    ratings: Counter[int] = Counter()
    for other in others:
        # a like is one of a list, as an agent may like a post again
        theirs = [post.number for post in other.liked]
        common = sum(
            Counter(theirs)[number] * Counter(post.number for post in reader.liked)[number]
            for number in own
        )
        for number in theirs if common else ():
            ratings[number] += common / sqrt(len(reader.liked) * len(theirs))

    found = shown(network, reader, feed="collaborative", similar_agents=99, likes_compared=99)
    rated = [ratings[post.number] for post in found]
    best = sorted((ratings[post.number] for post in unseen(network, reader)), reverse=True)
    assert rated == pytest.approx(best[: len(rated)])
    assert len(found) == min(8, len(unseen(network, reader)))


@given(scenes())
def test_interests_beyond_follows_are_others_posts_on_them(scene: Scene) -> None:
    """With all places for others, a feed has the newest on its reader's interests alone."""
    network, (reader, *_) = scene
    assert (
        shown(network, reader, feed="interests", beyond_follows=1.0)
        == [
            post
            for post in unseen(network, reader)
            if post.author_id not in reader.agent.following
            and set(post.topics) & set(reader.agent.interests)
        ][:8]
    )


@given(scenes(), st.sampled_from(["random", "mixed", "interests", "popular", "collaborative"]))
def test_no_feed_repeats_or_shows_what_was_seen(scene: Scene, feed: str) -> None:
    """A feed has each post once, none that was seen, and none of its reader's own."""
    network, readers = scene
    for reader in readers:
        found = shown(network, reader, feed=feed, beyond_follows=0.5, mix_random=1.0)
        assert len({post.number for post in found}) == len(found)
        assert set(found) <= set(unseen(network, reader))


def crowd(posts: int, followed: int = 0) -> tuple[Network, list[Reader]]:
    """Return a network of readers who follow some of the authors, each with one post."""
    authors = [SocialAgent(f"author{number}") for number in range(posts)]
    names = [author.agent_id for author in authors[:followed]]
    readers = [SocialAgent(f"reader{number}", following=names) for number in range(400)]
    network = network_of_agents([*authors, *readers])
    for author in authors:
        network.publish(author.agent_id, Draft("post", "text", ("art",)), None)
    return network, network.readers[posts:]


def test_random_feeds_are_fair() -> None:
    """Over many readers each post is shown as often as the others, and first as often."""
    network, readers = crowd(20)
    feeds = shown_to(network, readers, feed="random")
    for counted in (
        Counter(post.number for feed in feeds for post in feed),
        Counter(feed[0].number for feed in feeds),
    ):
        mean = sum(counted.values()) / 20
        assert mean in (400 * 8 / 20, 400 / 20)
        squares = sum((counted[number] - mean) ** 2 / mean for number in range(20))
        # chi-squared of 19 degrees of freedom is above that in one case of a hundred
        assert squares < 36.2


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.sampled(3)
def test_a_share_of_the_places_is_for_others(share: float) -> None:
    """The share of posts of authors who are not followed is what the parameter says."""
    network, readers = crowd(40, followed=20)
    feeds = shown_to(network, readers, feed="random", beyond_follows=share)
    found = [
        post.author_id in reader.follows
        for reader, feed in zip(readers, feeds, strict=True)
        for post in feed
    ]
    assert 1 - sum(found) / len(found) == pytest.approx(share, abs=0.025)


def test_a_mixed_feed_keeps_its_shares() -> None:
    """Places go to the rankings in proportion to their weights."""
    network, readers = crowd(400, followed=200)
    weights = {"mix_chronological": 3, "mix_popular": 0, "mix_random": 1}
    feeds = shown_to(network, readers, feed="mixed", **weights)
    found = [
        post.author_id in reader.follows
        for reader, feed in zip(readers, feeds, strict=True)
        for post in feed
    ]
    # a random post is by one who is followed in half of the cases
    assert sum(found) / len(found) == pytest.approx(0.75 + 0.25 / 2, abs=0.02)


class Longest(Feed):
    """A feed with a ranking of its own."""

    def rank(self, agent: Any, posts: Any, stream: Any) -> Any:
        return sorted(posts, key=lambda post: (-len(post.text), post.number))


def last_first(agent: Any, posts: Any, stream: Any) -> Any:
    """Rank by name, from the end of the alphabet."""
    return sorted(posts, key=lambda post: post.author_id, reverse=True)


def test_a_ranking_of_ones_own_is_taken() -> None:
    """A feed's own method and a function by its address say what is shown."""
    network, (reader, *_) = crowd(30)
    function = f"{__file__}:last_first"
    authors = [post.author_id for post in shown(network, reader, feed=function)]
    assert authors == sorted((post.author_id for post in network.posts), reverse=True)[:8]

    population = synthetic_population(12, seed=1)
    run = Run(Longest(first_posts=population.posts), population.agents, rounds=1, ticks=3)
    run.run()
    for reader in run.world.posted.readers:
        lengths = [len(post.text) for post in reader.unread]
        assert lengths == sorted(lengths, reverse=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"feed": "populr"}, "feed must be one of interests, .* got 'populr'"),
        ({"feed": "mixed", "mix_chronological": 0, "mix_popular": 0}, "mixed feed needs"),
        ({"feed": f"{__file__}:nobody"}, "has no function 'nobody'"),
    ],
)
def test_a_feed_that_is_not_there_is_refused(changed: dict[str, Any], message: str) -> None:
    """It is refused before the run begins, with what there is."""
    with pytest.raises(FieldValueError, match=message):
        _ = Run(Feed(first_posts=(), **changed), synthetic_population(3).agents).agents


@pytest.mark.long
def test_popular_feeds_concentrate_what_is_seen(tmp_path: Any) -> None:
    """A tenth of the posts has more of the views under a popular feed than under a random one."""
    analysis = pytest.importorskip("prism.analysis")

    def share(feed: str) -> float:
        population = synthetic_population(300, seed=2)
        clock = SimulatedClock()
        with RunLog(tmp_path / f"{feed}.jsonl", clock) as log:
            Run(
                Feed(first_posts=population.posts, feed=feed),
                population.agents,
                seed=2,
                logger=log.logger,
                clock=clock,
            ).run()
        moves = events_of(analysis.read_log(log.path), "statechart.transition")
        views = Counter(moves.filter(trigger="sees_post")["context"])
        # the share of the tenth of the posts that were seen most
        ranked = sorted(views.values(), reverse=True)
        return sum(ranked[: len(ranked) // 10]) / sum(ranked)

    assert share("popular") > share("random") + 0.1
