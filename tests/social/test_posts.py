"""Posts, and the network that carries them to readers."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from prism.agents import SeedPost, SocialAgent
from prism.errors import FieldValueError
from prism.runlog import SimulatedClock
from prism.social import Draft, Feed, Network, Post, Reader
from prism.social._feeds import Feeds
from tests.kit.feeds import network_of_agents

AUTHORS = ("ann", "ben", "cem", "dee")
LENGTH = Feed().feed_length
"""Posts in a feed at the most."""

TOPICS = ("art", "bees", "chess")


def network_of(
    *, interests: Sequence[str] = (), following: Sequence[str] = ()
) -> tuple[Network, Reader]:
    """Make a network of four; return the first's reader, with these interests and follows."""
    first, *others = AUTHORS
    agents = [
        SocialAgent(first, interests=interests, following=following),
        *map(SocialAgent, others),
    ]
    network = network_of_agents(agents)
    return network, network.readers[0]


def write(
    network: Network, author: str, *topics: str, kind: Any = "post", about: Post | None = None
) -> Post:
    return network.publish(author, Draft(kind, "some text", topics), about)


def read(network: Network, reader: Reader) -> list[Post]:
    """Read a whole feed to its end."""
    network.refresh(reader)
    shown = list(reader.unread)
    reader.unread.clear()
    return shown


def test_of_more_opening_posts_than_a_feed_holds_each_reader_has_a_draw() -> None:
    """Nearly every opening post is in somebody's first feed, as all are equally new."""
    names = [f"reader_{number}" for number in range(40)]
    network = network_of_agents([SocialAgent(name, interests=["art"]) for name in names])
    readers = network.readers
    opening = [write(network, "ben", "art") for _ in range(5 * LENGTH)]
    network.now = 300.0
    later = write(network, "ben", "art")
    for reader in readers:
        network.refresh(reader, LENGTH, seed=1)
    assert all(reader.unread[0] is later and len(reader.unread) == LENGTH for reader in readers)
    shown = {post.number for reader in readers for post in reader.unread}
    assert len(shown) > 0.95 * len(opening)


@pytest.mark.slow
def test_of_many_opening_posts_each_is_as_likely_to_be_read() -> None:
    """Posts on one topic, on two, or by somebody followed come into first feeds equally often."""
    names = [f"reader_{number}" for number in range(600)]
    agents = [SocialAgent(each, interests=["art", "tea"], following=["ben"]) for each in names]
    network = network_of_agents(agents)
    kinds = [("amy", "art")] * 30 + [("amy", "art", "tea")] * 30 + [("cem", "tea")] * 30
    kinds += [("ben", "music")]
    for _ in range(40):
        for kind in kinds:
            write(network, *kind)
    shown = Counter[tuple[str, ...]]()
    for reader in network.readers:
        network.refresh(reader, LENGTH, seed=1)
        assert len({post.number for post in reader.unread}) == len(reader.unread) == LENGTH
        shown.update((post.author_id, *post.topics) for post in reader.unread)
    share = shown.total() / len(kinds)
    expected = [share * count for count in Counter(kinds).values()]
    assert chisquare([shown[kind] for kind in Counter(kinds)], expected).pvalue > 0.001


def test_who_mutes_nearly_everybody_still_finds_a_post() -> None:
    """Of many opening posts, the only ones that are not muted are in the first feed."""
    network, reader = network_of(interests=["art"])
    for _ in range(3000):
        write(network, "amy", "art")
    wanted = [write(network, "ben", "art") for _ in range(2)]
    network.change(reader, "mute", "amy")
    network.refresh(reader, LENGTH, seed=1)
    assert {post.number for post in reader.unread} == {post.number for post in wanted}


happenings = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(AUTHORS), st.sets(st.sampled_from(TOPICS))),
    st.tuples(st.just("read"), st.integers(0, 3), st.just(frozenset())),
)


