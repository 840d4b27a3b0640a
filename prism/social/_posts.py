"""Posts, the network that carries them to readers, and events that wait for their words."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from prism.agents import SeedPost, SocialAgent
from prism.agents._relevance import Terms, terms_of
from prism.errors import FieldValueError
from prism.runlog import SimulatedClock
from prism.runlog._clock import Moment
from prism.social._parameters import CLASSIC, Parameters
from prism.statechart import Written
from prism.telemetry._instrument import Level
from prism.telemetry._loggers import EventLogger, report

PostKind = Literal["post", "reply", "reshare"]


@dataclass(frozen=True, slots=True, eq=False)
class Post:
    """Something an agent published.

    Args:
        post_id: Unique id.
        author_id: Who published it.
        text: What it says.
        topics: What it is about.
        kind: ``post``, ``reply`` or ``reshare``.
        parent: The very post it replies to or reshares; None for a post of its own.
        number: Place in the order of publication, from 0.
        template: Where somebody else than the composer writes the texts, what that has drafted: a
            post is weighed by it, so that words change no transition.
        source: Who wrote the text then, as in `prism.statechart.Written`; None until it is there.

    Attributes:
        root: The post at the beginning of the cascade; itself for a post of its own.
        depth: Steps from the root.
        terms: Topics and words, for rating relevance.
    """

    post_id: str
    author_id: str
    text: str
    topics: tuple[str, ...] = ()
    kind: PostKind = "post"
    parent: Post | None = field(default=None, repr=False)
    number: int = 0
    template: str | None = None
    source: str | None = None
    root: Post = field(init=False, repr=False)
    depth: int = field(init=False)
    terms: Terms = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Work out where the post stands in its cascade."""
        parent = self.parent
        object.__setattr__(self, "root", self if parent is None else parent.root)
        object.__setattr__(self, "depth", 0 if parent is None else parent.depth + 1)
        object.__setattr__(self, "terms", _terms_of(self))

    def word(self, text: str, source: str) -> None:
        """Give a post the text that was written for it."""
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "source", source)


def _terms_of(post: Post) -> Terms:
    return terms_of(post.topics, post.text if post.template is None else post.template)


class Reader:
    """An agent at its feed: what it has yet to read, what it reads, and what it is writing.

    Args:
        agent: The agent.
        candidates: How many posts its inbox holds.

    Attributes:
        topics: Its interests, as topics are indexed.
        follows: Ids of the authors that it follows.
        inbox: The newest posts by authors that it follows, oldest first.
        sources: What its feed by interests is made from: the inbox, and the posts on each topic.
        unread: Its feed, the first to be shown first.
        post: The post it looks at.
        draft: What it is about to publish.
        words: The words of the draft, where somebody else than the composer writes them.
        seen_until: Number of the first post that its feed has not taken in yet.
        seen: Numbers of the posts that it has looked at.
        nothing_by: The parameters by which its feed was empty when it was last made.
        liked: The posts that it has liked, in that order.
        reshared: Numbers of the roots whose cascades it has reshared a post of.
        replied: How often it has replied in the cascade of a root, by its number.
        activity: How much it writes, in means of the population.
        ideas: Steps at leisure before each of its ideas in this round; None if it has none.
        before_idea: Steps at leisure until the next one.
    """

    __slots__ = (
        "activity",
        "agent",
        "before_idea",
        "draft",
        "follows",
        "ideas",
        "inbox",
        "liked",
        "nothing_by",
        "post",
        "replied",
        "reshared",
        "seen",
        "seen_until",
        "sources",
        "topics",
        "unread",
        "words",
    )

    def __init__(self, agent: SocialAgent, candidates: int = CLASSIC.candidates) -> None:
        self.agent: SocialAgent = agent
        self.topics: list[str] = sorted(terms_of(agent.interests).topics)
        self.follows: frozenset[str] = frozenset(agent.following)
        self.inbox: deque[Post] = deque(maxlen=candidates)
        self.sources: tuple[Sequence[Post], ...] = (self.inbox,)
        self.unread: deque[Post] = deque()
        self.post: Post | None = None
        self.draft: Draft | None = None
        self.words: Words | None = None
        self.seen_until: int = 0
        self.seen: set[int] = set()
        self.nothing_by: Parameters | None = None
        self.liked: list[Post] = []
        self.reshared: set[int] = set()
        self.replied: dict[int, int] = {}
        self.activity: float = 1.0
        self.ideas: Iterator[int] | None = None
        self.before_idea: int = 0

    def note_written(self, post: Post) -> None:
        """Note what the agent has published in whose cascade."""
        root = post.root.number
        if post.kind == "reshare":
            self.reshared.add(root)
        elif post.kind == "reply":
            self.replied[root] = self.replied.get(root, 0) + 1

    def look_at_next(self) -> Post:
        """Take the first post of the feed, and return it."""
        self.post = post = self.unread.popleft()
        self.seen.add(post.number)
        return post


