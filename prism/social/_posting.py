"""A world with posts: who publishes, votes and follows."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any

from prism.agents import SeedPost, load_posts, opening_posts
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.social._differences import activities, make_follows, rank_of
from prism.social._posts import Draft, Post, PostKind
from prism.social._readers import Reader
from prism.social.parameters import Parameters
from prism.telemetry.events import FOLLOW_CHANGED, POST_PUBLISHED, POST_VOTED

_COUNTERS: Mapping[PostKind, str] = {"post": "posts", "reply": "replies", "reshare": "reshares"}
"""What a round counts of each kind of posts."""


class Posting(Parameters):
    """A world whose agents have posts, votes and follows, also for treatments and hooks."""

    def opening(self) -> Iterable[SeedPost]:
        """Return the posts from before the first round, oldest first."""
        posts = self.first_posts
        if isinstance(posts, (str, Path)):
            return load_posts(posts, self.agents)
        if posts is not None:
            return list(posts)
        if self.opening_authors == "each":
            return opening_posts(self.agents, seed=self.seed)

        followers = Counter(name for reader in self.agents for name in reader.follows)
        names = sorted(reader.agent_id for reader in self.agents)
        # if nobody is followed, anybody may be drawn
        bias = self.opening_bias if followers else 0.0
        weights = [followers[name] ** bias for name in names]
        author = names[RandomStream(self.seed, "opening").weighted_index(weights)]
        return [SeedPost(author, "Have you heard? This changes everything.", ("rumour",))]

    def setup(self) -> None:
        """Build the network of posts, and publish those from before the first round."""
        self.posts: list[Post] = []
        self._run_turns.counts |= dict.fromkeys((*_COUNTERS.values(), "likes"), 0)
        # what is published goes into the pools of the author's followers and the lists of topics,
        # so that a new feed needs only the newest few of each
        self._by_topic: defaultdict[str, list[Post]] = defaultdict(list)
        self._followers: defaultdict[str, dict[Reader, None]] = defaultdict(dict)
        if self.follow_network == "scale_free":
            make_follows(self.agents, self)
        self._ranks = sorted(rank_of(reader, self.seed) for reader in self.agents)
        self._activities = activities(len(self._ranks), self)
        for reader in self.agents:
            self._equip(reader)
        seeds = [*self.opening()]
        named = [seed.post_id for seed in seeds if seed.post_id is not None]
        # those that are taken, also by opening posts that are still to come
        self._ids: set[str] = {*named}
        if len(self._ids) < len(named):
            raise FieldValueError(f"first_posts: two have the id {max(named, key=named.count)!r}")
        # an order that does not depend on that of the population
        names = {reader.agent_id for reader in self.agents}
        key = {name: RandomStream(self.seed, "order", name).random() for name in names}
        for seed in sorted(seeds, key=lambda seed: key[seed.author_id]):
            self._publish(seed.author_id, "post", Draft(seed.text, seed.topics), None, seed.post_id)
        self.posts_before: int = len(self.posts)

    def _equip(self, reader: Reader) -> None:
        """Give a reader its activity, its sources of posts, and its followers."""
        index = bisect_left(self._ranks, rank_of(reader, self.seed))
        reader.activity = self._activities[min(index, len(self._activities) - 1)]
        older = (post for post in reversed(self.posts) if post.author_id in reader.follows)
        reader.pool = deque([*islice(older, self.candidates)][::-1], self.candidates)
        topics = sorted(reader.terms.topics)
        reader.sources = (reader.pool, *(self._by_topic[topic] for topic in topics))
        for author_id in reader.follows:
            self._followers[author_id][reader] = None

    def publish(self, author: Reader, text: str, topics: Iterable[str] = ()) -> Post:
        """Publish a post in a reader's name."""
        return self._publish(author.agent_id, "post", Draft(text, tuple(topics)), None, None)

    def vote(self, post: Post, *, likes: int = 0, dislikes: int = 0) -> None:
        """Give a post likes or dislikes that come from no agent."""
        post.likes += likes
        post.dislikes += dislikes
        self._log(POST_VOTED, post_id=post.post_id, likes=likes, dislikes=dislikes)

    def follow(self, reader: Reader, author: Reader) -> None:
        """Make a reader follow another one, whose posts it sees from now on."""
        reader.follows[author.agent_id] = self._followers[author.agent_id][reader] = None
        self._log_follow("follow", reader, author)

    def unfollow(self, reader: Reader, author: Reader) -> None:
        """Make a reader stop following another one; see `follow`."""
        reader.follows.pop(author.agent_id, None)
        self._followers[author.agent_id].pop(reader, None)
        self._log_follow("unfollow", reader, author)

    def _log_follow(self, action: str, reader: Reader, author: Reader) -> None:
        keys = {"agent_id": reader.agent_id, "action": action, "author_id": author.agent_id}
        self._log(FOLLOW_CHANGED, **keys)

    def _log(self, event: str, **keys: Any) -> None:
        self._run_turns.events.tell(event, **keys)

    def _publish(
        self, author_id: str, kind: PostKind, draft: Draft, parent: Post | None, name: str | None
    ) -> Post:
        number, time = len(self.posts), self._run_turns.seconds()
        numbered = (f"post_{each:06}" for each in count(number))
        name = name or next(each for each in numbered if each not in self._ids)
        post = Post(name, author_id, kind, draft, parent, number, time)
        self.posts.append(post)
        self._ids.add(post.post_id)
        for topic in post.terms.topics:
            self._by_topic[topic].append(post)
        for reader in self._followers.get(author_id, ()):
            reader.pool.append(post)
        self._run_turns.counts[_COUNTERS[kind]] += 1
        words = {"source": draft.source, "template": draft.template} if draft.source else {}
        self._log(
            POST_PUBLISHED,
            agent_id=author_id,
            post_id=post.post_id,
            kind=kind,
            parent_id=None if parent is None else parent.post_id,
            root_id=post.root.post_id,
            topics=[*post.topics],
            text=post.text,
            **words,
        )
        if self.up_treated or self.down_treated:
            self._treat(post)
        return post

    def _treat(self, post: Post) -> None:
        """Give a post the like or dislike of the arm to which it is assigned."""
        turns = self._run_turns
        for arm, share in (("likes", self.up_treated), ("dislikes", self.down_treated)):
            if turns.assignments.assign("post_id", [post.post_id], "votes", arm, share):
                self.vote(post, **{arm: 1})
        turns.assignments.log()
