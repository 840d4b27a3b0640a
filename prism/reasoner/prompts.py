"""What a model reads: an agent in words, how to respond, and the request made of both.

A model whose server gives log-probabilities is asked for a letter, any other for the name of an
option. A prompt begins with the part that all agents share (the chart's description and the
options), so that servers can reuse what they have read, and ends with how to respond. Only a
question of the social feed that is put to a `Reasoner` outside of a run has the prompt of the
specification.

The options may be listed in another order, since language models prefer options by letter and
position (Zheng, Zhou, Meng, Zhou and Huang 2024, "Large Language Models Are Not Robust Multiple
Choice Selectors", ICLR). With rotations drawn for each question, no option comes first more often
than another.

A text that the chart's author did not write, such as a post or a personality, never has a line at
the left margin of a prompt, so that it cannot pose as a part of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from math import isfinite
from string import ascii_uppercase
from typing import Any

from prism.errors import NoProbabilitiesError, ReasonerError, UselessReplyError
from prism.reasoner.questions import Kind, Question, hash_of
from prism.reasoner.replies import LETTER, Reply, parse_reasoner_response, read_letter
from prism.reasoner.requests import ChatReply, Request, first, prompted
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


_IN_WORDS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (Enum, lambda each: state_text(each) if isinstance(each, str) else in_words(each.value)),
    (bool, lambda value: "yes" if value else "no"),
    (float, number_in_words),
    (Mapping, lambda data: ", ".join(f"{in_words(k)}: {in_words(v)}" for k, v in data.items())),
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

    The text of a post is quoted. What has neither an author nor a ``post_id`` is no post, and
    neither is a mapping with keys that posts do not have.
    """
    if context is None:
        return "There are no further details."
    if isinstance(context, str):
        return context

    is_post = first(context, "author_id", "author", "post_id") is not None
    is_other = isinstance(context, Mapping) and (not is_post or context.keys() - _OF_POSTS)
    text = None if is_other else first(context, "text", "content")
    if text is None:
        return "\n".join(lines_of(identify(context) or {}))

    author = first(context, "author_id") or first(context, "author")
    heading = "Post:" if is_post else "Text:"
    quoted = quotation(str(text) or str(first(context, "content") or "(no text)"))
    lines = [f"Post by {one_line(author)}:" if author else heading, quoted]
    if topics := first(context, "topics"):
        lines.append(f"Topics: {', '.join(_texts_in(topics))}")

    return "\n".join(lines)


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
    feed = {*map(state_text, AgentState)}
    return kind is AgentState or (issubclass(kind, Enum) and feed <= {*map(state_text, kind)})


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


MOST_LETTERS = 20
"""Most options that are asked by letter: servers list so many alternatives for a token."""


def may_have_letters(options: Sequence[Any]) -> bool:
    """Return whether options can be asked by letter: there are few, and none is called by one."""
    names = {state_text(option).upper() for option in options}
    return len(options) <= MOST_LETTERS and names.isdisjoint(ascii_uppercase[: len(options)])


DECISION_TOKENS = 1024
"""Tokens that the reply to a question may have, thoughts included, unless the user sets others."""

_REPLY = 'Respond with JSON only:\n{"next_state": "<state_value>"}'

_TASK = "Below you read who you are and what happens. Choose what you do next:"

_DEFAULT_SETTINGS = PromptSettings()


# How to respond


def answer_schema(options: Sequence[Any], *, key: str = "next_state") -> dict[str, Any]:
    """Return the JSON schema of a reply: one of the options under a key."""
    states = {"type": "string", "enum": [state_text(option) for option in options]}
    return {"type": "object", "properties": {key: states}, "required": [key]}


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


def chat_prompt(question: Question, settings: PromptSettings = _DEFAULT_SETTINGS) -> str:
    """Build the prompt of a question that is answered by the name of an option.

    Raises:
        ReasonerError: If the user's own prompt does not fit the question.
    """
    briefing = Briefing(question, settings)
    if settings.prompt is None and _has_specified_prompt(briefing):
        return _specified_prompt(briefing)

    listed = []
    for option in question.options:
        text, meaning = state_text(option), briefing.meaning(option)
        # a state whose meaning is its name is listed without it
        listed.append(f"- {text}" if text == meaning else f"- {text}: {meaning}")
    return _prompt(briefing, "\n".join(listed), _REPLY)


