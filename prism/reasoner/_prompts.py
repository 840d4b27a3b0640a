"""The wording of a question, for every way in which a model is asked.

A prompt begins with the part that all agents share (the chart's description and the options), so
that servers can reuse what they have read, and ends with how to respond. Only a question of the
social feed that is put to a `Reasoner` outside of a run has the prompt of the specification.

The options may be listed in another order, since language models prefer options by letter and
position (Zheng, Zhou, Meng, Zhou and Huang 2024, "Large Language Models Are Not Robust Multiple
Choice Selectors", ICLR). With rotations drawn for each question, no option comes first more often
than another.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from prism._faults import place_of
from prism.errors import ReasonerError
from prism.reasoner._questions import Question, hash_of
from prism.reasoner._recollection import Recollection, things_in_history
from prism.reasoner._replies import LETTER
from prism.reasoner._words import (
    Template,
    attribute_of,
    fill_fields,
    indented,
    lines_of,
    one_line,
    quotation,
    template_of,
    value_in,
)
from prism.statechart import Configuration
from prism.statechart.names import agent_name, identify
from prism.statechart.states import AgentState, state_text
from prism.telemetry.loggers import describe

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

MOST_REASON_CHARACTERS = 300
"""Maximum length of a reason."""

_REPLY = 'Respond with JSON only:\n{"next_state": "<state_value>"}'
_REPLY_WITH_REASON = (
    "Respond with JSON only, the reason in one sentence:\n"
    '{"next_state": "<state_value>", "reason": "<why>"}'
)
_TASK = "Below you read who you are and what happens. Choose what you do next:"


PROMPT_LOGGER: logging.Logger = logging.getLogger("prism.statechart.prompts")
"""The logger for warnings about prompts that are given once and change no log."""

Prompt = str | Callable[[Question], str]
"""A template, or a function that returns the prompt."""

OwnPrompt = Template | Callable[[Question], str]
"""A stored prompt, its template parsed."""

_FIELDS = (
    *("name", "persona", "state", "trigger", "options", "chart", "description", "situation"),
    *("context", "memory", "reply"),
)


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """The contents of prompts besides the question.

    Args:
        descriptions: Meaning of each state.
        prompt: The user's own prompt; None for the default one.
        attributes: Names of the agents' attributes to include.
        memory: The agents' memory.
        asks_reason: Whether to ask for a reason besides the choice.
    """

    descriptions: Mapping[Any, str] = field(default_factory=lambda: STATE_DESCRIPTIONS)
    prompt: OwnPrompt | None = None
    attributes: Sequence[str] = ()
    memory: Recollection | None = None
    asks_reason: bool = False


DEFAULT_SETTINGS = PromptSettings()


# How to respond


def answer_schema(
    options: Sequence[Any], *, key: str = "next_state", asks_reason: bool = False
) -> dict[str, Any]:
    """Return the JSON schema of a reply: one of the options under a key.

    A reason comes after the choice, which therefore does not depend on it: a run with reasons
    differs from one without only in a line of the prompt.
    """
    states = {"type": "string", "enum": [state_text(option) for option in options]}
    properties: dict[str, Any] = {key: states}
    if asks_reason:
        properties["reason"] = {"type": "string", "maxLength": MOST_REASON_CHARACTERS}

    return {"type": "object", "properties": properties, "required": list(properties)}


def letter_schema(letters: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON schema of a reply with a letter, which says what each letter stands for."""
    schema = answer_schema(list(letters), key=LETTER)
    schema["properties"][LETTER]["description"] = json.dumps(letters, ensure_ascii=False)
    return schema


def letter_form(letters: Sequence[str]) -> str:
    """Return the form of a reply with a letter: ``{"letter": "A, B or C"}``."""
    either = " or ".join(filter(None, (", ".join(letters[:-1]), letters[-1])))
    return f'{{"{LETTER}": "{either}"}}'


# Prompts


