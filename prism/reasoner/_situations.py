"""What a prompt says about an agent, its memory, its situation, and what its options mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any

from prism.reasoner._questions import Question
from prism.reasoner._words import attribute_of, in_words, indented, lines_of, one_line, quotation
from prism.statechart import Configuration
from prism.statechart.names import agent_name, identify
from prism.statechart.states import AgentState, state_text

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


def format_context(context: Any) -> str:
    """Describe a context: a post by author, text and topics, anything else by its fields.

    The text of a post stands quoted. A mapping with other keys than those of a post is no post.
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
        lines.append(f"Topics: {', '.join(_listed(topics))}")

    return "\n".join(lines)


def _texts_of_post(context: Any) -> list[Any]:
    """Return what a context has as a post's text; nothing if it is no post."""
    if isinstance(context, Mapping) and context.keys() - _OF_POSTS:
        return []
    return [text for name in ("text", "content") if (text := _field(context, name)) is not None]


_OF_POSTS = {"text", "content", "author_id", "author", "topics", "post_id", "id"}


def _field(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)


def situation_of(question: Question) -> str:
    """Return the situation: the question's prompt, or else state, event and context."""
    if question.prompt:
        return question.prompt

    context = format_context(question.context)
    return f"Now: {_words(question.state)}. What happens: {_words(question.trigger)}.\n\n{context}"


def _words(name: Any) -> str:
    return state_text(name).replace("_", " ")


def description_of(question: Question) -> str:
    """Return what the author of a question's chart says about it."""
    return "" if question.chart is None else question.chart.description.strip()


def memory_of(question: Question, most: int) -> str:
    """Return the last things that happened to an agent, as a part of a prompt.

    Args:
        question: The question.
        most: How many of them are told; with 0, the text is empty.
    """
    if not most:
        return ""
    # one more than is told reveals that there are more
    if question.recall is not None:
        return remembered(question.recall(most + 1), most)
    return remembered(_things_in_history(question.agent, most + 1), most)


def remembered(things: Sequence[str], most: int) -> str:
    """Return the last of some things as a part of a prompt; empty if there are none."""
    cut = ["- (earlier things are left out)"] * (len(things) > most)
    lines = [f"- {one_line(each)}" for each in things[-most:]]
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


def _things_in_history(agent: Any, most: int) -> list[str]:
    """Return the last transitions of an agent that keeps a history, oldest first."""
    history: Iterable[Any] = getattr(agent, "state_history", None) or ()
    return [transition_in_words(record) for record in list(history)[-most:]]


# Meanings


@lru_cache(maxsize=256)
def has_states_of_the_feed(kind: type) -> bool:
    """Return whether the states of an enum are those of the social feed, and perhaps others."""
    # a chart that extends the social one has an enum with these states and others
    return kind is AgentState or (
        issubclass(kind, Enum) and {*map(state_text, AgentState)} <= {*map(state_text, kind)}
    )


def meaning_of(question: Question, option: Any, descriptions: Mapping[Any, str]) -> str:
    """Return the meaning of an option: the user's, the agent's, or its name."""
    # not the feed's, since a state of another enum may have the same text
    if descriptions is STATE_DESCRIPTIONS and not has_states_of_the_feed(option.__class__):
        descriptions = {}

    if isinstance(option, Configuration):
        meanings = [meaning_of(question, leaf, descriptions) for leaf in option.leaves]
        is_named = meanings == [*map(state_text, option.leaves)]
        return descriptions.get(option) or (state_text(option) if is_named else "; ".join(meanings))

    of_agent = getattr(question.agent, "meanings", None)
    meaning = of_agent.get(option) if isinstance(of_agent, Mapping) else None
    return meaning or description_in(option, descriptions)


def description_in(option: Any, descriptions: Mapping[Any, str]) -> str:
    """Return the description of an option, or its name in words."""
    return descriptions.get(option) or _words(option)


# Agents


def name_of(agent: Any) -> str:
    """Return the name of an agent."""
    return one_line(getattr(agent, "name", None) or agent_name(agent))


def interests_of(agent: Any) -> list[str]:
    """Return the topics that interest an agent, if it has any."""
    return _listed(getattr(agent, "interests", None) or ())


def personality_of(agent: Any) -> str:
    """Return the personality of an agent, if it has one."""
    return indented(str(getattr(agent, "personality", None) or ""))


def persona_of(agent: Any, attributes: Sequence[str]) -> str:
    """Describe an agent: its own description, and the chosen attributes.

    Raises:
        ReasonerError: If the agent has no such attribute.
    """
    about = text_from(agent, "persona") or text_from(agent, "describe") or _profile(agent)
    return "\n".join((about, *lines_of({name: attribute_of(agent, name) for name in attributes})))


def text_from(agent: Any, method: str) -> str | None:
    """Return the text that a method of an agent returns; None without such a method or text.

    Anything but a text is ignored, since a `unittest.mock.MagicMock` has every method.
    """
    describes = getattr(agent, method, None)
    text = describes() if callable(describes) else None
    return text if isinstance(text, str) else None


def _profile(agent: Any) -> str:
    interests, personality = ", ".join(interests_of(agent)), personality_of(agent)
    lines = (
        f"You are {name_of(agent)}.",
        f"Your interests: {interests}" if interests else "",
        f"Your personality: {personality}" if personality else "",
    )

    return "\n".join(line for line in lines if line)


def _listed(items: Any) -> list[str]:
    """Return the texts of several things, or of a single one."""
    several = isinstance(items, Iterable) and not isinstance(items, str)
    return [*map(one_line, items if several else [items])]