def letter_prompt(question: Question, settings: PromptSettings, letters: Sequence[str]) -> str:
    """Build the prompt of a question that is answered by a letter.

    The wording was measured on small models (``python -m tests.benchmarks --only wordings``). With
    ``"<letter>"`` in the last line, or name and meaning of an option, they would rather write the
    option's name, and its letter has little probability.

    Raises:
        ReasonerError: If the user's own prompt does not fit the question.
    """
    briefing = Briefing(question, settings)
    meanings = map(briefing.meaning, question.options)
    listed = "\n".join(f"{letter}: {each}" for letter, each in zip(letters, meanings, strict=True))
    how = f"Respond with JSON only, with the letter of one option:\n{letter_form(letters)}"
    return _prompt(briefing, listed, how)


def _prompt(briefing: Briefing, options: str, reply: str) -> str:
    """Put the part for all agents first, then the agent's own, and how to respond last."""
    if briefing.settings.prompt is not None:
        return briefing.settings.prompt(briefing, options, reply)

    return joined(
        briefing.description,
        f"{_TASK}\n{options}",
        briefing.persona,
        briefing.memory,
        briefing.situation,
        reply,
    )


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
        f"- {state_text(option)}: {description_in(option, descriptions)}" for option in options
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


def _has_specified_prompt(briefing: Briefing) -> bool:
    """Return whether a question is one of the social chart's states, asked outside of a run."""
    question = briefing.question
    is_of_the_feed = has_states_of_the_feed(question.state.__class__)
    return question.prompt is None and is_of_the_feed and briefing.text_by("persona") is None


def _specified_prompt(briefing: Briefing) -> str:
    question, memory = briefing.question, briefing.memory
    context = f"{briefing.context}\n\n{memory}" if memory else briefing.context
    return build_reasoner_prompt(
        agent_name=briefing.name,
        agent_interests=briefing.interests,
        agent_personality="\n".join((briefing.personality, *briefing.attributes)),
        current_state=question.state,
        trigger=question.trigger,
        options=list(question.options),
        context=context,
        descriptions=briefing.settings.descriptions,
    )


# Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRequest(Request[Reply]):
    """The request that puts a question to a model.

    Args:
        question: The question, with the options in the chart's order.
        kind: How the model is asked.
        rotation: Number of options moved from the beginning of the list to its end in the prompt;
            None for the chart's order.
        hash: The hash of the question's prompt with the options in the chart's order.
        identity: A hash of all that decides the answer. A request for probabilities is shared by
            all agents, since these draw from them.
    """

    question: Question
    kind: Kind
    rotation: int | None = None
    hash: str | None = None
    identity: str = ""


def request_for(
    kind: Kind,
    question: Question,
    settings: PromptSettings,
    rotation: int | None = None,
    variation: int = 0,
) -> QuestionRequest:
    """Make the request for a question.

    Args:
        kind: How the model is asked.
        question: The question.
        settings: The contents of prompts besides the question.
        rotation: The rotation of its options; None for the chart's order.
        variation: A number added to the seed of the model's sampling.

    Raises:
        ReasonerError: If a prompt of the user's own does not fit the question.
        Exception: Any that the user's agent or context raises.
    """
    options = question.options
    turned = (*options[rotation:], *options[:rotation]) if rotation else options
    rotated = replace(question, options=turned) if rotation else question
    offered = [state_text(option) for option in turned]
    letters = dict(zip(ascii_uppercase, offered, strict=False))
    by_letter = kind == "letter" and may_have_letters(options)
    if by_letter:
        text = letter_prompt(rotated, settings, list(letters))
        how = f"Respond with JSON only:\n{letter_form(list(letters))}"
    else:
        text = chat_prompt(rotated, settings)
        how = f"Choose one of {', '.join(offered)}. {_REPLY.replace('<state_value>', '...')}"

    def read(reply: ChatReply) -> Reply:
        # a client of the user's own may know of none
        if by_letter and not reply.tokens:
            problem = f"{reply.model or 'the model'} gives no log-probabilities"
            raise NoProbabilitiesError(problem, host=reply.host)
        try:
            if by_letter:
                return read_letter(reply.text, reply.tokens, letters)
            return Reply(reply.text, state_text(parse_reasoner_response(reply.text, [*options])))
        except ReasonerError as error:
            raise UselessReplyError(str(error), host=reply.host) from error

    return QuestionRequest(
        prompted(text),
        letter_schema(letters) if by_letter else answer_schema(offered),
        read,
        how,
        variation,
        DECISION_TOKENS,
        by_letter,
        question=question,
        kind="letter" if by_letter else "name",
        rotation=rotation,
        hash=hash_of(chat_prompt(question, settings) if by_letter or rotation else text),
        identity=hash_of(json.dumps([by_letter, text, offered, not by_letter and variation])),
    )
