"""All posts by their hot score, kept in order while votes come in."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from math import log2

from prism.randomness import RandomStream
from prism.runlog._clock import SECONDS_PER_TICK
from prism.social._posts import Network, Post

Key = tuple[float, float, int]
"""Hot score, a number of the post's own for ties, and its place in the order of publication."""


def hot_score(score: int, published: float, half_life: float) -> float:
    """Return the hot score of Reddit (Salihefendic 2010), with the time in units of its own.

    It is ``sign(s) * log10(max(|s|, 1)) + t / 45000`` for likes less dislikes ``s`` and a time of
    publication ``t`` in seconds. Multiplied by ``log2(10)``, which changes no order, that is
    ``sign(s) * log2(max(|s|, 1)) + t / h`` with ``h = 45000 * log10(2)`` seconds: a post that is
    older by h needs twice the score.

    Args:
        score: Likes less dislikes.
        published: When it was published, in ticks.
        half_life: Ticks in which a score loses half of its worth.
    """
    votes = log2(abs(score)) if score else 0.0
    return (votes if score > 0 else -votes) + published / half_life


class HotPosts:
    """All posts of a network by their hot score.

    Args:
        network: The posts.
        seed: Seed of the run, to which ties belong.
    """

    def __init__(self, network: Network, seed: int) -> None:
        self._network = network
        self._seed = seed
        self._half_life = 0.0
        self._ties: list[float] = []
        self._keys: list[Key] = []
        # the best last: most votes are for posts near the end, where little has to make room
        self._ordered: list[Key] = []

    def at(self, half_life: float) -> HotPosts:
        """Return the posts as they stand now."""
        if half_life != self._half_life:
            self._half_life = half_life
            self._keys, self._ordered = [], []

        self._catch_up()

        return self

    def key(self, post: Post) -> Key:
        """Return by what a post is ordered."""
        return self._keys[post.number]

    def __iter__(self) -> Iterator[Post]:
        """Yield the posts, the hottest first."""
        posts = self._network.posts
        return (posts[number] for _, _, number in reversed(self._ordered))

    def _catch_up(self) -> None:
        """Take in the votes and posts that have come since the last time."""
        network, ordered = self._network, self._ordered
        for number in network.voted:
            if number < len(self._keys):
                old = self._keys[number]
                del ordered[bisect_left(ordered, old)]
                new = self._keys[number] = self._key_of(number)
                insort(ordered, new)

        network.voted.clear()
        fresh = [self._key_of(number) for number in range(len(self._keys), len(network.posts))]
        self._keys += fresh
        if len(fresh) > len(ordered):
            ordered += fresh
            ordered.sort()
        else:
            for key in fresh:
                insort(ordered, key)

    def _key_of(self, number: int) -> Key:
        network = self._network
        post = network.posts[number]
        if number == len(self._ties):
            self._ties.append(RandomStream(self._seed, "tie", post.post_id).random())

        age = network.published[number] / SECONDS_PER_TICK
        return hot_score(network.score(post), age, self._half_life), self._ties[number], number
