"""The prompts for models, the requests that carry them, and what their replies choose.

In the social feed, the prompt of a chat is the specification's. For any other chart, the prompt
begins with the part that is the same for all agents (the chart's description, the options and their
meanings, and how to reply), so that servers can cache it, followed by the agent's own part. A
decision model gets the same facts as choice questions. Each question is a separate request.

The options may be listed in another order, since language models prefer options by letter and
position (Zheng, Zhou, Meng, Zhou and Huang 2024, "Large Language Models Are Not Robust Multiple
Choice Selectors", ICLR). With rotations drawn for each question, no option comes first more often
than another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

from prism._faults import place_of
from prism.errors import ReasonerError
from prism.reasoner._own_prompts import (
    OwnPrompt,
    OwnPrompts,
    Template,
    attribute_lines,
    value_of,
)
from prism.reasoner._questions import Question, hash_of
from prism.reasoner._recollection import Recollection, things_in_history
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

_REPLY = 'Respond with JSON only:\n{"next_state": "<state_value>"}\n'
_REPLY_WITH_REASON = (
    "Respond with JSON only, the reason in one sentence:\n"
    '{"next_state": "<state_value>", "reason": "<why>"}\n'
)
_TASK = "Below you are told who you are and what has happened. Choose one of these:"


_DECIMALS = 2
"""Decimals of a number in a prompt."""


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """The contents of prompts besides the question.

    Args:
        descriptions: Meaning of each state.
        prompts: The user's own prompts.
        attributes: Names of the agents' attributes to include.
        memory: The agents' memory.
        asks_reason: Whether to ask for a reason besides the choice.
    """

    descriptions: Mapping[Any, str] = field(default_factory=lambda: STATE_DESCRIPTIONS)
    prompts: OwnPrompts | None = None
    attributes: Sequence[str] = ()
    memory: Recollection | None = None
    asks_reason: bool = False


DEFAULT_SETTINGS = PromptSettings()


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


def chat_prompt(question: Question, settings: PromptSettings = DEFAULT_SETTINGS) -> str:
    """Build the prompt for a question, from its agent's description of itself.

    Raises:
        ReasonerError: If the user's own prompt does not fit the question.
    """
    own = None if settings.prompts is None else settings.prompts.of(question)
    if own is not None:
        return _filled_prompt(own, question, settings)
    if not is_of_the_feed(question):
        return _default_prompt(question, settings)

    agent = question.agent
    personality = personality_of(agent)
    if settings.attributes:
        lines = attribute_lines(agent, settings.attributes)
        personality = "\n".join((personality, *lines))

    context = context_of(question) if question.details else question.context
    if settings.memory is not None and (memory := memory_of(question, settings)):
        context = f"{format_context(context)}\n\n{memory}"

    text = build_reasoner_prompt(
        agent_name=name_of(agent),
        agent_interests=interests_of(agent),
        agent_personality=personality,
        current_state=question.state,
        trigger=question.trigger,
        options=list(question.options),
        context=context,
        descriptions=_descriptions_for(question, settings.descriptions),
    )

    return text.removesuffix(_REPLY) + _REPLY_WITH_REASON if settings.asks_reason else text


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

Respond with JSON only:
{{"next_state": "<state_value>"}}
"""


def format_context(context: Any) -> str:
    """Describe a context: a post by author, text and topics, anything else by its fields.

    A mapping with other keys than those of a post is no post.
    """
    if context is None:
        return "There are no further details."
    if isinstance(context, str):
        return context

    texts = _texts_of_post(context)
    if not texts:
        return "\n".join(f"{key}: {value}" for key, value in (identify(context) or {}).items())

    return _post(context, next((str(text) for text in texts if text != ""), "(no text)"))


def _texts_of_post(context: Any) -> list[Any]:
    """Return what a context has as a post's text; nothing if it is no post."""
    if isinstance(context, Mapping) and context.keys() - _OF_POSTS:
        return []
    return [text for name in ("text", "content") if (text := _field(context, name)) is not None]


_OF_POSTS = {"text", "content", "author_id", "author", "topics", "post_id", "id"}


def _post(context: Any, text: str) -> str:
    author = _field(context, "author_id") or _field(context, "author")
    topics = _field(context, "topics")
    lines = [f"Post by {author}:" if author else "Post:", text]
    if topics:
        lines.append(f"Topics: {', '.join(_listed(topics))}")

    return "\n".join(lines)


