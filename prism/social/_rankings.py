"""Rankings: functions that yield the posts of a feed, the best first, and feeds made of them.

No ranking looks at all posts. Posts of followed authors come from the reader's own pool, posts on a
topic from the topic's list, and the most popular posts from one list that is kept in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from math import log2
from operator import attrgetter
from typing import Any

from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.social._posts import Network, Post, newest
from prism.social._readers import Reader

Ranking = Callable[[Any, Reader, "bool | None", RandomStream], Iterable[Post]]
"""Takes feed, reader, whether only followed authors (True), only others (False) or all (None) are
wanted, and random numbers for this feed. Posts that the reader has looked at are left out later."""

_number = attrgetter("number")


def chronological(
    feed: Any, reader: Reader, is_followed: bool | None, _stream: RandomStream
) -> Iterable[Post]:
    """Return the newest posts: by followed authors, or else by anybody."""
    return feed.newest_posts() if is_followed is False else reversed(reader.pool)


def interests(
    feed: Any, reader: Reader, is_followed: bool | None, _stream: RandomStream
) -> Iterable[Post]:
    """Return the newest posts by followed authors and on the reader's interests."""
    sources = reader.sources
    if is_followed is not None:
        sources = sources[:1] if is_followed else sources[1:]
    newest_of_each = [islice(reversed(each), feed.candidates) for each in sources]
    return merge(*newest_of_each, key=_number, reverse=True)


def popular(
    feed: Any, reader: Reader, is_followed: bool | None, _stream: RandomStream
) -> Iterable[Post]:
    """Return the posts with the highest hot score."""
    hot = feed.hot
    return sorted(reader.pool, key=hot.key, reverse=True) if is_followed else hot.posts()


def at_random(
    feed: Any, reader: Reader, is_followed: bool | None, stream: RandomStream
) -> Iterable[Post]:
    """Return posts in a random order, all equally likely."""
    if is_followed:
        yield from stream.shuffled(reader.pool)
        return
    # repeated ones are left out; they are rare while few posts have been drawn
    for _ in range(10 * feed.feed_length if feed.posts else 0):
        yield stream.choice(feed.posts)
    yield from stream.shuffled(feed.posts)


RANKINGS: Mapping[str, Ranking] = {
    "chronological": chronological,
    "interests": interests,
    "popular": popular,
    "random": at_random,
}
"""The rankings that the parameter ``feed`` names."""


def own_ranking(rank: Callable[[Reader, Sequence[Post], RandomStream], Iterable[Post]]) -> Ranking:
    """Return the ranking of a user's function, which orders the newest posts that are unseen."""

    def ranking(
        feed: Any, reader: Reader, is_followed: bool | None, stream: RandomStream
    ) -> Iterable[Post]:
        pools = (reversed(reader.pool), feed.newest_posts())
        candidates = {post.number: post for post in merge(*pools, key=_number, reverse=True)}
        unseen = [*fitting(reader, candidates.values(), is_followed, set())]
        ranked = [*rank(reader, unseen, stream)]
        wrong = [post for post in ranked if candidates.get(getattr(post, "number", -1)) is not post]
        if wrong:
            raise FieldValueError(
                f"a ranking must return posts that it was given, got {wrong[0]!r} for "
                f"{reader.agent_id}"
            )
        return ranked

    return ranking


def fitting(
    reader: Reader, posts: Iterable[Post], is_followed: bool | None, chosen: set[int]
) -> Iterator[Post]:
    """Yield posts that a reader has not seen, by authors whom it follows, or by others."""
    reader_id, seen, follows = reader.agent_id, {*reader.looked_at}, reader.follows
    for post in posts:
        number, author = post.number, post.author_id
        if number in seen or number in chosen or author == reader_id:
            continue
        if is_followed is None or (author in follows) is is_followed:
            chosen.add(number)
            yield post


# Feeds


def refresh(feed: Any, reader: Reader, stream_of: Callable[[], RandomStream]) -> bool:
    """Update a reader's feed; no post is shown twice, or to its author.

    Returns:
        Whether there is anything to read.
    """
    if feed.is_usual and reader.next_number:
        return _add_newest(feed, reader)

    number = len(feed.posts)
    now = number, feed.feed, feed.beyond_follows
    if reader.empty_at == now and feed.has_stable_feeds:
        return False

    reader.unread = [*_chosen(feed, reader, stream_of())]
    reader.next_number = number
    reader.empty_at = None if reader.unread else now
    return bool(reader.unread)


