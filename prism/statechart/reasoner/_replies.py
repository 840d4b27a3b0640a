"""Reading a model's reply, and refusing what it must not say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from prism.errors import ReasonerError
from prism.statechart.states import state_text

MOST_REPLY_CHARACTERS = 10_000
"""How much of a reply is searched, from its end; nested braces take the square of it."""

_THINK = "<think>"
_TAG = re.compile("</?think>")

ROUNDING = 0.05
"""How far from one the sum of probabilities may be, as rounding makes it."""


def read_probabilities(given: Any, options: list[Any]) -> dict[str, float]:
    """Check a decision model's probabilities, and make them sum to one.

    Args:
        given: Probability of every option by its text; other entries are refused.
        options: The states to choose from.

    Returns:
        The probabilities, in the options' order.

    Raises:
        ReasonerError: (a ValueError) if one is missing, is not a number from 0 to 1 or belongs to
            no option, or if they do not sum to one.
    """
    texts = [state_text(option) for option in options]
    if not isinstance(given, Mapping):
        raise ReasonerError(f"the reply has no probabilities but {_excerpt(given)}")

    for text in texts:
        value = given.get(text)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ReasonerError(
                f"the reply gives {text!r} the probability {_excerpt(value)}, "
                "which is not a number from 0 to 1"
            )

    strangers = [text for text in given if text not in texts]
    if strangers:
        raise ReasonerError(
            f"the reply weighs {_excerpt(strangers[0])}, which is not one of {', '.join(texts)}"
        )

    total = sum(given[text] for text in texts)
    if abs(total - 1) > ROUNDING:
        raise ReasonerError(f"the reply's probabilities sum to {total:g} instead of 1")

    return {text: given[text] / total for text in texts}


def parse_reasoner_response(response_text: str, options: list[Any]) -> Any:
    """Read the chosen state from a model's reply.

    The reply may wrap its JSON in code fences, other text or a ``<think>`` block, and may write the
    state in any case; the last object with a ``next_state`` counts. A state outside the options is
    never accepted.

    Args:
        response_text: The raw reply.
        options: The states to choose from.

    Returns:
        One of the options.

    Raises:
        ReasonerError: (a ValueError) if the reply has no such object or names no option.
    """
    listing = ", ".join(map(state_text, options))
    answers = _answers_in(str(response_text))
    if not answers:
        raise ReasonerError(
            f"no JSON object with 'next_state' in the reply {_excerpt(response_text)}"
        )

    answer = answers[-1]
    if isinstance(answer, str):
        exact = [option for option in options if state_text(option) == answer.strip()]
        alike = [
            option for option in options if state_text(option).lower() == answer.strip().lower()
        ]
        if alike:
            return (exact or alike)[0]

    raise ReasonerError(f"the reply names {_excerpt(answer)}, which is not one of {listing}")


def _answers_in(text: str) -> list[Any]:
    """Find the ``next_state`` of every JSON object in a text, in order; thoughts do not count."""
    text = _without_thoughts(text)[-MOST_REPLY_CHARACTERS:]
    decoder = json.JSONDecoder()
    answers = []
    position = text.find("{")
    while position >= 0:
        try:
            found, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):  # also raised for a number of too many digits
            found, position = None, position + 1

        if isinstance(found, dict) and "next_state" in found:
            answers.append(found["next_state"])

        position = text.find("{", position)

    return answers


def _without_thoughts(text: str) -> str:
    """Drop ``<think>`` blocks."""
    # what precedes a lone end tag, or follows a lone start tag, is a thought, too
    said: list[str] = []
    position, is_thinking = 0, False
    for tag in _TAG.finditer(text):
        if tag.group() == _THINK:
            if not is_thinking:
                said.append(text[position : tag.start()])
            is_thinking = True
        else:
            if not is_thinking:
                said.clear()
            is_thinking, position = False, tag.end()

    return "".join(said) if is_thinking else "".join((*said, text[position:]))


def _excerpt(given: Any) -> str:
    shown = repr(given)
    return shown if len(shown) <= 120 else shown[:117] + "..."
