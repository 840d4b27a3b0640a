"""Posts and their drafts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from prism.agents.words import Terms, terms_of

PostKind = Literal["post", "reply", "reshare"]


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
