"""Rankings: functions that yield the posts of a feed, the best first, and feeds made of them.

No ranking looks at all posts. Posts of followed authors come from the reader's own pool, and posts
on a topic from the topic's list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice, takewhile
from operator import attrgetter
from typing import Any

from prism.social._posts import Post
from prism.social._readers import Reader

Ranking = Callable[[Any, Reader], Iterable[Post]]
"""Takes feed and reader. Posts that the reader has looked at are left out later."""

_number = attrgetter("number")


def chronological(_feed: Any, reader: Reader) -> Iterable[Post]:
    """Return the newest posts by followed authors."""
    return reversed(reader.pool)


def interests(feed: Any, reader: Reader) -> Iterable[Post]:
    """Return the newest posts by followed authors and on the reader's interests.

    The opening posts, all of which are equally new, are in an order of the reader's own.
    """
    newest_of_each = [islice(reversed(each), feed.candidates) for each in reader.sources]
    posts = [*merge(*newest_of_each, key=_number, reverse=True)]
    opening = [post for post in posts if post.number < feed.posts_before]
    if len(opening) > feed.feed_length:
        posts[len(posts) - len(opening) :] = feed.stream_of_feed(reader).shuffled(opening)
    return posts


def by_own_method(feed: Any, reader: Reader) -> Iterable[Post]:
    """Return the newest unseen posts as the method `rank` of a feed orders them."""
    by_anybody = islice(reversed(feed.posts), feed.candidates)
    merged = merge(reversed(reader.pool), by_anybody, key=_number, reverse=True)
    unseen = [*_unseen(reader, merged)]
    yield from feed.rank(reader, unseen, feed.stream_of_feed(reader))


RANKINGS: Mapping[str, Ranking] = {"chronological": chronological, "interests": interests}
"""The rankings that the parameter ``feed`` names."""


def _unseen(reader: Reader, posts: Iterable[Post]) -> Iterator[Post]:
    """Yield the posts of others that a reader has not looked at, each once."""
    left_out = {*reader.looked_at}
    for post in posts:
        if post.number not in left_out and post.author_id != reader.agent_id:
            left_out.add(post.number)
            yield post


# Feeds


def refresh(feed: Any, reader: Reader) -> bool:
    """Update a reader's feed; no post is shown twice, or to its author.

    Returns:
        Whether there is anything to read.
    """
    ranking = feed.ranking
    if ranking is interests and reader.next_number:
        return _add_newest(feed, reader)

    reader.unread = [*islice(_unseen(reader, ranking(feed, reader)), feed.feed_length)]
    # only a feed of interests goes on from here: another one has left posts out
    reader.next_number = len(feed.posts) if ranking is interests else 0
    return bool(reader.unread)


def _add_newest(feed: Any, reader: Reader) -> bool:
    """Put new posts by followed authors and on its interests before those left in a feed."""
    since, reader.next_number = reader.next_number, len(feed.posts)
    # most readers of most ticks have nothing new
    fresh = [posts for posts in reader.sources if posts and posts[-1].number >= since]
    if fresh:
        reader_id, length = reader.agent_id, feed.feed_length
        recent = (islice(reversed(posts), length) for posts in fresh)
        newest = {
            post
            for posts in recent
            for post in takewhile(lambda post: post.number >= since, posts)
            if post.author_id != reader_id
        }
        reader.unread = (sorted(newest, key=_number, reverse=True) + reader.unread)[:length]
    return bool(reader.unread)
