"""The network that receives posts, delivers them to readers, and counts their votes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Literal

from prism.agents import SeedPost
from prism.agents.relevance import terms_of
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.social._parameters import CANDIDATES, FEED_LENGTH
from prism.social._posts import Draft, Post
from prism.social._readers import Reader

Action = Literal["follow", "unfollow", "mute", "unmute"]
"""Acts of an agent towards another one."""

_MOST_SHUFFLED = 200
"""Most opening posts that are shuffled for a first feed; from more, its length is drawn."""


class Network:
    """All posts of a run, and the feeds made from them.

    A new post goes into the pools of its author's followers and into the list of each of its
    topics, so a new feed needs only the newest few posts of each.

    Args:
        readers: The agents at their feeds.
        candidates: Number of posts by followed authors from which an agent's feed may choose.

    Attributes:
        readers: The agents at their feeds.
        posts: All posts, oldest first.
        published: When each was published, in seconds since the epoch.
        likes: Likes of each post that has any, by its id.
        dislikes: Dislikes of each post that has any, by its id.
        voted: Numbers of the posts whose votes changed since they were ranked.
        removed: Ids of the agents that were removed.
        now: The time, in seconds since the epoch; the caller sets it.
    """

    def __init__(self, readers: Iterable[Reader] = (), candidates: int = CANDIDATES) -> None:
        self.readers: list[Reader] = list(readers)
        self._of: dict[str, Reader] = {each.agent_id: each for each in self.readers}
        self.posts: list[Post] = []
        self.published: list[float] = []
        self.now: float = 0.0
        self.voted: dict[int, None] = {}
        self._likers: dict[int, list[Reader]] = {}
        self.likes: dict[str, int] = defaultdict(int)
        self.dislikes: dict[str, int] = defaultdict(int)
        self.removed: dict[str, None] = {}
        self._ids: set[str] = set()
        self._by_id: dict[str, Post] = {}
        self._by_author: dict[str, list[Post]] = defaultdict(list)
        self._by_topic: dict[str, list[Post]] = defaultdict(list)
        self._followers: dict[str, dict[Reader, None]] = defaultdict(dict)
        # readers without news, by each of their topics
        self._waiting: dict[str, dict[Reader, None]] = defaultdict(dict)
        for reader in self.readers:
            reader.topics = sorted(terms_of(reader.agent.interests).topics)
            reader.pool = deque(maxlen=candidates)
            reader.sources = (reader.pool, *(self._by_topic[topic] for topic in reader.topics))
            reader.follows = dict.fromkeys(reader.agent.following)
            for author_id in reader.follows:
                self._followers[author_id][reader] = None

    def seed(self, posts: Iterable[SeedPost]) -> list[Post]:
        """Publish the posts from before the simulation.

        Raises:
            FieldValueError: If two posts share an id.
        """
        seeds = list(posts)
        counts = Counter(
            (*self._ids, *(seed.post_id for seed in seeds if seed.post_id is not None))
        )
        twice = [post_id for post_id, count in counts.items() if count > 1]
        if twice:
            raise FieldValueError(
                f"post ids must be unique, used more than once: {', '.join(sorted(twice))}"
            )

        self._ids.update(counts)

        return [
            self.publish(seed.author_id, Draft("post", seed.text, seed.topics), None, seed.post_id)
            for seed in seeds
        ]

    def post(self, post_id: str) -> Post | None:
        """Return the post with an id; None if there is none."""
        return self._by_id.get(post_id)

    def posts_by(self, author_id: str) -> Sequence[Post]:
        """Return what an agent has published, oldest first."""
        return self._by_author.get(author_id, ())

    def publish(
        self, author_id: str, draft: Draft, about: Post | None, post_id: str | None = None
    ) -> Post:
        """Publish a draft.

        Args:
            author_id: The author.
            draft: What to publish.
            about: The post that the author looked at; the parent of a reply or reshare.
            post_id: The id of the post, if it already has one.
        """
        number = len(self.posts)
        parent = None if draft.kind == "post" else about
        post = Post(
            post_id or self._new_id(),
            author_id,
            draft.text,
            draft.topics,
            draft.kind,
            parent,
            number,
            draft.template,
            draft.source,
        )
        self.posts.append(post)
        self.published.append(self.now)
        self._ids.add(post.post_id)
        self._by_id[post.post_id] = post
        if parent is not None and author_id in self._of:
            self._of[author_id].note_written(post)
        self._by_author[author_id].append(post)
        for topic in post.terms.topics:
            self._by_topic[topic].append(post)
            for reader in self._waiting.pop(topic, ()):
                reader.has_news = True

        for reader in self._followers.get(author_id, ()):
            reader.pool.append(post)
            reader.has_news = True

        return post

    def posts_on(self, topic: str) -> Sequence[Post]:
        """Return what has been published on a topic, oldest first."""
        return self._by_topic.get(topic, ())

    def like(self, post: Post, reader: Reader | None = None) -> None:
        """Count one like.

        Args:
            post: The post.
            reader: The agent that likes it, if any.
        """
        self.likes[post.post_id] += 1
        self.voted[post.number] = None
        if reader is not None:
            reader.liked.append(post)
            self._likers.setdefault(post.number, []).append(reader)

    def likers(self, post: Post) -> Sequence[Reader]:
        """Return the agents that have liked a post, in the order of their likes."""
        return self._likers.get(post.number, ())

    def vote(self, post: Post, likes: int, dislikes: int) -> None:
        """Give a post likes or dislikes that come from no agent."""
        for counts, number in ((self.likes, likes), (self.dislikes, dislikes)):
            if number:
                counts[post.post_id] += number
                self.voted[post.number] = None

    def score(self, post: Post) -> int:
        """Return a post's likes minus its dislikes."""
        return self.likes.get(post.post_id, 0) - self.dislikes.get(post.post_id, 0)

    def votes(self, post: Post) -> dict[str, int]:
        """Return likes, dislikes and score of a post, by these names."""
        likes, dislikes = self.likes.get(post.post_id, 0), self.dislikes.get(post.post_id, 0)
        return {"likes": likes, "dislikes": dislikes, "score": likes - dislikes}

    def reader(self, agent_id: str) -> Reader:
        """Return the reader of an agent.

        Raises:
            FieldValueError: If there is no agent with that id.
        """
        found = self._of.get(agent_id)
        if found is None:
            raise FieldValueError(f"there is no agent {agent_id!r} in the run")

        return found

    def remove(self, agent_id: str) -> None:
        """Remove an agent: from now on it follows nobody, and nobody follows it."""
        self.removed[agent_id] = None
        for reader in self._followers.pop(agent_id, ()):
            reader.follows.pop(agent_id, None)
            reader.found_nothing = False
        for author_id in self._of[agent_id].follows:
            self._followers[author_id].pop(self._of[agent_id], None)

    def change(self, reader: Reader, action: Action, author_id: str) -> None:
        """Make an agent follow, unfollow, mute or unmute another one.

        A feed shows what a followed author publishes from then on, and hides muted authors.
        """
        _CHANGES[action](self, reader, author_id)
        reader.found_nothing = False

    def _follow(self, reader: Reader, author_id: str) -> None:
        reader.follows[author_id] = self._followers[author_id][reader] = None

    def _unfollow(self, reader: Reader, author_id: str) -> None:
        reader.follows.pop(author_id, None)
        self._followers[author_id].pop(reader, None)

    def _mute(self, reader: Reader, author_id: str) -> None:
        reader.muted[author_id] = None
        reader.unread = [post for post in reader.unread if post.author_id != author_id]

    def _unmute(self, reader: Reader, author_id: str) -> None:
        reader.muted.pop(author_id, None)

    def refresh(self, reader: Reader, length: int = FEED_LENGTH, seed: int = 0) -> bool:
        """Update a reader's feed with posts of followed authors and on its interests, newest first.

        No post is shown twice, or to its author. Posts left over from the last feed follow the new
        ones. All opening posts are equally new: if there are more than fit in a feed, each reader
        gets its own draw.

        Args:
            reader: The reader of the feed.
            length: Maximum number of posts in it.
            seed: Seed of the run.

        Returns:
            Whether there is anything to read.
        """
        since, reader.seen_until = reader.seen_until, len(self.posts)
        fresh = [posts for posts in reader.sources if posts and posts[-1].number >= since]
        if not fresh:
            # a first feed is drawn from the opening posts, which may still come
            if self.posts:
                self._await_news(reader)
            return bool(reader.unread)

        newest: Iterable[Post] = _newest(fresh, since, length)
        if since == 0:
            newest = self._with_a_draw(reader, newest, length, seed)

        own, muted = reader.agent_id, reader.muted
        wanted = (post for post in newest if post.author_id != own and post.author_id not in muted)
        reader.unread = [*islice(chain(wanted, reader.unread), length)]

        return bool(reader.unread)

    def _await_news(self, reader: Reader) -> None:
        """Have the next post for an agent tell it, so that it need not look at every source."""
        reader.has_news = False
        for topic in reader.topics:
            self._waiting[topic][reader] = None

    def _with_a_draw(
        self, reader: Reader, newest: Iterable[Post], length: int, seed: int
    ) -> Iterable[Post]:
        """Return a first feed, in which every opening post is equally likely to appear.

        If all of them fit, they keep their order.
        """
        opened = bisect_right(self.published, self.published[0])
        stream = RandomStream(seed, "opening", reader.agent_id)
        later = (post for post in newest if post.number >= opened)
        counts = [bisect_left(posts, opened, key=_number) for posts in reader.sources]
        # too many to fit, however many sources each of them is in
        if sum(counts) > max(_MOST_SHUFFLED, len(counts) * length):
            return chain(later, _in_random_order(reader, counts, stream))

        opening = {
            post.number: post
            for posts, count in zip(reader.sources, counts, strict=True)
            for post in islice(posts, count)
        }
        if len(opening) <= length:
            return newest

        return chain(later, stream.shuffled(list(opening.values())))

    def _new_id(self) -> str:
        number = len(self.posts)
        while (post_id := f"post_{number:06}") in self._ids:
            number += 1

        return post_id


