"""Rankings: functions that yield the posts of a feed, the best first, and feeds made of them.

No ranking looks at all posts. Posts of followed authors come from the reader's own pool, and posts
on a topic from the topic's list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any

from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.social._posts import Post, newest
from prism.social._readers import Reader

Ranking = Callable[[Any, Reader], Iterable[Post]]
"""Takes feed and reader. Posts that the reader has looked at are left out later."""

_number = attrgetter("number")


def chronological(_feed: Any, reader: Reader) -> Iterable[Post]:
    """Return the newest posts by followed authors."""
    return reversed(reader.pool)


def interests(feed: Any, reader: Reader) -> Iterable[Post]:
    """Return the newest posts by followed authors and on the reader's interests."""
    newest_of_each = [islice(reversed(each), feed.candidates) for each in reader.sources]
    return merge(*newest_of_each, key=_number, reverse=True)


RANKINGS: Mapping[str, Ranking] = {"chronological": chronological, "interests": interests}
"""The rankings that the parameter ``feed`` names."""


def _by_own_ranking(feed: Any, reader: Reader, stream: RandomStream) -> list[Post]:
    """Return the newest unseen posts as a user's function orders them."""
    by_anybody = islice(reversed(feed.posts), feed.candidates)
    merged = merge(reversed(reader.pool), by_anybody, key=_number, reverse=True)
    candidates = {post.number: post for post in merged}
    ranked = [*feed.rank(reader, [*_unseen(reader, candidates.values())], stream)]
    wrong = [post for post in ranked if candidates.get(getattr(post, "number", -1)) is not post]
    if wrong:
        raise FieldValueError(
            f"a ranking must return posts that it was given, got {wrong[0]!r} for {reader.agent_id}"
        )
    return ranked


def _unseen(reader: Reader, posts: Iterable[Post]) -> Iterator[Post]:
    """Yield the posts of others that a reader has not looked at, each once."""
    left_out = {*reader.looked_at}
    for post in posts:
        if post.number not in left_out and post.author_id != reader.agent_id:
            left_out.add(post.number)
            yield post


# Feeds


def refresh(feed: Any, reader: Reader, stream_of: Callable[[], RandomStream]) -> bool:
    """Update a reader's feed; no post is shown twice, or to its author.

    Returns:
        Whether there is anything to read.
    """
    if feed.is_by_interests and reader.next_number:
        return _add_newest(feed, reader)

    number = len(feed.posts)
    now = number, feed.feed
    # a ranking of the user's may show tomorrow what it leaves out today
    if reader.empty_at == now and not feed.has_own_ranking:
        return False

    posts = _unseen(reader, _ranked(feed, reader, stream_of()))
    reader.unread = [*islice(posts, feed.feed_length)]
    # only a feed of interests goes on from here: another one has left posts out
    reader.next_number = number if feed.is_by_interests else 0
    reader.empty_at = None if reader.unread else now
    return bool(reader.unread)


def _add_newest(feed: Any, reader: Reader) -> bool:
    """Put new posts by followed authors and on its interests before those left in a feed."""
    since, reader.next_number = reader.next_number, len(feed.posts)
    # most readers of most ticks have nothing new
    fresh = [posts for posts in reader.sources if posts and posts[-1].number >= since]
    if fresh:
        reader_id, length = reader.agent_id, feed.feed_length
        wanted = [post for post in newest(fresh, since, length) if post.author_id != reader_id]
        reader.unread = (wanted + reader.unread)[:length]
    return bool(reader.unread)


def _ranked(feed: Any, reader: Reader, stream: RandomStream) -> Iterable[Post]:
    """Return posts for a feed, the best first."""
    if feed.has_own_ranking:
        return _by_own_ranking(feed, reader, stream)
    posts = RANKINGS[feed.feed](feed, reader)
    if feed.is_by_interests and not reader.next_number:
        return _opening_drawn(feed, posts, stream)
    return posts


def _opening_drawn(feed: Any, posts: Iterable[Post], stream: RandomStream) -> Sequence[Post]:
    """Put the opening posts, all of which are equally new, in an order of the reader's own."""
    listed = [*posts]
    opening = [post for post in listed if post.number < feed._opened]
    if len(opening) <= feed.feed_length:
        return listed
    return listed[: len(listed) - len(opening)] + stream.shuffled(opening)