def _add_newest(feed: Any, reader: Reader) -> bool:
    """Put new posts by followed authors and on its interests before those left in a feed."""
    network: Network = feed.network_of_posts
    since, reader.next_number = reader.next_number, len(network.posts)
    if not reader.has_news:
        return bool(reader.unread)

    fresh = [posts for posts in reader.sources if posts and posts[-1].number >= since]
    if not fresh:
        network.await_news(reader)
        return bool(reader.unread)

    reader_id, length = reader.agent_id, feed.feed_length
    wanted = [post for post in newest(fresh, since, length) if post.author_id != reader_id]
    reader.unread = (wanted + reader.unread)[:length]
    return bool(reader.unread)


def _chosen(feed: Any, reader: Reader, stream: RandomStream) -> Iterator[Post]:
    """Yield the posts of a feed, each by a followed author or by others, as is drawn."""
    beyond = feed.beyond_follows
    chosen: set[int] = set()
    sources: dict[bool | None, Iterator[Post]] = {}
    for _ in range(feed.feed_length):
        is_followed = None if beyond is None else not stream.chance(beyond)
        source = sources.get(is_followed)
        if source is None:
            posts = feed.ranking()(feed, reader, is_followed, stream)
            if not reader.next_number and feed.is_by_interests:
                posts = _opening_drawn(feed, posts, stream)
            source = sources[is_followed] = fitting(reader, posts, is_followed, chosen)

        # a place whose ranking is exhausted stays empty, or the shares would not hold
        post = next(source, None)
        if post is not None:
            yield post


def _opening_drawn(feed: Any, posts: Iterable[Post], stream: RandomStream) -> list[Post]:
    """Put the opening posts, all of which are equally new, in an order of the reader's own."""
    listed = [*posts]
    opening = [post for post in listed if post.number < feed.network_of_posts.opening]
    if len(opening) <= feed.feed_length:
        return listed
    return listed[: len(listed) - len(opening)] + stream.shuffled(opening)


# Popularity

Key = tuple[float, float, int]
"""Hot score, a random number per post for ties, and the number of the post."""


def hot_score(score: int, published: float, half_life: float) -> float:
    """Return Reddit's hot score (Salihefendic 2010), in the units described below.

    It is ``sign(s) * log10(max(|s|, 1)) + t / 45000`` for likes minus dislikes ``s`` and a time of
    publication ``t`` in seconds. Multiplied by ``log2(10)``, which does not change the order, that
    is ``sign(s) * log2(max(|s|, 1)) + t / h`` with ``h = 45000 * log10(2)`` seconds: a post that is
    older by h needs twice the score.

    Args:
        score: Likes minus dislikes.
        published: When it was published, in ticks.
        half_life: Ticks in which a score loses half its value.
    """
    votes = log2(abs(score)) if score else 0.0
    return (votes if score > 0 else -votes) + published / half_life


class HotPosts:
    """All posts of a feed by hot score, as it was when the tick began.

    Args:
        feed: The feed.
    """

    def __init__(self, feed: Any) -> None:
        self._feed = feed
        self._at: tuple[int, int, float] | None = None
        self._keys: list[Key] = []
        self._order: list[int] = []

    def key(self, post: Post) -> Key:
        """Return the key that orders a post; a post of this tick has that of its publication."""
        number = post.number
        return self._keys[number] if number < len(self._keys) else self._key_of(post)

    def posts(self) -> Iterator[Post]:
        """Yield the posts, the hottest first."""
        return map(self._feed.posts.__getitem__, self._order)

    def update(self) -> None:
        """Take in the votes and posts since the last call."""
        feed, network = self._feed, self._feed.network_of_posts
        now = (feed.round, feed.tick_number, feed.hot_half_life)
        if now == self._at:
            return
        if self._at is None or self._at[-1] != feed.hot_half_life:
            self._keys, self._order = [], []
        self._at = now
        posts, scored = network.posts, len(self._keys)
        for number in network.voted:
            if number < scored:
                self._keys[number] = self._key_of(posts[number])
        network.voted.clear()
        self._keys += map(self._key_of, posts[scored:])
        self._order += range(scored, len(posts))
        # nearly in order, which takes one pass
        self._order.sort(key=self._keys.__getitem__, reverse=True)

    def _key_of(self, post: Post) -> Key:
        feed = self._feed
        tie = RandomStream(feed.seed, "tie", post.post_id).random()
        age = post.published / feed.seconds_per_tick
        return hot_score(post.score, age, feed.hot_half_life), tie, post.number