def context_of(question: Question) -> str:
    """Describe the context of a question, with its details."""
    lines = [format_context(question.context)]
    for name, value in question.details.items():
        shown = round(value, _DECIMALS) if isinstance(value, float) else value
        lines.append(f"{name.replace('_', ' ').capitalize()}: {shown}")

    return "\n".join(lines)


def _default_prompt(question: Question, settings: PromptSettings) -> str:
    """Put the part for all agents first, and the agent's own part last."""
    parts = (
        description_of(question),
        f"{_TASK}\n{_options(question, settings)}",
        _reply(settings).rstrip(),
        persona_of(question.agent, settings.attributes),
        memory_of(question, settings),
        situation_of(question),
    )

    return "\n\n".join(part for part in parts if part) + "\n"


def _filled_prompt(own: OwnPrompt, question: Question, settings: PromptSettings) -> str:
    """Append the parts that the user's own prompt does not name."""
    text, named = fill(own, question, settings, reply=_reply(settings).rstrip())
    parts = {
        "memory": memory_of(question, settings),
        "options": f"Choose one of these:\n{_options(question, settings)}",
        "reply": _reply(settings).rstrip(),
    }
    further = [part for name, part in parts.items() if part and name not in named]

    return "\n\n".join((text.rstrip(), *further)) + "\n"


