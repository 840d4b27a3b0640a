"""The posts in a reader's feed, ranked in one of several ways.

No ranking looks at all posts. Posts of followed authors come from the reader's own pool, posts on a
topic from the topic's list, and the most popular posts from one sorted list.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import merge, nlargest
from itertools import islice
from math import log2, sqrt
from operator import attrgetter
from typing import Any

from prism.agents import SocialAgent
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.runlog import SimulatedClock
from prism.social._parameters import Parameters
from prism.social._posts import Post
from prism.social._publishing import Network
from prism.social._readers import Reader
from prism.worlds._addresses import function_at

Rank = Callable[[SocialAgent, Sequence[Post], RandomStream], Iterable[Post]]
"""Orders the posts that an agent has not seen."""

INTERESTS = "interests"
MIXED = "mixed"

_OF_ALL = ("chronological", INTERESTS, "random")
"""Rankings that eventually show every unseen post, whatever others think of it."""

_DRAWS = 10
"""Number of draws for each place of a random feed before the rest is shuffled."""

_number = attrgetter("number")


@dataclass(frozen=True, slots=True)
class _Refresh:
    """A feed that is being made.

    Args:
        reader: Its reader.
        stream: Random numbers for this feed only.
        chosen: Numbers of the posts in it.
    """

    reader: Reader
    stream: RandomStream
    chosen: set[int] = field(default_factory=set)

    def fitting(self, posts: Iterable[Post], is_followed: bool | None) -> Iterator[Post]:
        """Yield posts that the reader has not seen, by authors whom it follows, or by others."""
        reader, chosen = self.reader, self.chosen
        own, seen, follows, muted = reader.agent_id, reader.seen, reader.follows, reader.muted
        for post in posts:
            number, author = post.number, post.author_id
            if number in seen or number in chosen or author == own or author in muted:
                continue
            if is_followed is None or (author in follows) is is_followed:
                chosen.add(number)
                yield post


Ranking = Callable[[_Refresh, bool | None], Iterable[Post]]
"""Yields the posts of a feed in order: by followed authors, by others, or by both."""


class Feeds:
    """Makes the feeds of a run.

    Args:
        network: The posts.
        seed: Seed of the run.
        clock: The run's clock.
        parameters: The parameters.
        rank: The user's own ranking, which replaces those that the parameters name.
    """

    def __init__(
        self,
        network: Network,
        seed: int,
        clock: SimulatedClock,
        parameters: Parameters,
        rank: Rank | None = None,
    ) -> None:
        self._network = network
        self._seed = seed
        self._clock = clock
        self._parameters = parameters
        self._rank = rank
        self._functions: dict[str, Rank] = {}
        self._hot = HotPosts(network, seed, clock.seconds_per_tick)
        self._rankings: dict[str, Ranking] = {
            "chronological": self._chronological,
            INTERESTS: self._interests,
            "popular": self._popular,
            "random": self._random,
            "collaborative": self._collaborative,
        }
        # misspelt names are refused before the run begins
        for kind in self._taking_part(parameters)[0]:
            self._ranking(kind)

    def refresh(self, reader: Reader) -> bool:
        """Update a reader's feed; no post is shown twice, or to its author.

        Returns:
            Whether there is anything to read.
        """
        now = self._parameters
        if now.feed == INTERESTS and now.beyond_follows is None and self._rank is None:
            if not reader.has_news:
                reader.seen_until = len(self._network.posts)
                return bool(reader.unread)
            return self._network.refresh(reader, now.feed_length, self._seed)

        if reader.found_nothing and self._stays_empty(reader, now):
            reader.seen_until = len(self._network.posts)
            return False

        clock, name = self._clock, reader.agent.agent_id
        stream = RandomStream(self._seed, "feed", name, clock.round, clock.tick)
        reader.unread = [*self._fill(_Refresh(reader, stream))]
        reader.seen_until = len(self._network.posts)
        reader.found_nothing = not reader.unread

        return bool(reader.unread)

    def _stays_empty(self, reader: Reader, now: Parameters) -> bool:
        """Return whether an empty feed stays empty, because no post for it has arrived."""
        if now.feed not in _OF_ALL or self._rank is not None:
            return False
        if now.beyond_follows == 0:
            return not reader.pool or reader.pool[-1].number < reader.seen_until
        # otherwise, each place is drawn anew
        if now.beyond_follows in (None, 1):
            return len(self._network.posts) == reader.seen_until

        return False

    def _fill(self, refresh: _Refresh) -> Iterator[Post]:
        """Yield the posts of a feed, each from the ranking that was drawn for its place."""
        now, stream = self._parameters, refresh.stream
        beyond = now.beyond_follows
        kinds, shares = self._taking_part(now)
        sources: dict[tuple[str, bool | None], Iterator[Post]] = {}
        for _ in range(now.feed_length):
            kind = kinds[stream.weighted_index(shares) if len(kinds) > 1 else 0]
            is_followed = None if beyond is None else not stream.chance(beyond)
            source = sources.get((kind, is_followed))
            if source is None:
                posts = self._ranking(kind)(refresh, is_followed)
                source = sources[kind, is_followed] = refresh.fitting(posts, is_followed)

            # a place whose ranking is exhausted stays empty, or the shares would not hold
            post = next(source, None)
            if post is not None:
                yield post

    def _taking_part(self, now: Parameters) -> tuple[list[str], list[float]]:
        """Return the rankings that have a share of the feed, and their shares."""
        if now.feed != MIXED or self._rank is not None:
            return [now.feed], [1.0]

        shares = {kind: getattr(now, _mix(kind)) for kind in self._rankings}
        taking_part = {kind: share for kind, share in shares.items() if share > 0}
        if not taking_part:
            raise FieldValueError(
                f"a mixed feed needs one of {', '.join(map(_mix, shares))} above 0"
            )

        return list(taking_part), list(taking_part.values())

    def _ranking(self, kind: str) -> Ranking:
        if self._rank is not None:
            return partial(self._own, self._rank)
        if kind in self._rankings:
            return self._rankings[kind]
        if kind not in self._functions:
            self._functions[kind] = function_at(kind, "feed")

        return partial(self._own, self._functions[kind])

    # The rankings; the best post comes first

    def _chronological(self, refresh: _Refresh, is_followed: bool | None) -> Iterable[Post]:
        """Return the newest posts: by followed authors, or else by anybody."""
        if is_followed is False:
            return self._newest()
        return reversed(refresh.reader.pool)

    def _interests(self, refresh: _Refresh, is_followed: bool | None) -> Iterable[Post]:
        """Return the newest posts by followed authors and on the reader's interests."""
        most = self._parameters.candidates
        lists = [
            islice(reversed(posts), most)
            for topic in refresh.reader.topics
            if (posts := self._network.posts_on(topic))
        ]
        if is_followed is True:
            lists = []
        if is_followed is not False:
            lists.append(islice(reversed(refresh.reader.pool), most))

        return merge(*lists, key=_number, reverse=True)

    def _popular(self, refresh: _Refresh, is_followed: bool | None) -> Iterable[Post]:
        """Return the posts with the highest hot score."""
        hot = self._hot.at(self._parameters.hot_half_life)
        if is_followed:
            return sorted(refresh.reader.pool, key=hot.key, reverse=True)
        return hot

    def _random(self, refresh: _Refresh, is_followed: bool | None) -> Iterable[Post]:
        """Return posts in a random order, all equally likely."""
        if is_followed:
            return refresh.stream.shuffled(refresh.reader.pool)
        draws = _DRAWS * self._parameters.feed_length
        return _at_random(self._network.posts, refresh.stream, draws)

    def _collaborative(self, refresh: _Refresh, _: bool | None) -> Iterable[Post]:
        """Return what similar readers like, then what is popular."""
        hot = self._hot.at(self._parameters.hot_half_life)
        yield from liked_by_similar(refresh.reader, self._network, self._parameters, hot.key)
        # a reader whose likes nobody shares gets what is popular
        yield from hot

    def _own(self, rank: Rank, refresh: _Refresh, is_followed: bool | None) -> Iterable[Post]:
        """Return the newest posts in the order of the user's own ranking."""
        reader = refresh.reader
        pools = (reversed(reader.pool), self._newest())
        candidates = {post.number: post for post in merge(*pools, key=_number, reverse=True)}
        unseen = list(_Refresh(reader, refresh.stream).fitting(candidates.values(), is_followed))
        ranked = list(rank(reader.agent, unseen, refresh.stream))
        wrong = [post for post in ranked if candidates.get(getattr(post, "number", -1)) is not post]
        if wrong:
            raise FieldValueError(
                f"a ranking must return posts that it was given, got {wrong[0]!r} for "
                f"{reader.agent.agent_id}"
            )

        return ranked

    def _newest(self) -> Iterable[Post]:
        return islice(reversed(self._network.posts), self._parameters.candidates)