def chat_prompt(question: Question, settings: PromptSettings = DEFAULT_SETTINGS) -> str:
    """Build the prompt of a question that is answered by the name of an option.

    Raises:
        ReasonerError: If the user's own prompt does not fit the question.
    """
    reply = _REPLY_WITH_REASON if settings.asks_reason else _REPLY
    if settings.prompt is None and _has_specified_prompt(question):
        return _specified_prompt(question, settings).removesuffix(f"{_REPLY}\n") + f"{reply}\n"

    listed = []
    for option in question.options:
        text, meaning = state_text(option), meaning_of(question, option, settings.descriptions)
        # a state whose meaning is its name is listed without it
        listed.append(f"- {text}" if text == meaning else f"- {text}: {meaning}")
    return _prompt(question, settings, "\n".join(listed), reply)


def letter_prompt(question: Question, settings: PromptSettings, letters: Sequence[str]) -> str:
    """Build the prompt of a question that is answered by a letter.

    The wording was measured on small models (``python -m tests.benchmarks --only wordings``). With
    ``"<letter>"`` in the last line, or name and meaning of an option, they would rather write the
    option's name, and its letter has little probability.

    Raises:
        ReasonerError: If the user's own prompt does not fit the question.
    """
    meanings = (meaning_of(question, option, settings.descriptions) for option in question.options)
    listed = "\n".join(f"{letter}: {each}" for letter, each in zip(letters, meanings, strict=True))
    how = f"Respond with JSON only, with the letter of one option:\n{letter_form(letters)}"
    return _prompt(question, settings, listed, how)


def _prompt(question: Question, settings: PromptSettings, options: str, reply: str) -> str:
    """Put the part for all agents first, then the agent's own, and how to respond last."""
    own = settings.prompt
    if own is not None:
        text, fields = fill(own, question, settings, options=options, reply=reply)
        further = {
            "memory": memory_of(question, settings),
            "options": f"Choose one of these:\n{options}",
            "reply": reply,
        }
        parts = [text.rstrip(), *(part for name, part in further.items() if name not in fields)]
    else:
        parts = [
            description_of(question),
            f"{_TASK}\n{options}",
            persona_of(question.agent, settings.attributes),
            memory_of(question, settings),
            situation_of(question),
            reply,
        ]

    return "\n\n".join(part for part in parts if part) + "\n"


def own_prompt(prompt: Prompt | None, *, has_memory: bool) -> OwnPrompt | None:
    """Return the user's own prompt, its template parsed.

    Args:
        prompt: The template or function; None for the default prompt.
        has_memory: Whether a template may name the memory.

    Raises:
        ReasonerError: If a template names an unknown field, or it is not a prompt; the message
            lists all problems.
    """
    if prompt is None or callable(prompt):
        return prompt
    if not isinstance(prompt, str):
        raise ReasonerError(
            f"prompt must be a template or a function of the question, got {prompt!r}"
        )

    template, problems = template_of(prompt, _FIELDS, ("agent", "context", "world"))
    if not prompt.strip():
        problems.append("is empty: omit it to use the default")
    if "memory" in template.names and not has_memory:
        problems.append("names {memory}: give Reasoner a memory, too")
    if problems:
        raise ReasonerError(f"prompt {'; '.join(problems)}")
    return template


def fill(
    own: OwnPrompt,
    question: Question,
    settings: PromptSettings,
    *,
    options: str,
    reply: str,
) -> tuple[str, Sequence[str]]:
    """Return the text of the user's own prompt, and the fields that it names."""
    if not isinstance(own, Template):
        try:
            text = own(question)
        except Exception as error:
            raise ReasonerError(
                f"a prompt's function raised {describe(error)} ({place_of(error)}): it is called "
                "with the Question"
            ) from error
        if not isinstance(text, str):
            raise ReasonerError(f"a prompt's function must return text, got {text!r}")
        return text, ()

    chart = question.chart
    fields: Mapping[str, Callable[[], str]] = {
        "name": lambda: name_of(question.agent),
        "persona": lambda: persona_of(question.agent, settings.attributes),
        "state": lambda: state_text(question.state),
        "trigger": lambda: question.trigger,
        "options": lambda: options,
        "chart": lambda: "" if chart is None else str(chart.name),
        "description": lambda: description_of(question),
        "situation": lambda: situation_of(question),
        "context": lambda: format_context(question.context),
        "memory": lambda: memory_of(question, settings),
        "reply": lambda: reply,
    }
    objects: Mapping[str, Callable[[str], Any]] = {
        "agent": lambda name: attribute_of(question.agent, name),
        "context": lambda name: value_in([question.context], name, "the context"),
        "world": lambda name: value_in([question.parameters or {}], name, "the world"),
    }
    return fill_fields(own, fields, objects), own.names