def fill(
    own: OwnPrompt, question: Question, settings: PromptSettings, *, reply: str
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
    makers: Mapping[str, Callable[[], str]] = {
        "name": lambda: name_of(question.agent),
        "persona": lambda: persona_of(question.agent, settings.attributes),
        "state": lambda: state_text(question.state),
        "trigger": lambda: question.trigger,
        "options": lambda: _options(question, settings),
        "chart": lambda: "" if chart is None else str(chart.name),
        "description": lambda: description_of(question),
        "situation": lambda: situation_of(question),
        "context": lambda: context_of(question),
        "memory": lambda: memory_of(question, settings),
        "reply": lambda: reply,
    }
    known = {name: value_of(name, question, makers) for name in own.names}

    return own.fill(known)[0], own.names


def named_in(question: Question, settings: PromptSettings) -> Sequence[str]:
    """Return the fields that the prompt for a question names."""
    own = None if settings.prompts is None else settings.prompts.of(question)
    return own.names if isinstance(own, Template) else ()


def is_of_the_feed(question: Question) -> bool:
    """Return whether the specification's prompt fits: a question of the social chart's states."""
    return (
        question.prompt is None
        and _has_states_of_the_feed(question.state.__class__)
        and _told_by(question.agent, "persona") is None
    )


@lru_cache(maxsize=256)
def _has_states_of_the_feed(kind: type) -> bool:
    # a chart that extends the social one has an enum with these states and others
    return kind is AgentState or (
        issubclass(kind, Enum) and {*map(state_text, AgentState)} <= {*map(state_text, kind)}
    )


def _options(question: Question, settings: PromptSettings) -> str:
    told = (
        (state_text(option), meaning_of(question, option, settings.descriptions))
        for option in question.options
    )
    # a state whose meaning is its name is listed without it
    return "\n".join(f"- {text}" if text == means else f"- {text}: {means}" for text, means in told)


def _descriptions_for(question: Question, descriptions: Mapping[Any, str]) -> Mapping[Any, str]:
    """Return the meanings of options: the user's, or else the question's."""
    here = question.meanings or {}
    return {
        **descriptions,
        **{
            option: meaning
            for option, meaning in here.items()
            if descriptions.get(option) == STATE_DESCRIPTIONS.get(option)
        },
    }


def meaning_of(question: Question, option: Any, descriptions: Mapping[Any, str]) -> str:
    if question.meanings and option in question.meanings:
        return _descriptions_for(question, descriptions)[option]

    # not the feed's, since a state of another enum may have the same text
    if descriptions is STATE_DESCRIPTIONS and not _has_states_of_the_feed(option.__class__):
        descriptions = {}

    if isinstance(option, Configuration):
        means = [meaning_of(question, leaf, descriptions) for leaf in option.leaves]
        return descriptions.get(option) or _meaning_together(option, means)

    own = getattr(question.agent, "meanings", None)
    meaning = own.get(option) if isinstance(own, Mapping) else None
    return meaning or _description(option, descriptions)


def _meaning_together(option: Configuration, means: Sequence[str]) -> str:
    """Return the meaning of states that are active together, from what each of them means."""
    return "; ".join(means) if means != [*map(state_text, option.leaves)] else state_text(option)


def situation_of(question: Question) -> str:
    """Return the situation: the question's prompt, or else state, event and context."""
    return question.prompt or (
        f'You are in the "{state_text(question.state)}" state, and the event '
        f'"{question.trigger}" has occurred.\n\n{context_of(question)}'
    )


def description_of(question: Question) -> str:
    return "" if question.chart is None else question.chart.description.strip()


def _reply(settings: PromptSettings) -> str:
    return _REPLY_WITH_REASON if settings.asks_reason else _REPLY


def memory_of(question: Question, settings: PromptSettings) -> str:
    memory = settings.memory
    if memory is None:
        return ""

    # one more than is shown reveals that there are more
    recall = question.recall
    things = (
        things_in_history(question.agent, memory.last + 1)
        if recall is None
        else recall(memory.last + 1)
    )

    return memory.tell(things)


def name_of(agent: Any) -> str:
    """Return the name of an agent."""
    return str(getattr(agent, "name", None) or agent_name(agent))


def interests_of(agent: Any) -> list[str]:
    """Return the topics that interest an agent, if it has any."""
    return _listed(getattr(agent, "interests", None) or ())


def personality_of(agent: Any) -> str:
    """Return the personality of an agent, if it has one."""
    return str(getattr(agent, "personality", None) or "")


def persona_of(agent: Any, attributes: Sequence[str]) -> str:
    """Describe an agent: its own description, and the chosen attributes.

    Raises:
        ReasonerError: If the agent has no such attribute.
    """
    told = _told_by(agent, "persona") or _told_by(agent, "describe") or _profile(agent)
    return "\n".join((told, *attribute_lines(agent, attributes)))


def _told_by(agent: Any, method: str) -> str | None:
    """Return the text that a method of an agent returns; None without such a method or text.

    Anything but a text is ignored, since a `unittest.mock.MagicMock` has every method.
    """
    says = getattr(agent, method, None)
    told = says() if callable(says) else None
    return told if isinstance(told, str) else None


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
    return [str(item) for item in items] if several else [str(items)]


def _description(option: Any, descriptions: Mapping[Any, str]) -> str:
    return descriptions.get(option) or state_text(option).replace("_", " ")


def _field(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)


def decision_question(
    question: Question, settings: PromptSettings = DEFAULT_SETTINGS
) -> dict[str, Any]:
    """Build one choice question for a decision model; its criteria are the options' meanings.

    Raises:
        ReasonerError: If the user's own prompt does not fit the question.
    """
    own = None if settings.prompts is None else settings.prompts.of(question)
    if own is not None:
        instructions, _ = fill(own, question, settings, reply="")
    elif is_of_the_feed(question):
        instructions = (
            f'The user is in the "{state_text(question.state)}" state and received the '
            f'"{question.trigger}" event.\n\n'
            f"{context_of(question)}\n\n"
            "Choose the user's next state."
        )
    else:
        parts = (description_of(question), situation_of(question), "Choose what you do next.")
        instructions = "\n\n".join(part for part in parts if part)

    meanings = {
        state_text(option): meaning_of(question, option, settings.descriptions)
        for option in question.options
    }

    return {"type": "choice", "instructions": instructions, "criteria": meanings}


def decision_state(question: Question, settings: PromptSettings = DEFAULT_SETTINGS) -> str:
    """Describe an agent to a decision model."""
    agent = question.agent
    if is_of_the_feed(question):
        about = (
            f"{name_of(agent)} is a social media user.\n"
            f"Interests: {', '.join(interests_of(agent))}\n"
            f"Personality: {personality_of(agent)}"
        )
        about = "\n".join((about, *attribute_lines(agent, settings.attributes)))
    else:
        about = persona_of(agent, settings.attributes)

    if settings.memory is None or "memory" in named_in(question, settings):
        return about

    memory = memory_of(question, settings)
    return f"{about}\n\n{memory}" if memory else about


def prompt_hash(question: Question, settings: PromptSettings) -> str | None:
    """Return the hash of a question's prompt; None if it has none.

    The hash is of the prompt by name with the options in the chart's order, however the model is
    asked, so it does not depend on what a server supports.
    """
    try:
        return hash_of(chat_prompt(question, settings))
    except Exception:  # of the user's agent or post; asking reports it
        return None