def _mix(kind: str) -> str:
    """Return the parameter that sets a ranking's share of a mixed feed."""
    return f"mix_{kind}"


def _at_random(posts: Sequence[Post], stream: RandomStream, draws: int) -> Iterator[Post]:
    """Yield all posts in a random order; the reader skips repeated ones."""
    # repeats are rare while few posts have been drawn, and a feed takes few
    for _ in range(draws if posts else 0):
        yield posts[stream.index(len(posts))]

    yield from stream.shuffled(posts)


Key = tuple[float, float, int]
"""Hot score, a random number per post for ties, and the index in the order of publication."""


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
    """All posts of a network, sorted by hot score.

    Args:
        network: The posts.
        seed: Seed of the run, which breaks ties.
        seconds_per_tick: Length of a tick.
    """

    def __init__(self, network: Network, seed: int, seconds_per_tick: float) -> None:
        self._network = network
        self._seed = seed
        self._seconds_per_tick = seconds_per_tick
        self._half_life = 0.0
        self._ties: list[float] = []
        self._keys: list[Key] = []
        # the best last: most votes are for posts near the end, where insertion moves little
        self._ordered: list[Key] = []

    def at(self, half_life: float) -> HotPosts:
        """Return the posts in their current order."""
        if half_life != self._half_life:
            self._half_life = half_life
            self._keys, self._ordered = [], []

        self._catch_up()

        return self

    def key(self, post: Post) -> Key:
        """Return the key that orders a post."""
        return self._keys[post.number]

    def __iter__(self) -> Iterator[Post]:
        """Yield the posts, the hottest first."""
        posts = self._network.posts
        return (posts[number] for _, _, number in reversed(self._ordered))

    def _catch_up(self) -> None:
        """Process the votes and posts since the last call."""
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

        age = network.published[number] / self._seconds_per_tick
        return hot_score(network.score(post), age, self._half_life), self._ties[number], number