def prompt_hash(question: Question, settings: PromptSettings) -> str | None:
    """Return the beginning of the SHA-256 of a question's prompt; None if it cannot be built."""
    try:
        return hash_of(chat_prompt(question, settings))
    except Exception:  # of the user's agent or post; the question is not asked
        return None


# The prompt of the specification


def build_reasoner_prompt(
    agent_name: str,
    agent_interests: list[str],
    agent_personality: str,
    current_state: Any,
    trigger: str,
    options: list[Any],
    context: Any,
    *,
    descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS,
) -> str:
    """Build the question that a model is asked.

    Args:
        agent_name: Name of the agent.
        agent_interests: Topics that interest it.
        agent_personality: Its personality, in words.
        current_state: Its state.
        trigger: The event that opened the question.
        options: The states to choose from.
        context: The event's context; see `format_context`.
        descriptions: Meaning of each state.
    """
    options_text = "\n".join(
        f"- {state_text(option)}: {_description(option, descriptions)}" for option in options
    )
    return f"""You are {agent_name}, a social media user.

Your interests: {", ".join(agent_interests)}
Your personality: {agent_personality}

You are currently in the "{state_text(current_state)}" state and received the "{trigger}" event.

{format_context(context)}

Choose your next state from these options:
{options_text}

{_REPLY}
"""


def _has_specified_prompt(question: Question) -> bool:
    """Return whether a question is one of the social chart's states, asked outside of a run."""
    return (
        question.prompt is None
        and _has_states_of_the_feed(question.state.__class__)
        and _text_from(question.agent, "persona") is None
    )


def _specified_prompt(question: Question, settings: PromptSettings) -> str:
    agent = question.agent
    attributes = lines_of({name: attribute_of(agent, name) for name in settings.attributes})
    context = format_context(question.context)
    memory = memory_of(question, settings)
    return build_reasoner_prompt(
        agent_name=name_of(agent),
        agent_interests=interests_of(agent),
        agent_personality="\n".join((personality_of(agent), *attributes)),
        current_state=question.state,
        trigger=question.trigger,
        options=list(question.options),
        context=f"{context}\n\n{memory}" if memory else context,
        descriptions=settings.descriptions,
    )


@lru_cache(maxsize=256)
def _has_states_of_the_feed(kind: type) -> bool:
    # a chart that extends the social one has an enum with these states and others
    return kind is AgentState or (
        issubclass(kind, Enum) and {*map(state_text, AgentState)} <= {*map(state_text, kind)}
    )


# Situations


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


def memory_of(question: Question, settings: PromptSettings) -> str:
    """Return what an agent remembers; empty if prompts have no memory."""
    memory = settings.memory
    if memory is None:
        return ""

    # one more than is included reveals that there are more
    most = memory.last + 1
    recall = question.recall
    return memory.tell(things_in_history(question.agent, most) if recall is None else recall(most))


# Meanings


def meaning_of(question: Question, option: Any, descriptions: Mapping[Any, str]) -> str:
    """Return the meaning of an option: the user's, the agent's, or its name."""
    # not the feed's, since a state of another enum may have the same text
    if descriptions is STATE_DESCRIPTIONS and not _has_states_of_the_feed(option.__class__):
        descriptions = {}

    if isinstance(option, Configuration):
        meanings = [meaning_of(question, leaf, descriptions) for leaf in option.leaves]
        is_named = meanings == [*map(state_text, option.leaves)]
        return descriptions.get(option) or (state_text(option) if is_named else "; ".join(meanings))

    own = getattr(question.agent, "meanings", None)
    meaning = own.get(option) if isinstance(own, Mapping) else None
    return meaning or _description(option, descriptions)


def _description(option: Any, descriptions: Mapping[Any, str]) -> str:
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
    about = _text_from(agent, "persona") or _text_from(agent, "describe") or _profile(agent)
    return "\n".join((about, *lines_of({name: attribute_of(agent, name) for name in attributes})))


def _text_from(agent: Any, method: str) -> str | None:
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
