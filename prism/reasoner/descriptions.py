"""What a model reads about an agent: values, its situation, its memory and its options, in words.

A text that the chart's author did not write, such as a post or a personality, never has a line at
the left margin of a prompt, so that it cannot pose as a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from math import isfinite
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner.questions import Question
from prism.statechart import Configuration
from prism.statechart.names import agent_name, identify
from prism.statechart.states import AgentState, state_text

# Texts


def one_line(text: Any) -> str:
    """Return a text as a single line, as a name has to be."""
    return " ".join(str(text).split())


def indented(text: str) -> str:
    """Return a text whose lines after the first are indented."""
    return "\n  ".join(text.splitlines())


def quotation(text: str) -> str:
    """Return a text as a quotation: each of its lines indented, behind a mark."""
    return "\n".join(f"  > {line}".rstrip() for line in text.splitlines())


def joined(*parts: str) -> str:
    """Return a prompt of those parts that are not empty."""
    return "\n\n".join(part for part in parts if part) + "\n"


# Values

_LARGE = 1e16
"""Numbers from here on have an exponent in a prompt, as in Python."""


def in_words(value: Any) -> str:
    """Return a value in words: numbers with all of their digits, lists with commas."""
    for kinds, write in _IN_WORDS:
        if isinstance(value, kinds):
            return write(value)

    return in_words(list((identify(value) or {}).values()))


def number_in_words(number: float) -> str:
    """Return a number with the fewest digits that are exact, and no exponent below 1e16."""
    text = repr(number)
    if not isfinite(number) or abs(number) >= _LARGE:
        return text
    return format(Decimal(text), "f").removesuffix(".0")


def _member_in_words(member: Enum) -> str:
    return state_text(member) if isinstance(member, str) else in_words(member.value)


def _mapping_in_words(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(f"{in_words(key)}: {in_words(item)}" for key, item in mapping.items())


_IN_WORDS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (Enum, _member_in_words),
    (bool, lambda value: "yes" if value else "no"),
    (float, number_in_words),
    (Mapping, _mapping_in_words),
    ((set, frozenset), lambda value: ", ".join(sorted(map(in_words, value)))),
    ((list, tuple), lambda value: ", ".join(map(in_words, value))),
    (type(None), lambda _: "none"),
    ((str, int), str),
)
"""The wording of each kind of value; enum members and truth values may also be texts or numbers."""


def lines_of(values: Mapping[str, Any]) -> list[str]:
    """Return values as lines such as ``age: 34``."""
    return [f"{one_line(name)}: {indented(in_words(value))}" for name, value in values.items()]


def attribute_of(agent: Any, name: str) -> Any:
    """Return an attribute of an agent: from its ``attributes``, or else its own.

    Raises:
        ReasonerError: If there is none.
    """
    further = getattr(agent, "attributes", None)
    sources = [further, agent] if isinstance(further, Mapping) else [agent]
    return value_in(sources, name, f"agent {agent_name(agent)!r}")


def value_in(sources: Sequence[Any], name: str, owner: str) -> Any:
    """Return a key or an attribute of the first object that has it.

    Args:
        sources: The objects.
        name: The key or the attribute.
        owner: What to call the objects in a message.

    Raises:
        ReasonerError: If none of them has it.
    """
    for source in sources:
        if isinstance(source, Mapping):
            if name in source:
                return source[name]
        elif not name.startswith("_") and hasattr(source, name):
            value = getattr(source, name)
            if not callable(value):
                return value

    names = dict.fromkeys(each for source in sources for each in _names_in(source))
    listed = ", ".join(names) or "nothing"
    raise ReasonerError(f"a prompt names {name!r}, which {owner} does not have: it has {listed}")


def _names_in(source: Any) -> list[str]:
    names = source if isinstance(source, Mapping) else getattr(source, "__dict__", ())
    return [str(name) for name in names if not str(name).startswith("_")]


# Contexts and memories

_OF_POSTS = {"text", "content", "author_id", "author", "topics", "post_id", "id"}


def format_context(context: Any) -> str:
    """Describe a context: a post by author, text and topics, anything else by its fields.

    The text of a post is quoted. A mapping with keys that posts do not have is no post.
    """
    if context is None:
        return "There are no further details."
    if isinstance(context, str):
        return context

    texts = _texts_of_post(context)
    if not texts:
        return "\n".join(lines_of(identify(context) or {}))

    text = next((str(text) for text in texts if text != ""), "(no text)")
    author = _field(context, "author_id") or _field(context, "author")
    topics = _field(context, "topics")
    lines = [f"Post by {one_line(author)}:" if author else "Post:", quotation(text)]
    if topics:
        lines.append(f"Topics: {', '.join(_texts_in(topics))}")

    return "\n".join(lines)


def _texts_of_post(context: Any) -> list[Any]:
    """Return what a context has as a post's text; nothing if it is no post."""
    if isinstance(context, Mapping) and context.keys() - _OF_POSTS:
        return []
    return [text for name in ("text", "content") if (text := _field(context, name)) is not None]