@dataclass(frozen=True, slots=True)
class Draft:
    """What a composing agent is about to publish.

    Args:
        kind: A ``reply`` to the post it looked at, a ``reshare`` of it, or a ``post`` of its own.
        text: What it will say.
        topics: What it is about.
        template: As for `Post`.
        source: As for `Post`.
    """

    kind: PostKind
    text: str
    topics: tuple[str, ...]
    template: str | None = None
    source: str | None = None


class Words:
    """The words of a draft, which a model is still to write.

    Args:
        draft: What the composer has drafted.

    Attributes:
        written: What came; None until it is there.
        post: The post, if it is published already.
        text: The text of its event.
        source: Who wrote it, of its event.
    """

    __slots__ = ("_draft", "post", "source", "text", "written")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.written: Written | None = None
        self.post: Post | None = None
        self.text: Later = Later()
        self.source: Later = Later()

    def arrive(self, written: Written) -> None:
        """Take the words, and put them into the post if it is published already."""
        self.written = written
        if self.post is not None:
            self.post.word(str(written.value), written.source)

        # the source first, as the text lets the event go
        self.source.know(written.source)
        self.text.know(written.value)

    def told_of(self, post: Post) -> dict[str, Any]:
        """Take the post that is published, and return what its event says of its words."""
        self.post = post
        return {"text": self.text, "source": self.source, "template": post.template}

    def draft(self) -> Draft:
        """Return the draft in these words, as far as they are there."""
        drafted = self._draft
        if self.written is None:
            return Draft(drafted.kind, drafted.text, drafted.topics, drafted.text)

        return Draft(
            drafted.kind,
            str(self.written.value),
            drafted.topics,
            drafted.text,
            self.written.source,
        )


class Network:
    """All posts of a run, and the feeds made from them.

    A new post is put into the inboxes of its author's followers and into the list of each of its
    topics, so that making a feed never looks at more than the newest few posts of each.

    Args:
        agents: The population.
        candidates: How many posts by authors whom it follows an agent's feed may choose from.

    Attributes:
        readers: The agents at their feeds.
        posts: All posts, oldest first.
        published: When each was published, in seconds since the epoch.
        likes: Likes of each post that has any, by its id.
        dislikes: Dislikes, likewise.
        voted: Numbers of the posts whose likes or dislikes have changed since they were ranked.
        removed: Ids of agents that have been taken out.
        now: The time, in seconds since the epoch; who runs the network sets it.
    """

    def __init__(self, agents: Iterable[SocialAgent], candidates: int = CLASSIC.candidates) -> None:
        self.readers: list[Reader] = [Reader(agent, candidates) for agent in agents]
        self._of: dict[str, Reader] = {each.agent.agent_id: each for each in self.readers}
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
        self._followers: dict[str, list[Reader]] = defaultdict(list)
        for reader in self.readers:
            reader.sources = (reader.inbox, *(self._by_topic[topic] for topic in reader.topics))
            for author_id in reader.agent.following:
                self._followers[author_id].append(reader)

    def seed(self, posts: Iterable[SeedPost]) -> list[Post]:
        """Publish what was posted before the simulation began.

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
            self._add(seed.author_id, Draft("post", seed.text, seed.topics), None, seed.post_id)
            for seed in seeds
        ]

    def post(self, post_id: str) -> Post | None:
        """Return the post of an id; None if there is none."""
        return self._by_id.get(post_id)

    def posts_by(self, author_id: str) -> Sequence[Post]:
        """Return what an agent has published, oldest first."""
        return self._by_author.get(author_id, ())

    def publish(self, author_id: str, draft: Draft, about: Post | None) -> Post:
        """Publish a draft.

        Args:
            author_id: Who publishes.
            draft: What.
            about: The post that the author looked at; the parent of a reply or reshare.
        """
        return self._add(author_id, draft, None if draft.kind == "post" else about)

    def publish_again(
        self, post_id: str, author_id: str, draft: Draft, parent: Post | None
    ) -> Post:
        """Publish a post of an earlier run under the id that it had."""
        return self._add(author_id, draft, parent, post_id)

    def posts_on(self, topic: str) -> Sequence[Post]:
        """Return what has been published on a topic, oldest first."""
        return self._by_topic.get(topic, ())

    def like(self, post: Post, reader: Reader | None = None) -> None:
        """Count one like.

        Args:
            post: The post.
            reader: Who likes it, if an agent does.
        """
        self.likes[post.post_id] += 1
        self.voted[post.number] = None
        if reader is not None:
            reader.liked.append(post)
            self._likers.setdefault(post.number, []).append(reader)

    def likers(self, post: Post) -> Sequence[Reader]:
        """Return the agents that have liked a post, in that order."""
        return self._likers.get(post.number, ())

    def vote(self, post: Post, likes: int, dislikes: int) -> None:
        """Give a post likes or dislikes that are no agent's."""
        for counts, number in ((self.likes, likes), (self.dislikes, dislikes)):
            if number:
                counts[post.post_id] += number
                self.voted[post.number] = None

    def score(self, post: Post) -> int:
        """Return the likes of a post less its dislikes."""
        return self.likes.get(post.post_id, 0) - self.dislikes.get(post.post_id, 0)

    def votes(self, post: Post) -> dict[str, int]:
        """Return likes, dislikes and score of a post, by these names."""
        likes, dislikes = self.likes.get(post.post_id, 0), self.dislikes.get(post.post_id, 0)
        return {"likes": likes, "dislikes": dislikes, "score": likes - dislikes}

    def remove(self, agent_id: str) -> None:
        """Take an agent out: from now on it follows nobody, and is followed by nobody."""
        self.removed[agent_id] = None
        for reader in self._followers.pop(agent_id, ()):
            reader.follows -= {agent_id}
            reader.nothing_by = None
        for readers in self._followers.values():
            readers[:] = [reader for reader in readers if reader.agent.agent_id != agent_id]

    def refresh(self, reader: Reader, length: int = CLASSIC.feed_length) -> bool:
        """Bring a reader's feed up to date with what it follows and is interested in, newest first.

        No post is shown twice, nor to its author. Posts left over from the last feed follow the new
        ones.

        Args:
            reader: Whose feed it is.
            length: How many posts it holds at the most.

        Returns:
            Whether there is anything to read.
        """
        since, reader.seen_until = reader.seen_until, len(self.posts)
        for posts in reader.sources:
            if posts and posts[-1].number >= since:
                break
        else:  # as most of the time
            return bool(reader.unread)

        fresh: dict[int, Post] = {}
        for posts in reader.sources:
            for post in islice(reversed(posts), length):
                if post.number < since:
                    break
                fresh[post.number] = post

        own = reader.agent.agent_id
        newest = [
            fresh[number]
            for number in sorted(fresh, reverse=True)
            if fresh[number].author_id != own
        ]
        reader.unread = deque(islice((*newest, *reader.unread), length))

        return bool(reader.unread)

    def _add(
        self, author_id: str, draft: Draft, parent: Post | None, post_id: str | None = None
    ) -> Post:
        number = len(self.posts)
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

        for reader in self._followers.get(author_id, ()):
            reader.inbox.append(post)

        return post

    def _new_id(self) -> str:
        number = len(self.posts)
        while (post_id := f"post_{number:06}") in self._ids:
            number += 1

        return post_id


