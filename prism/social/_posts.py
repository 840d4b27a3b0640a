"""Posts, drafts of them, and events that wait for the words of a post."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from prism.agents.relevance import Terms, terms_of
from prism.runlog import SimulatedClock
from prism.runlog._writer import Moment
from prism.statechart import Written
from prism.telemetry.instruments import Level
from prism.telemetry.loggers import EventLogger, report
from prism.worlds._asking import RelayLogger

PostKind = Literal["post", "reply", "reshare"]


@dataclass(frozen=True, slots=True, eq=False)
class Post:
    """Something an agent published.

    Args:
        post_id: Unique id.
        author_id: Id of its author.
        text: Its text.
        topics: Its topics.
        kind: ``post``, ``reply`` or ``reshare``.
        parent: The post that it replies to or reshares; None for a new post.
        number: Place in the order of publication, from 0.
        template: The composer's draft, if a model writes the text. A post is weighed by its draft,
            so the words change no transition.
        source: The source of that text, as in `prism.statechart.Written`; None until it arrives.

    Attributes:
        root: The post at the beginning of the cascade; a new post is its own root.
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
        """Compute the post's position in its cascade."""
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


@dataclass(frozen=True, slots=True)
class Draft:
    """A text that a composing agent is about to publish.

    Args:
        kind: A ``reply`` to the post it looked at, a ``reshare`` of it, or a new ``post``.
        text: Its text.
        topics: Its topics.
        template: As for `Post`.
        source: As for `Post`.
    """

    kind: PostKind
    text: str
    topics: tuple[str, ...]
    template: str | None = None
    source: str | None = None


class Words:
    """The words of a draft, which a model has not written yet.

    Args:
        draft: The composer's draft.

    Attributes:
        written: The text; None until it arrives.
        post: The post, if it has been published.
        text: The text of its event.
        source: The source of the text, in its event.
    """

    __slots__ = ("_draft", "post", "source", "text", "written")

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self.written: Written | None = None
        self.post: Post | None = None
        self.text: Later = Later()
        self.source: Later = Later()

    def arrive(self, written: Written) -> None:
        """Store the words, and put them into the post if it has been published."""
        self.written = written
        if self.post is not None:
            self.post.word(str(written.value), written.source)

        # the source first, since the text releases the event
        self.source.know(written.source)
        self.text.know(written.value)

    def told_of(self, post: Post) -> dict[str, Any]:
        """Store the published post, and return the data about its words for its event."""
        self.post = post
        return {"text": self.text, "source": self.source, "template": post.template}

    def draft(self) -> Draft:
        """Return the draft with these words, if they have arrived."""
        drafted = replace(self._draft, template=self._draft.text)
        if self.written is None:
            return drafted

        return replace(drafted, text=str(self.written.value), source=self.written.source)


class Later:
    """A value of an event that becomes known later.

    Attributes:
        is_known: Whether it is.
        value: The value.
        told: Called when the value becomes known.
    """

    __slots__ = ("is_known", "told", "value")

    def __init__(self) -> None:
        self.is_known: bool = False
        self.value: Any = None
        self.told: Callable[[], object] | None = None

    def know(self, value: Any) -> None:
        """Set the value."""
        self.is_known, self.value = True, value
        if self.told is not None:
            self.told()


class HoldingLogger(RelayLogger):
    """Passes events on in order; an event that waits for a value delays those after it.

    Args:
        given: The logger that finally receives them.
        clock: The run's clock.
    """

    def __init__(self, given: EventLogger | None, clock: SimulatedClock) -> None:
        self._given = given
        self._clock = clock
        self._held: deque[tuple[Moment, Level, str, dict[str, Any]]] = deque()

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
