"""A reader: the world's agent that represents a social agent at its feed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from prism.agents import SocialAgent
from prism.agents.social_agent import plain_attributes
from prism.social._posts import Draft, Post, Words
from prism.statechart import Written
from prism.worlds import state
from prism.worlds._fields import slot_of
from prism.worlds._guest import OBJECT, Proxy


class Reader(Proxy[SocialAgent]):
    """An agent at its feed: its unread posts, the post it is reading, and its draft.

    Attributes:
        agent: The social agent.
        topics: Its interests, as topics are indexed.
        follows: Ids of the authors that it follows.
        muted: Ids of the authors whose posts it does not see.
        pool: The newest posts by authors that it follows, oldest first.
        sources: The sources of its feed by interests: the pool, and the posts on each topic.
        has_news: Whether one of them may have a post that its feed has not taken in yet.
        unread: Its feed, in the order in which it is shown.
        post: The post that it is looking at.
        passed: A post that it has decided to scroll past, and may still dislike.
        draft: What it is about to publish.
        words: The words of the draft, if a model writes them.
        seen_until: Number of the first post that its feed has not taken in yet.
        looked_at: Numbers of the posts that it has looked at since `seen` was last read.
        seen_before: Numbers of those before.
        found_nothing: Whether its last feed was empty, with the current parameters.
        liked: The posts that it has liked, in order.
        reshared: Numbers of the roots from whose cascades it has reshared a post.
        replied: How often it has replied in a cascade, by the number of its root.
        activity: How much it writes, as a multiple of the population's mean.
        ideas: Idle steps before each of its ideas in this round; None if it has none.
        before_idea: Idle steps until the next one.
        has_chosen: Whether it chose among all acts, because a model decides for it.
        reason: The reason given by the model.
    """

    topics: Sequence[str] = ()
    follows: dict[str, None] = state(dict)
    muted: dict[str, None] = state(dict)
    pool: deque[Post] = state(deque)
    sources: tuple[Sequence[Post], ...] = ()
    has_news: bool = state(True)
    unread: list[Post] = state(list)
    post: Post | None = state(None)
    passed: Post | None = state(None)
    draft: Draft | None = state(None)
    words: Words | None = state(None)
    seen_until: int = state(0)
    looked_at: list[int] = state(list)
    seen_before: set[int] = state(set)
    found_nothing: bool = state(False)
    liked: list[Post] = state(list)
    reshared: set[int] = state(set)
    replied: dict[int, int] = state(dict)
    activity: float = state(1.0)
    ideas: Iterator[int] | None = state(None)
    before_idea: int = state(0)
    has_chosen: bool = state(False)
    reason: str | None = state(None)
    restored: list[Any] | None = state(None)

    if TYPE_CHECKING:

        @property
        def agent(self) -> SocialAgent:
            """The social agent."""

    else:
        # the same slot under another name, which Python reads faster than a property
        agent = slot_of(Proxy, OBJECT)

    _subject = agent

    def choose(self, said: str | None, *, by_model: bool = False) -> None:
        """Store the consequences of an agent's decision for its next act.

        Args:
            said: The reason given for it.
            by_model: Whether the agent chose among all acts, because a model decides for it.
        """
        self.has_chosen, self.reason = by_model, said

    def note_written(self, post: Post) -> None:
        """Record what the agent has published in which cascade."""
        root = post.root.number
        if post.kind == "reshare":
            self.reshared.add(root)
        elif post.kind == "reply":
            self.replied[root] = self.replied.get(root, 0) + 1

    def look_at_next(self) -> Post:
        """Take the first post from the feed, and return it."""
        self.post = post = self.unread.pop(0)
        self.looked_at.append(post.number)
        return post

    @property
    def seen(self) -> set[int]:
        """Numbers of the posts that it has looked at."""
        # only some rankings read them, and a set per agent takes more memory than a cache holds
        self.seen_before.update(self.looked_at)
        self.looked_at.clear()

        return self.seen_before

    # Checkpoints: posts, likes, histories and follows are in the log

    @property
    def _kept(self) -> list[Any]:
        agent, host = self.agent, cast(Any, self._host)
        is_told = host.logged is None or self.agent_id in host.logged
        return [
            agent.ticks_in_state,
            agent.pending_action,
            self.seen_until,
            [post.number for post in self.unread],
            _number(self.post),
            _number(self.passed),
            [self.has_chosen, self.reason],
            _drafted(self.draft, self.words),
            # pairs, which a checkpoint writes faster than a dict
            [list(pair) for pair in attributes_of(agent).items()],
            # for other agents, it is in the log
            *([] if is_told else [sorted(self.seen)]),
        ]

    @_kept.setter
    def _kept(self, data: list[Any]) -> None:
        # the posts exist once the log has been read
        self.restored = data

    def take_up(self, posts: Sequence[Post]) -> None:
        """Continue where the agent was, now that all posts exist."""
        if self.restored is None:
            return

        agent = self.agent
        ticks, pending, self.seen_until, unread, post, passed, *rest = self.restored
        chosen, drafted, own, *seen = rest
        self.seen.update(*seen)
        agent.ticks_in_state, agent.pending_action = ticks, pending
        self.unread = [posts[number] for number in unread]
        self.post = None if post is None else posts[post]
        self.passed = None if passed is None else posts[passed]
        self.has_chosen, self.reason = chosen
        if drafted is not None:
            self.draft, self.words = _restored(*drafted)
        # an agent of another engine may lack it
        if hasattr(agent, "attributes"):
            agent.attributes = dict(own)
        self.restored = None


def attributes_of(agent: SocialAgent) -> dict[str, Any]:
    """Return an agent's attributes, which the user's code may have changed."""
    # an agent of another engine may lack it
    own = getattr(agent, "attributes", None)
    return plain_attributes(own) if own else {}


def _number(post: Post | None) -> int | None:
    return None if post is None else post.number


def _drafted(draft: Draft | None, words: Words | None) -> list[Any] | None:
    if draft is None:
        return None

    # at the end of a round, every requested text has arrived
    written = None if words is None or words.written is None else words.written
    told = None if written is None else [written.text, written.source, written.value]

    return [draft.kind, draft.text, list(draft.topics), told]


def _restored(kind: Any, text: str, topics: list[str], told: Any) -> tuple[Draft, Words | None]:
    draft = Draft(kind, text, tuple(topics))
    if told is None:
        return draft, None

    words = Words(draft)
    words.arrive(Written(*told))

    return draft, words
