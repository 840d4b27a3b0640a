"""Questions for decision models: those of one agent in as few requests as their size allows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prism.errors import ReasonerError
from prism.statechart.reasoner._attributes import attribute_lines
from prism.statechart.reasoner._prompts import (
    DEFAULT_SETTINGS,
    MOST_DECISION_BYTES,
    PromptSettings,
    Request,
    context_of,
    description_of,
    fill,
    interests_of,
    is_of_the_feed,
    meaning_of,
    memory_of,
    name_of,
    named_in,
    persona_of,
    personality_of,
    situation_of,
)
from prism.statechart.reasoner._questions import Question
from prism.statechart.states import state_text


@dataclass(frozen=True, slots=True)
class _Choice:
    """A decision question in the wire format, and its size in bytes."""

    place: int
    question: Question
    wire: Mapping[str, Any]
    size: int


def decision_requests(questions: Sequence[Question], settings: PromptSettings) -> Iterator[Request]:
    """Put the questions of each agent into as few requests as their size allows."""
    by_agent: dict[int, dict[int, Question]] = {}
    for place, question in enumerate(questions):
        by_agent.setdefault(id(question.agent), {})[place] = question

    for asked in by_agent.values():
        choices = []
        for place, question in asked.items():
            try:
                wire = decision_question(question, settings)
                choices.append(_Choice(place, question, wire, _bytes_of(wire)))
            except ReasonerError:
                raise
            except Exception as error:
                yield Request("decision", [question], [place], "", fault=error)

        yield from _together(choices, settings)


def decision_state(question: Question, settings: PromptSettings = DEFAULT_SETTINGS) -> str:
    """Describe an agent to a decision model, once for all its questions of a request."""
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


def decision_question(
    question: Question, settings: PromptSettings = DEFAULT_SETTINGS
) -> dict[str, Any]:
    """Build one choice question for a decision model; its criteria are the options' meanings.

    Raises:
        ReasonerError: If a prompt of the user's own does not fit the question.
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


def _together(choices: Sequence[_Choice], settings: PromptSettings) -> Iterator[Request]:
    """Put one agent's questions into requests of the size that servers take."""
    if not choices:
        return

    asked, places = [choice.question for choice in choices], [choice.place for choice in choices]
    try:
        state = decision_state(asked[0], settings)
        about = _bytes_of(state)
    except ReasonerError:
        raise
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
