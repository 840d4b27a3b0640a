"""Posts, and the network that delivers them to readers and counts their votes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from prism.agents.words import Terms, terms_of

PostKind = Literal["post", "reply", "reshare"]
Action = Literal["follow", "unfollow"]


@dataclass(frozen=True, slots=True)
class Draft:
    """What an agent is about to publish.

    Args:
        text: Its text.
        topics: Its topics.
        template: The text without a model, if a model wrote it. A post is weighed by its template,
            so the words of a model change no transition.
        source: The source of the text, as in `prism.reasoner.Written`.
    """

    text: str
    topics: tuple[str, ...]
    template: str | None = None
    source: str | None = None


@dataclass(slots=True, eq=False)
class Post:
    """Something an agent published.

    Args:
        post_id: Unique id.
        author_id: Id of its author.
        kind: ``post``, ``reply`` or ``reshare``.
        draft: Its text and topics.
        parent: The post that it replies to or reshares; None for a new post.
        number: Its number in the order of publication, from 0.
        published: When it was published, in seconds since the epoch.

    Attributes:
        root: The post at the beginning of the cascade; a new post is its own root.
        depth: Steps from the root.
        text: Its text.
        topics: Its topics.
        terms: Topics and words, for rating relevance.
        likes: Number of likes.
        dislikes: Number of dislikes.
    """

    post_id: str
    author_id: str
    kind: PostKind
    draft: Draft
    parent: Post | None = field(default=None, repr=False)
    number: int = 0
    published: float = 0.0
    text: str = field(init=False, repr=False)
    topics: tuple[str, ...] = field(init=False, repr=False)
    root: Post = field(init=False, repr=False)
    depth: int = field(init=False)
    terms: Terms = field(init=False, repr=False)
    likes: int = field(default=0, init=False)
    dislikes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Compute the post's position in its cascade."""
        parent, draft = self.parent, self.draft
        self.text, self.topics = draft.text, draft.topics
        self.root = self if parent is None else parent.root
        self.depth = 0 if parent is None else parent.depth + 1
        self.terms = terms_of(draft.topics, draft.template or draft.text)

    @property
    def score(self) -> int:
        """Likes minus dislikes."""
        return self.likes - self.dislikes

    @property
    def votes(self) -> dict[str, int]:
        """Likes, dislikes and score, by these names."""
        return {"likes": self.likes, "dislikes": self.dislikes, "score": self.score}


class Network:
    """All posts of a run, and where they go.

    A new post goes into the pools of its author's followers and into the list of each of its
    topics, so that a new feed needs only the newest few posts of each.

    Args:
        readers: The agents at their feeds.
        candidates: Number of posts by followed authors from which an agent's feed may choose.

    Attributes:
        posts: All posts, oldest first.
        opening: Number of posts from before the first round.
        ids: Ids that are taken, also by opening posts that are still to come.
        by_topic: What has been published on each topic, oldest first.
    """

    def __init__(self, readers: Iterable[Any], candidates: int) -> None:
        self.posts: list[Post] = []
        self.opening = 0
        self.ids: set[str] = set()
        self.by_topic: dict[str, list[Post]] = defaultdict(list)
        self._followers: dict[str, dict[Any, None]] = defaultdict(dict)
        for reader in readers:
            reader.pool = deque(maxlen=candidates)
            topics = sorted(reader.terms.topics)
            reader.sources = (reader.pool, *(self.by_topic[topic] for topic in topics))
            for author_id in reader.follows:
                self._followers[author_id][reader] = None

    def publish(self, post: Post) -> None:
        """Publish a post."""
        self.posts.append(post)
        self.ids.add(post.post_id)
        for topic in post.terms.topics:
            self.by_topic[topic].append(post)
        for reader in self._followers.get(post.author_id, ()):
            reader.pool.append(post)

    def vote(self, post: Post, likes: int, dislikes: int) -> None:
        """Give a post likes and dislikes."""
        post.likes += likes
        post.dislikes += dislikes

    def change(self, reader: Any, action: Action, author_id: str) -> None:
        """Make a reader follow or unfollow an author, whose posts it sees from then on."""
        reader.empty_at = None
        if action == "follow":
            reader.follows[author_id] = self._followers[author_id][reader] = None
        else:
            reader.follows.pop(author_id, None)
            self._followers[author_id].pop(reader, None)


def newest(sources: Iterable[Sequence[Post]], since: int, length: int) -> list[Post]:
    """Return the newest posts of some sources, from a number on, newest first."""
    fresh: dict[int, Post] = {}
    for posts in sources:
        for index in range(len(posts) - 1, max(len(posts) - 1 - length, -1), -1):
            post = posts[index]
            if post.number < since:
                break
            fresh[post.number] = post

    return [fresh[number] for number in sorted(fresh, reverse=True)]