def _field(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)


def _texts_in(items: Any) -> list[str]:
    """Return several values as texts; a single one stands for a list of one."""
    several = isinstance(items, Iterable) and not isinstance(items, str)
    return [*map(one_line, items if several else [items])]


def remembered(memories: Sequence[str], most: int) -> str:
    """Return the last memories of an agent as a part of a prompt; empty if there are none."""
    cut = ["- (earlier things are left out)"] * (len(memories) > most)
    lines = [f"- {one_line(each)}" for each in memories[-most:]]
    return "\n".join(("What you remember, oldest first:", *cut, *lines)) if lines else ""


def transition_in_words(record: Any) -> str:
    """Return an entry of an agent's history in words."""
    source, target = state_text(record.from_state), state_text(record.to_state)
    return f'You went from "{source}" to "{target}" on "{record.trigger}"{_about(record.context)}.'


def stay_in_words(state: Any, trigger: str, context: Any) -> str:
    """Return a decision to stay in words, since the history has no entry for it."""
    return f'You stayed in "{state_text(state)}" on "{trigger}"{_about(identify(context))}.'


def _about(context: Mapping[str, Any] | None) -> str:
    return f" ({in_words(context)})" if context else ""


# The meaning of options

STATE_DESCRIPTIONS: Mapping[AgentState, str] = {
    AgentState.IDLE: "Stop browsing, wait for next round",
    AgentState.SCROLLING: "Continue browsing without engaging",
    AgentState.EVALUATING: "Look more closely at this post",
    AgentState.COMPOSING: "Write a response or original content",
    AgentState.ENGAGING_LIKE: "Like this post",
    AgentState.ENGAGING_REPLY: "Reply to this post",
    AgentState.ENGAGING_RESHARE: "Reshare this post",
    AgentState.RESTING: "Take a break from activity",
}
"""The meaning of each state, for the prompt."""


@lru_cache(maxsize=256)
def has_states_of_the_feed(kind: type) -> bool:
    """Return whether the states of an enum are those of the social feed, and perhaps others."""
    # a chart that extends the social one has an enum with these states and others
    return kind is AgentState or (
        issubclass(kind, Enum) and {*map(state_text, AgentState)} <= {*map(state_text, kind)}
    )


def description_in(option: Any, descriptions: Mapping[Any, str]) -> str:
    """Return the description of an option, or its name in words."""
    return descriptions.get(option) or _words(option)


def _words(name: Any) -> str:
    return state_text(name).replace("_", " ")