@given(
    st.sets(st.sampled_from(TOPICS)),
    st.sets(st.sampled_from(AUTHORS)),
    st.lists(happenings, max_size=LENGTH),
)
def test_feeds_follow_their_definition(
    interests: set[str], following: set[str], history: list[Any]
) -> None:
    """However writing and reading alternate, a feed is what its definition by a full scan says."""
    network, reader = network_of(interests=sorted(interests), following=sorted(following))
    feeds = Feeds(network, 0, SimulatedClock(), Feed())
    waiting: list[Post] = []
    expected: list[Post] = []
    for what, detail, topics in history:
        if what == "write":
            post = write(network, detail, *sorted(topics))
            if detail != "ann" and (detail in following or topics & interests):
                waiting.insert(0, post)
            continue
        feeds.refresh(reader)
        expected, waiting = [*waiting, *expected], []
        assert list(reader.unread) == expected
        for _ in range(min(detail, len(expected))):
            assert reader.unread.pop(0) is expected.pop(0)


@given(
    st.sets(st.sampled_from(TOPICS)),
    st.sets(st.sampled_from(AUTHORS)),
    st.lists(happenings, min_size=2 * LENGTH, max_size=4 * LENGTH),
)
def test_busy_feeds_keep_their_promises(
    interests: set[str], following: set[str], history: list[Any]
) -> None:
    """However much is written, a feed is short, newest first, and shows nothing twice."""
    network, reader = network_of(interests=sorted(interests), following=sorted(following))
    shown: list[Post] = []
    for what, detail, topics in history:
        if what == "write":
            write(network, detail, *sorted(topics))
            continue
        network.refresh(reader)
        assert len(reader.unread) <= LENGTH
        assert all(one.number > other.number for one, other in pairwise(reader.unread))
        shown += [reader.unread.pop(0) for _ in range(min(detail, len(reader.unread)))]
    assert len({post.post_id for post in shown}) == len(shown)
    assert all(post.author_id != "ann" for post in shown)


@given(st.lists(st.integers(-1, 10), max_size=40))
def test_root_and_depth_are_those_of_the_path_of_parents(choices: list[int]) -> None:
    """In any forest of posts, the root is as many parents away as the depth says."""
    network, _ = network_of()
    for choice in choices:
        about = (
            network.posts[choice % len(network.posts)] if choice >= 0 and network.posts else None
        )
        write(network, "ann", kind="reply" if about else "post", about=about)
    for post in network.posts:
        at, steps = post, 0
        while at.parent is not None:
            at, steps = at.parent, steps + 1
        assert (post.root, post.depth) == (at, steps)


@pytest.mark.slow
def test_post_of_a_long_cascade_can_be_shown() -> None:
    """A post at the end of thousands of replies has a short representation."""
    network, _ = network_of()
    post = write(network, "ann")
    for _ in range(5000):
        post = write(network, "ben", kind="reply", about=post)
    assert len(repr(post)) < 300


@given(
    st.lists(
        st.none() | st.integers(0, 12),
        unique_by=lambda number: object() if number is None else number,
    )
)
def test_ids_are_unique(numbers: list[int | None]) -> None:
    """Posts that bring an id keep it, and no made-up id is one of these, whichever comes first."""
    given_ids = [None if number is None else f"post_{number:06}" for number in numbers]
    network, _ = network_of()
    seeds = network.seed(SeedPost("ann", "old", post_id=post_id) for post_id in given_ids)
    for _ in range(12):
        write(network, "ann")
    assert all(
        seed.post_id == post_id for seed, post_id in zip(seeds, given_ids, strict=True) if post_id
    )
    assert len({post.post_id for post in network.posts}) == len(given_ids) + 12


def test_seeds_that_share_an_id_are_refused() -> None:
    """Two earlier posts of one id are refused by name, and nothing is published."""
    network, _ = network_of()
    with pytest.raises(FieldValueError, match="more than once: p1, p2"):
        network.seed(
            SeedPost("ann", "text", post_id=post_id) for post_id in ("p1", "p2", "p3", "p2", "p1")
        )
    assert network.posts == []


def test_seeds_reach_feeds() -> None:
    """Earlier posts are in the feeds of followers and of those interested, in the order given."""
    network, reader = network_of(interests=["art"], following=["ben"])
    seeds = network.seed(
        [SeedPost("ben", "one"), SeedPost("cem", "two", ("art",)), SeedPost("cem", "three")]
    )
    assert read(network, reader) == [seeds[1], seeds[0]]