def _newest(sources: Iterable[Sequence[Post]], since: int, length: int) -> list[Post]:
    """Return the newest posts of some sources, from a number on, newest first."""
    fresh: dict[int, Post] = {}
    for posts in sources:
        for post in islice(reversed(posts), length):
            if post.number < since:
                break
            fresh[post.number] = post

    return [fresh[number] for number in sorted(fresh, reverse=True)]


def _in_random_order(reader: Reader, counts: Sequence[int], stream: RandomStream) -> Iterator[Post]:
    """Yield the opening posts of a reader's sources, without visiting posts that are not read.

    Args:
        reader: The reader.
        counts: Number of opening posts at the beginning of each of its sources.
        stream: Random numbers.
    """
    edges = [0, *accumulate(counts)]
    pool = {post.number for post in islice(reader.sources[0], counts[0])}
    told: dict[int, None] = {}
    for _ in range(edges[-1]):
        place = stream.index(edges[-1])
        source = bisect_right(edges, place) - 1
        post = reader.sources[source][place - edges[source]]
        # a post is in several sources, but counts only in the first of them
        first = 0 if post.number in pool else _first_source(reader, post)
        if source == first and post.number not in told:
            told[post.number] = None
            yield post

    # a reader who mutes nearly everybody needs more draws
    left = {
        post.number: post
        for posts, count in zip(reader.sources, counts, strict=True)
        for post in islice(posts, count)
        if post.number not in told
    }
    yield from stream.shuffled(left.values())


def _first_source(reader: Reader, post: Post) -> int:
    """Return the first source with posts on a topic of a post."""
    topics = post.terms.topics
    return next(place for place, topic in enumerate(reader.topics, start=1) if topic in topics)


def _number(post: Post) -> int:
    return post.number


_CHANGES: Mapping[Action, Callable[[Network, Reader, str], None]] = {
    "follow": Network._follow,
    "unfollow": Network._unfollow,
    "mute": Network._mute,
    "unmute": Network._unmute,
}