# A question


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """The contents of prompts besides the question.

    Args:
        descriptions: Meaning of each state.
        prompt: Writes the user's own prompt; None for the default one.
        attributes: Names of the agents' attributes to include.
        memory: How many things an agent remembers.
    """

    descriptions: Mapping[Any, str] = field(default_factory=lambda: STATE_DESCRIPTIONS)
    prompt: WritePrompt | None = None
    attributes: Sequence[str] = ()
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Briefing:
    """A question in words: who is asked, what happens, and what each option means.

    The user's own prompt may name its properties.

    Args:
        question: The question.
        settings: The contents of prompts besides the question.
    """

    question: Question
    settings: PromptSettings

    @property
    def name(self) -> str:
        """The name of the agent."""
        agent = self.question.agent
        return one_line(getattr(agent, "name", None) or agent_name(agent))

    @property
    def interests(self) -> list[str]:
        """The topics that interest the agent, if it has any."""
        return _texts_in(getattr(self.question.agent, "interests", None) or ())

    @property
    def personality(self) -> str:
        """The personality of the agent, if it has one."""
        return indented(str(getattr(self.question.agent, "personality", None) or ""))

    @property
    def attributes(self) -> list[str]:
        """The chosen attributes of the agent, a line for each.

        Raises:
            ReasonerError: If the agent has no such attribute.
        """
        names = self.settings.attributes
        return lines_of({name: attribute_of(self.question.agent, name) for name in names})

    @property
    def persona(self) -> str:
        """The agent's own description, and the chosen attributes."""
        about = self.text_by("persona") or self.text_by("describe") or self._profile()
        return "\n".join((about, *self.attributes))

    def text_by(self, method: str) -> str | None:
        """Return the text that a method of the agent returns; None without such a method or text.

        Anything but a text is ignored, since a ``unittest.mock.MagicMock`` has every method.
        """
        describes = getattr(self.question.agent, method, None)
        text = describes() if callable(describes) else None
        return text if isinstance(text, str) else None

    def _profile(self) -> str:
        interests, personality = ", ".join(self.interests), self.personality
        lines = (
            f"You are {self.name}.",
            f"Your interests: {interests}" if interests else "",
            f"Your personality: {personality}" if personality else "",
        )
        return "\n".join(line for line in lines if line)

    @property
    def description(self) -> str:
        """What the author of the chart says about it."""
        return "" if self.question.chart is None else self.question.chart.description.strip()

    @property
    def context(self) -> str:
        """The context of the event."""
        context = self.question.context
        return indented(context) if isinstance(context, str) else format_context(context)

    @property
    def situation(self) -> str:
        """The situation: the question's prompt, or else state, event and context."""
        if self.question.prompt:
            return self.question.prompt

        now, event = _words(self.question.state), _words(self.question.trigger)
        return f"Now: {now}. What happens: {event}.\n\n{self.context}"

    @property
    def memory(self) -> str:
        """The last things that happened to the agent; empty if it remembers none."""
        most, recall = self.settings.memory, self.question.recall
        if not most:
            return ""
        # one more than a prompt lists reveals that there are more
        return remembered((recall or self._history)(most + 1), most)

    def _history(self, most: int) -> list[str]:
        """Return the last transitions of an agent that keeps a history, oldest first."""
        history: Iterable[Any] = getattr(self.question.agent, "state_history", None) or ()
        return [transition_in_words(record) for record in list(history)[-most:]]

    def meaning(self, option: Any) -> str:
        """Return the meaning of an option: the user's, the agent's, or its name."""
        descriptions = self.settings.descriptions
        # not the feed's, since a state of another enum may have the same text
        if descriptions is STATE_DESCRIPTIONS and not has_states_of_the_feed(option.__class__):
            descriptions = {}

        if isinstance(option, Configuration):
            meanings = [*map(self.meaning, option.leaves)]
            if meanings == [*map(state_text, option.leaves)]:
                meanings = [state_text(option)]
            return descriptions.get(option) or "; ".join(meanings)

        of_agent = getattr(self.question.agent, "meanings", None)
        meaning = of_agent.get(option) if isinstance(of_agent, Mapping) else None
        return meaning or description_in(option, descriptions)


WritePrompt = Callable[[Briefing, str, str], str]
"""Returns the prompt of a question, from its list of options and how to respond."""
