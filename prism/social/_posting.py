"""A world with posts: who publishes, votes and follows."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from prism.agents import SeedPost, load_posts, opening_posts
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.social._posts import Draft, Post, PostKind
from prism.social._readers import Reader
from prism.social.parameters import Parameters
from prism.telemetry.events import FOLLOW_CHANGED, POST_PUBLISHED, POST_VOTED

COUNTERS: Mapping[PostKind, str] = {"post": "posts", "reply": "replies", "reshare": "reshares"}
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
        if self.opening_authors == "none":
            return []

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
        self._counts: Counter[str] = Counter()
        # what is published goes into the pools of the author's followers and the lists of topics,
        # so that a new feed needs only the newest few of each
        self._by_topic: defaultdict[str, list[Post]] = defaultdict(list)
        self._followers: defaultdict[str, dict[Reader, None]] = defaultdict(dict)
        for reader in self.agents:
            reader.pool = deque(maxlen=self.candidates)
            topics = sorted(reader.terms.topics)
            reader.sources = (reader.pool, *(self._by_topic[topic] for topic in topics))
            for author_id in reader.follows:
                self._followers[author_id][reader] = None
        names = {reader.agent_id for reader in self.agents}
        seeds = [*self.opening()]
        if strangers := sorted({seed.author_id for seed in seeds} - names):
            raise FieldValueError(
                f"posts must be by agents of the population, which has no {', '.join(strangers)}"
            )
        ids = Counter(seed.post_id for seed in seeds if seed.post_id is not None)
        if twice := sorted(name for name, count in ids.items() if count > 1):
            raise FieldValueError(f"post ids must be unique, used more than once: {twice}")
        # those that are taken, also by opening posts that are still to come
        self._ids: set[str] = {*ids}
        # an order that does not depend on that of the population
        key = {name: RandomStream(self.seed, "order", name).random() for name in names}
        for seed in sorted(seeds, key=lambda seed: key[seed.author_id]):
            self._publish(seed.author_id, "post", Draft(seed.text, seed.topics), None, seed.post_id)
        self.posts_before: int = len(self.posts)
        self._counts.clear()

    def agent(self, agent_id: str) -> Reader:
        """Return the agent with an id.

        Raises:
            FieldValueError: If there is no such agent.
        """
        reader = self._readers.get(agent_id)
        if reader is None:
            raise FieldValueError(f"there is no agent {agent_id!r} in the run")
        return reader

    def publish(self, author: Reader | str, text: str, topics: Iterable[str] = ()) -> Post:
        """Publish a post in an agent's name.

        Raises:
            FieldValueError: If no agent has the author's id.
        """
        name = self.agent(_name_of(author)).agent_id
        return self._publish(name, "post", Draft(text, tuple(topics)), None, None)

    def vote(self, post: Post, *, likes: int = 0, dislikes: int = 0) -> None:
        """Give a post likes or dislikes that come from no agent."""
        post.likes += likes
        post.dislikes += dislikes
        self._log(POST_VOTED, post_id=post.post_id, likes=likes, dislikes=dislikes)

    def follow(self, reader: Reader | str, author: Reader | str) -> None:
        """Make an agent follow another one, whose posts it sees from now on.

        Raises:
            FieldValueError: If one of them does not exist, or both are the same.
        """
        who, author_id = self._relate("follow", reader, author)
        who.follows[author_id] = self._followers[author_id][who] = None

    def unfollow(self, reader: Reader | str, author: Reader | str) -> None:
        """Make an agent stop following another one; see `follow`."""
        who, author_id = self._relate("unfollow", reader, author)
        who.follows.pop(author_id, None)
        self._followers[author_id].pop(who, None)

    def _relate(
        self, action: str, reader: Reader | str, author: Reader | str
    ) -> tuple[Reader, str]:
        """Log that an agent follows another one or no longer does, and return both."""
        who, whom = self.agent(_name_of(reader)), self.agent(_name_of(author))
        if who is whom:
            raise FieldValueError(f"agent {who.agent_id!r} cannot {action} itself")
        keys = {"agent_id": who.agent_id, "action": action, "author_id": whom.agent_id}
        self._log(FOLLOW_CHANGED, **keys)
        return who, whom.agent_id

    @cached_property
    def _readers(self) -> Mapping[str, Reader]:
        return {reader.agent_id: reader for reader in self.agents}

    def _log(self, event: str, **keys: Any) -> None:
        self._run_turns.events.tell(event, **keys)

    def _publish(
        self, author_id: str, kind: PostKind, draft: Draft, parent: Post | None, name: str | None
    ) -> Post:
        number, time = len(self.posts), self._run_turns.seconds()
        name = name or self._new_id(number)
        post = Post(name, author_id, kind, draft, parent, number, time)
        self.posts.append(post)
        self._ids.add(post.post_id)
        for topic in post.terms.topics:
            self._by_topic[topic].append(post)
        for reader in self._followers.get(author_id, ()):
            reader.pool.append(post)
        self._counts[COUNTERS[kind]] += 1
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

    def _new_id(self, number: int) -> str:
        while (name := f"post_{number:06}") in self._ids:
            number += 1
        return name

    def _treat(self, post: Post) -> None:
        """Give a post the like or dislike of the arm to which it is assigned."""
        turns = self._run_turns
        for arm, share in (("likes", self.up_treated), ("dislikes", self.down_treated)):
            if turns.assignments.assign("post_id", [post.post_id], "votes", arm, share):
                self.vote(post, **{arm: 1})
        turns.log_assigned()


def _name_of(agent: Reader | str) -> str:
    return agent if isinstance(agent, str) else agent.agent_id
