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

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any, Literal

from prism._faults import place_of
from prism.errors import LLMError, ReasonerError, UselessReplyError
from prism.randomness import RandomStream
from prism.reasoner._model_client import ChoiceReply, Reply
from prism.reasoner._own_prompts import (
    OwnPrompt,
    OwnPrompts,
    Template,
    attribute_lines,
    value_of,
)
from prism.reasoner._questions import Question, hash_of
from prism.reasoner._recollection import Recollection, things_in_history
from prism.reasoner._replies._reading import parse_reasoner_response, read_probabilities
from prism.reasoner._spending import Cost
from prism.statechart._identity import agent_name, identify
from prism.statechart._nesting import Configuration
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


# Questions as requests

Kind = Literal["decision", "chat"]

Mode = Literal["auto", "decision", "chat"]
"""The kind of requests, or ``auto`` for decisions if server and model support them."""

Pick = Literal["draw", "argmax"]
"""Whether an option is drawn from the probabilities, or the most likely one is taken."""

OptionOrder = Literal["chart", "shuffled"]
"""The order of options: that of the chart, or one of a few rotations, drawn by agent and
question."""

MOST_DECISION_BYTES = 60_000
"""Maximum size of a decision request; servers refuse more than 64 KiB."""

MOST_ROTATIONS = 4
"""Most orders of one list of options, few enough for servers to cache the prompts."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question to a model.

    Args:
        kind: Whether it is a chat or asks for a decision.
        question: What it asks.
        place: Index of the question among all that were asked with it.
        text: The prompt of a chat, or the subject of the decision.
        choice: The question in the wire format of decision models; None in chat.
        fault: Why it cannot be asked, such as a post that cannot be read.
        asks_reason: Whether a chat asks for a reason beside the choice.
        rotation: Number of options moved from the beginning of the list to its end in the prompt;
            None for the chart's order.
        hash: The hash of the question's chat prompt with the options in the chart's order; None if
            it cannot be asked.
        before: The cost of an earlier request for the same question in another way, if any.
        variation: A number added to the seed of the model's sampling.
        is_apart: Whether it is asked only for its agent, with the agent's own seed.
    """

    kind: Kind
    question: Question
    place: int
    text: str
    choice: Mapping[str, Any] | None = None
    fault: Exception | None = None
    asks_reason: bool = False
    rotation: int | None = None
    hash: str | None = None
    before: Cost | None = None
    variation: int = 0
    is_apart: bool = False

    def identity(self) -> str:
        """Return the question as text; requests with the same identity have the same answer."""
        options = [state_text(option) for option in self.question.options]
        own = [self.variation] if self.is_apart else []
        return json.dumps([self.kind, self.text, options, self.choice, *own])

    def apart(self) -> Request:
        """Return the same request only for its agent."""
        return replace(self, is_apart=True)

    def offered(self) -> tuple[Any, ...]:
        """Return the options in the order of the prompt."""
        options, rotation = self.question.options, self.rotation or 0
        return (*options[rotation:], *options[:rotation])

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of a chat's reply."""
        return answer_schema(self.offered(), asks_reason=self.asks_reason)

    def shuffled(self, settings: PromptSettings, seed: int) -> Request:
        """Return the request with the options of its question in another order.

        Its question, and therefore its identity and the reading of its reply, do not change.
        Requests that share an answer have the same order: it is drawn by the prompt, and also by
        the agent and its question if the request is only for that agent.

        Args:
            settings: The contents of prompts besides the question.
            seed: Seed of the order.
        """
        count = len(self.question.options)
        rotations = min(count, MOST_ROTATIONS)
        own = [self.variation] if self.is_apart else []
        drawn = RandomStream(seed, "order", self.hash or "", *own).index(rotations)
        told = replace(self, rotation=drawn * count // rotations)
        if not told.rotation:
            return told

        turned = replace(self.question, options=told.offered())
        text, choice = _as_asked(self.kind, turned, settings)
        return replace(told, text=text, choice=choice)

    def reworded(self, problem: Exception) -> Request:
        """Return a request that says why its last reply was useless, and how to answer.

        It is a single message, since not every client accepts a conversation. It gives a model that
        repeats itself at temperature 0 something new to read.
        """
        how = "Respond with JSON only, with the letter of one option."
        if self.kind == "chat":
            listed = ", ".join(map(state_text, self.offered()))
            reply = '{"next_state": "<state_value>"}'
            how = f"Choose one of {listed}. Respond with JSON only:\n{reply}"

        return replace(self, text=again(self.text, str(problem), how))

    def answer_in(self, reply: Reply) -> tuple[Any, Mapping[str, float] | None]:
        """Return the option that a reply chooses, or else its probabilities.

        Raises:
            ReasonerError: If it is not valid.
        """
        options = self.question.options
        if self.kind == "decision":
            chosen = reply.choice if reply.is_bare_choice else None
            bare = next((option for option in options if state_text(option) == chosen), None)
            chances = None if bare is not None else read_probabilities(reply.chances, list(options))
            return bare, chances

        for option in options:
            # the exact reply of servers that follow the schema needs no careful reader
            if reply.text == f'{{"next_state": "{state_text(option)}"}}':
                return option, None

        return parse_reasoner_response(reply.text, list(options)), None

    def problem_in(self, reply: Reply) -> ReasonerError | None:
        """Return why a reply cannot be used; None if it can."""
        try:
            self.answer_in(reply)
        except ReasonerError as error:
            return error

        return None

    def lacks(self, reply: Reply) -> int:
        """Return 0 for a reply that can be used, else 1."""
        return int(self.problem_in(reply) is not None)


def requests_for(
    kind: Kind, questions: Iterable[Question], settings: PromptSettings
) -> Iterator[Request]:
    """Make a separate request for every question.

    Raises:
        ReasonerError: If a prompt of the user's own does not fit a question.
    """
    for place, question in enumerate(questions):
        try:
            yield _request(kind, question, place, settings)
        except ReasonerError:
            raise
        except Exception as error:
            # an exception of the user's agent or post must not affect the other questions
            yield Request(kind, question, place, "", fault=error)


def _request(kind: Kind, question: Question, place: int, settings: PromptSettings) -> Request:
    text, choice = _as_asked(kind, question, settings)
    if choice is None:
        asks = settings.asks_reason
        return Request(kind, question, place, text, asks_reason=asks, hash=hash_of(text))

    # json.dumps escapes non-ASCII text, which takes more bytes than UTF-8
    size, most, fault = len(json.dumps([text, choice])), MOST_DECISION_BYTES, None
    if size > most:
        fault = ReasonerError(
            f"not asked: the request would have {size} bytes, and {most} is the limit"
        )

    same = prompt_hash(question, settings)
    return Request(kind, question, place, text, choice, fault, hash=same)


def _as_asked(
    kind: Kind, question: Question, settings: PromptSettings
) -> tuple[str, dict[str, Any] | None]:
    """Return the text and the choice of a question's request; a chat has no choice."""
    if kind == "chat":
        return chat_prompt(question, settings), None

    choice = decision_question(question, settings)
    return decision_state(question, settings), choice


def prompt_hash(question: Question, settings: PromptSettings) -> str | None:
    """Return the hash of a question's prompt; None if it has none.

    The hash is of the chat prompt, even if a model is asked for probabilities, so it does not
    depend on what a server supports.
    """
    try:
        return hash_of(chat_prompt(question, settings))
    except Exception:  # of the user's agent or post; asking reports it
        return None


# Reading replies

QUESTION = "q0"
"""The name of the one question in a request to a decision model."""


async def answered(
    request: Request,
    ask: Callable[[Request], Awaitable[Reply]],
    may_repeat: Callable[[], bool] = lambda: True,
) -> Reply:
    """Ask, and once more in other words if the model's reply is useless; return a reply.

    If the second request fails, the first reply, or its problem, is more informative.

    Args:
        request: The question.
        ask: Sends a request.
        may_repeat: Returns whether another request may be sent.

    Raises:
        LLMError: If there is no reply.
    """
    reply: Reply | None = None
    try:
        reply = await ask(request)
        # a decision model would repeat its mistake
        problem: Exception | None = request.problem_in(reply) if request.kind == "chat" else None
    except UselessReplyError as error:
        problem = error

    if problem is not None and may_repeat():
        with suppress(LLMError):
            return await ask(request.reworded(problem))
    if reply is None:
        assert problem is not None
        raise problem

    return reply


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A prompt whose answer is a text.

    Args:
        text: The prompt.
        schema: JSON Schema of the answer, if it must be JSON.
        lacks: Returns 0 for a reply that can be used, else 1.
        variation: A number added to the seed of the sampling.
        choice: None, since it asks no choice question; see `Request`.
    """

    text: str
    schema: dict[str, Any] | None
    lacks: Callable[[Reply], int]
    variation: int = 0
    choice: None = None

    def reworded(self, problem: str) -> TextRequest:
        """Return the request with the problem of its last reply, as `Request.reworded` does."""
        how = "Answer again, in another way."
        if self.schema is not None:
            how = f"Respond with JSON only, of this schema:\n{json.dumps(self.schema)}"
        return replace(self, text=again(self.text, problem, how))


def again(prompt: str, problem: str, how: str) -> str:
    """Return a repeated prompt with the problem of the last reply."""
    return f"{prompt.rstrip()}\n\nYour last reply could not be used: {problem}\n{how}\n"


def chances_of(decided: ChoiceReply) -> Reply:
    """Keep the parts of a decision's reply from which an answer is read."""
    answer = decided.answers.get(QUESTION) or {}
    chances = answer.get("probabilities")
    if "option_mass" not in answer:
        return Reply(chances=chances)

    return Reply("", chances, answer.get("choice"), answer["option_mass"])
