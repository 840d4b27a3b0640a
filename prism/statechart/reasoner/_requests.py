"""What goes to the model together: one question in chat, those of one agent in decision mode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from prism.statechart.reasoner._prompts import chat_prompt, decision_question, decision_state
from prism.statechart.reasoner._questions import Question
from prism.statechart.states import state_text

Kind = Literal["decision", "chat"]

MOST_DECISION_BYTES = 60_000
"""How large a decision request may grow; servers refuse one beyond 64 KiB."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model.

    Args:
        kind: Whether it is a chat or asks for decisions.
        questions: What it asks.
        places: Where its questions stand among all that were asked with them.
        text: The prompt of a chat, or what decisions are about.
        choices: The questions by name, in the wire format of ``/v1/systemone``; empty in chat.
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
        """Name what is asked; two requests with one identity have the same answer."""
        options = [
            [state_text(option) for option in question.options] for question in self.questions
        ]
        return json.dumps([self.kind, self.text, options, self.choices])


@dataclass(frozen=True, slots=True)
class _Choice:
    """A decision question in the wire format, and its size in bytes."""

    place: int
    question: Question
    wire: Mapping[str, Any]
    size: int


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
    """Put the questions of each agent into as few requests as their size allows; they share its description."""
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
    """Return the size of a part of a request: never below what is sent, whether or not that escapes non-ASCII."""
    return len(json.dumps(part)) + len('"q1000": , ')


def _portions(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Cut a sequence into runs whose sizes stay below a limit; one that is too large stands alone."""
    start, total = 0, 0
    for number, size in enumerate(sizes):
        if number > start and total + size > most:
            yield start, number
            start, total = number, 0

        total += size

    yield start, len(sizes)