def liked_by_similar(
    reader: Reader, network: Network, parameters: Parameters, otherwise: Callable[[Post], Any]
) -> list[Post]:
    """Return the posts that similar readers like, the highest rated first.

    This is collaborative filtering by nearest neighbours (Resnick et al. 1994): the similarity of
    two readers is the cosine of their likes (Breese, Heckerman and Kadie 1998), ``|A & B| /
    sqrt(|A| * |B|)``, and a post's rating is the sum of the similarities of the nearest readers who
    like it. Only the newest likes of a reader and of a post count, which bounds the work.

    Args:
        reader: The reader of the feed.
        network: The posts, with who likes them.
        parameters: The numbers of neighbours and likes that count.
        otherwise: Sort key for posts of the same rating, the largest first.
    """
    most = parameters.likes_compared
    own = reader.liked[-most:]
    common: Counter[Reader] = Counter()
    for post in own:
        common.update(network.likers(post)[-most:])

    common.pop(reader, None)
    similar = {other: count / sqrt(len(own) * len(other.liked)) for other, count in common.items()}
    nearest = nlargest(
        parameters.similar_agents,
        similar.items(),
        key=lambda item: (item[1], otherwise(item[0].liked[-1]), item[0].agent.agent_id),
    )

    ratings: dict[int, float] = {}
    for other, similarity in nearest:
        for post in other.liked[-most:]:
            ratings[post.number] = ratings.get(post.number, 0.0) + similarity

    posts = network.posts
    return sorted(
        (posts[number] for number in ratings),
        key=lambda post: (ratings[post.number], otherwise(post)),
        reverse=True,
    )
