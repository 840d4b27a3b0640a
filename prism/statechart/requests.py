"""What goes to the model together: one question in chat, those of one agent in decision mode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from prism.statechart.decisions import Question
from prism.statechart.prompts import chat_prompt, decision_question, decision_state
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
    """

    kind: Kind
    questions: Sequence[Question]
    places: Sequence[int]
    text: str
    choices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    size: int = 0

    def identity(self) -> str:
        """Name what is asked; two requests with one identity have the same answer."""
        options = [[state_text(option) for option in question.options] for question in self.questions]
        return json.dumps([self.kind, self.text, options, self.choices])


def chat_requests(questions: Sequence[Question], descriptions: Mapping[Any, str]) -> Iterator[Request]:
    """Put every question into a prompt of its own."""
    for place, question in enumerate(questions):
        yield Request("chat", [question], [place], chat_prompt(question, descriptions))


def decision_requests(questions: Sequence[Question], descriptions: Mapping[Any, str]) -> Iterator[Request]:
    """Put the questions of each agent into as few requests as their size allows; they share its description."""
    by_agent: dict[int, list[int]] = {}
    for place, question in enumerate(questions):
        by_agent.setdefault(id(question.agent), []).append(place)
    for places in by_agent.values():
        state = decision_state(questions[places[0]].agent)
        choices = [decision_question(questions[place], descriptions) for place in places]
        sizes = [_bytes_of(choice) for choice in choices]
        about = _bytes_of(state)
        for start, end in _portions(sizes, MOST_DECISION_BYTES - about):
            named = {f"q{number}": choice for number, choice in enumerate(choices[start:end])}
            asked = [questions[place] for place in places[start:end]]
            yield Request("decision", asked, places[start:end], state, named, about + sum(sizes[start:end]))


def _bytes_of(part: Any) -> int:
    """Give the size of a part of a request: never below what is sent, whether or not that escapes non-ASCII."""
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
