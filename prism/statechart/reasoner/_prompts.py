"""What a model is asked: prompts, and the requests that carry them.

The prompt of a chat is the specification's; a decision model gets the same facts
as choice questions. A chat request holds one question, a decision request those of one agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from prism.statechart._identity import agent_name, identify
from prism.statechart.reasoner._questions import Question
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
"""What each state means, for the prompt."""

Kind = Literal["decision", "chat"]

MOST_DECISION_BYTES = 60_000
"""How large a decision request may grow; servers refuse one beyond 64 KiB."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model.

    Args:
        kind: Whether it is a chat or asks for decisions.
        questions: What it asks.
        places: Positions of its questions among all that were asked with them.
        text: The prompt of a chat, or what decisions are about.
        choices: The questions by name, in the wire format of decision models; empty in chat.
        size: Bytes that a decision request takes.
        fault: What keeps it from being asked, such as a post that cannot be read.
    """

    kind: Kind
    questions: Sequence[Question]
    places: Sequence[int]
    text: str
    choices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    size: int = 0
    fault: Exception | None = None

    def identity(self) -> str:
        """Return what is asked as text; two requests with one identity have the same answer."""
        options = [
            [state_text(option) for option in question.options] for question in self.questions
        ]
        return json.dumps([self.kind, self.text, options, self.choices])

    def one_by_one(self) -> Iterator[Request]:
        """Yield a request for each question, for a server that takes one question at a time."""
        if len(self.choices) < 2:
            yield self
            return

        for place, question, choice in zip(
            self.places, self.questions, self.choices.values(), strict=True
        ):
            yield replace(self, questions=[question], places=[place], choices={"q0": choice})


@dataclass(frozen=True, slots=True)
class _Choice:
    """A decision question in the wire format, and its size in bytes."""

    place: int
    question: Question
    wire: Mapping[str, Any]
    size: int


def requests_for(
    kind: Kind, questions: Sequence[Question], descriptions: Mapping[Any, str]
) -> Iterator[Request]:
    """Return the requests for some questions, each made when it is needed."""
    make = chat_requests if kind == "chat" else decision_requests
    return make(questions, descriptions)


def chat_requests(
    questions: Sequence[Question], descriptions: Mapping[Any, str]
) -> Iterator[Request]:
    """Put every question into a prompt of its own."""
    for place, question in enumerate(questions):
        try:
            text = chat_prompt(question, descriptions)
        except Exception as error:
            # of the user's agent or post; the other questions must not suffer
            yield Request("chat", [question], [place], "", fault=error)
        else:
            yield Request("chat", [question], [place], text)


def decision_requests(
    questions: Sequence[Question], descriptions: Mapping[Any, str]
) -> Iterator[Request]:
    """Put the questions of each agent into as few requests as their size allows."""
    by_agent: dict[int, dict[int, Question]] = {}
    for place, question in enumerate(questions):
        by_agent.setdefault(id(question.agent), {})[place] = question

    for asked in by_agent.values():
        choices = []
        for place, question in asked.items():
            try:
                wire = decision_question(question, descriptions)
                choices.append(_Choice(place, question, wire, _bytes_of(wire)))
            except Exception as error:
                yield Request("decision", [question], [place], "", fault=error)

        yield from _together(choices)


def answer_schema(options: Sequence[Any]) -> dict[str, Any]:
    """Return the JSON schema of a chat reply: one ``next_state`` among the options."""
    return {
        "type": "object",
        "properties": {
            "next_state": {"type": "string", "enum": [state_text(option) for option in options]}
        },
        "required": ["next_state"],
    }


def chat_prompt(question: Question, descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS) -> str:
    """Build the prompt for a question, from what its agent says of itself."""
    agent = question.agent
    if _is_of_a_world(question):
        return _own_prompt(question, descriptions)

    return build_reasoner_prompt(
        agent_name=_name_of(agent),
        agent_interests=_interests_of(agent),
        agent_personality=_personality_of(agent),
        current_state=question.state,
        trigger=question.trigger,
        options=list(question.options),
        context=question.context,
        descriptions=descriptions,
    )


def decision_state(agent: Any) -> str:
    """Describe an agent to a decision model, once for all questions of a request."""
    persona = _persona_of(agent)
    if persona is not None:
        return persona

    return (
        f"{_name_of(agent)} is a social media user.\n"
        f"Interests: {', '.join(_interests_of(agent))}\n"
        f"Personality: {_personality_of(agent)}"
    )


def decision_question(
    question: Question, descriptions: Mapping[Any, str] = STATE_DESCRIPTIONS
) -> dict[str, Any]:
    """Build one choice question for a decision model; its criteria are the options' meanings."""
    situation = f'The user is in the "{state_text(question.state)}" state'
    whose = "the user's"
    if _is_of_a_world(question):
        situation, whose = f'You are in the "{state_text(question.state)}" state', "your"

    instructions = question.prompt or (
        f'{situation} and received the "{question.trigger}" event.\n\n'
        f"{format_context(question.context)}\n\n"
        f"Choose {whose} next state."
    )
    criteria = {
        state_text(option): (
            _description(option, descriptions)
            if not _is_of_a_world(question)
            else _meaning(question, option, descriptions)
        )
        for option in question.options
    }

    return {"type": "choice", "instructions": instructions, "criteria": criteria}


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
        agent_interests: Topics it cares about.
        agent_personality: What it is like, in words.
        current_state: Its state.
        trigger: The event that opened the question.
        options: The states to choose from.
        context: What the event is about; see `format_context`.
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
    """Describe an event's context: a post by author, text and topics, all else by its fields."""
    if context is None:
        return "There are no further details."
    if isinstance(context, str):
        return context

    texts = [text for name in ("text", "content") if (text := _field(context, name)) is not None]
    if not texts:
        return "\n".join(f"{key}: {value}" for key, value in (identify(context) or {}).items())

    author = _field(context, "author_id") or _field(context, "author")
    topics = _field(context, "topics")
    text = next((str(text) for text in texts if text != ""), "(no text)")
    lines = [f"Post by {author}:" if author else "Post:", text]
    if topics:
        lines.append(f"Topics: {', '.join(_listed(topics))}")

    return "\n".join(lines)