class Later:
    """A value of an event that is known only later.

    Attributes:
        is_known: Whether it is.
        value: The value.
        told: Called when it gets known.
    """

    __slots__ = ("is_known", "told", "value")

    def __init__(self) -> None:
        self.is_known: bool = False
        self.value: Any = None
        self.told: Callable[[], object] | None = None

    def know(self, value: Any) -> None:
        """Give the value."""
        self.is_known, self.value = True, value
        if self.told is not None:
            self.told()


class HoldingLogger:
    """Passes events on in their order; one that waits for a value holds back all that follow.

    Args:
        given: Where they go in the end.
        clock: The run's clock.

    Attributes:
        relays: Marks a logger that passes events on to another one.
    """

    relays = True

    def __init__(self, given: EventLogger | None, clock: SimulatedClock) -> None:
        self._given = given
        self._clock = clock
        self._held: deque[tuple[Moment, Level, str, dict[str, Any]]] = deque()

    def info(self, event: str, **keys: Any) -> None:
        """Record something that happened."""
        self._say("info", event, keys)

    def warning(self, event: str, **keys: Any) -> None:
        """Record something that went wrong and was dealt with."""
        self._say("warning", event, keys)

    def error(self, event: str, **keys: Any) -> None:
        """Record a fault in the user's code."""
        self._say("error", event, keys)

    def _say(self, level: Level, event: str, keys: dict[str, Any]) -> None:
        if not self._held and not _waits_for(keys):
            report(self._given, level, event, **_known(keys))
            return

        for later in _waits_for(keys):
            later.told = self._go_on
        self._held.append((self._clock.moment, level, event, keys))

    def _go_on(self) -> None:
        while self._held and not _waits_for(self._held[0][-1]):
            moment, level, event, keys = self._held.popleft()
            with self._clock.at(moment):
                report(self._given, level, event, **_known(keys))


def _waits_for(keys: dict[str, Any]) -> list[Later]:
    return [each for each in keys.values() if isinstance(each, Later) and not each.is_known]


def _known(keys: dict[str, Any]) -> dict[str, Any]:
    return {name: each.value if isinstance(each, Later) else each for name, each in keys.items()}