def _own_prompt(question: Question, descriptions: Mapping[Any, str]) -> str:
    """Put what the question itself says between who the agent is and what it can choose."""
    options = "\n".join(
        f"- {state_text(option)}: {_meaning(question, option, descriptions)}"
        for option in question.options
    )
    persona = _persona_of(question.agent) or f"You are {_name_of(question.agent)}."
    told = question.prompt or (
        f'You are in the "{state_text(question.state)}" state, and the event '
        f'"{question.trigger}" has occurred.\n\n{format_context(question.context)}'
    )
    reply = 'Respond with JSON only:\n{"next_state": "<state_value>"}'

    return f"{persona}\n\n{told}\n\nChoose one of these:\n{options}\n\n{reply}\n"


def _is_of_a_world(question: Question) -> bool:
    """Return whether a question speaks for itself, so that nothing is said of social media."""
    return question.prompt is not None or callable(getattr(question.agent, "persona", None))


def _meaning(question: Question, option: Any, descriptions: Mapping[Any, str]) -> str:
    # not those of a social feed: a state of another enum may have the text of one of its states
    own: Mapping[Any, str] = getattr(question.agent, "meanings", None) or {}
    return own.get(option) or (
        state_text(option).replace("_", " ")
        if descriptions is STATE_DESCRIPTIONS
        else _description(option, descriptions)
    )


def _persona_of(agent: Any) -> str | None:
    """Return what an agent of a world says of itself; None for any other agent."""
    persona = getattr(agent, "persona", None)
    return str(persona()) if callable(persona) else None


def _together(choices: Sequence[_Choice]) -> Iterator[Request]:
    """Put one agent's questions into requests of the size that servers take."""
    if not choices:
        return

    asked, places = [choice.question for choice in choices], [choice.place for choice in choices]
    try:
        state = decision_state(asked[0].agent)
        about = _bytes_of(state)
    except Exception as error:
        yield Request("decision", asked, places, "", fault=error)
        return

    sizes = [choice.size for choice in choices]
    for start, end in _portions(sizes, MOST_DECISION_BYTES - about):
        named = {f"q{number}": choice.wire for number, choice in enumerate(choices[start:end])}
        yield Request(
            "decision",
            asked[start:end],
            places[start:end],
            state,
            named,
            about + sum(sizes[start:end]),
        )


def _bytes_of(part: Any) -> int:
    """Return the size of a part of a request, at least as many bytes as are sent."""
    # json.dumps escapes non-ASCII text, which takes more bytes than UTF-8
    return len(json.dumps(part)) + len('"q1000": , ')


def _portions(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Cut a sequence into runs whose sizes stay below a limit; one that is too large is alone."""
    start, total = 0, 0
    for number, size in enumerate(sizes):
        if number > start and total + size > most:
            yield start, number
            start, total = number, 0

        total += size

    yield start, len(sizes)


def _name_of(agent: Any) -> str:
    return str(getattr(agent, "name", None) or agent_name(agent))


def _interests_of(agent: Any) -> list[str]:
    return _listed(getattr(agent, "interests", None) or ())


def _listed(items: Any) -> list[str]:
    """Return the texts of several things, or of a single one."""
    several = isinstance(items, Iterable) and not isinstance(items, str)
    return [str(item) for item in items] if several else [str(items)]


def _personality_of(agent: Any) -> str:
    return str(getattr(agent, "personality", None) or "")


def _description(option: Any, descriptions: Mapping[Any, str]) -> str:
    return descriptions.get(option) or state_text(option).replace("_", " ")


def _field(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
