"""The probabilities of a decision model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prism.errors import ReasonerError
from prism.statechart.reasoner._replies._excerpt import excerpt
from prism.statechart.states import state_text

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
        raise ReasonerError(f"the reply has no probabilities but {excerpt(given)}")

    for text in texts:
        value = given.get(text)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
            raise ReasonerError(
                f"the reply gives {text!r} the probability {excerpt(value)}, "
                "which is not a number from 0 to 1"
            )

    strangers = [text for text in given if text not in texts]
    if strangers:
        raise ReasonerError(
            f"the reply weighs {excerpt(strangers[0])}, which is not one of {', '.join(texts)}"
        )

    total = sum(given[text] for text in texts)
    if abs(total - 1) > ROUNDING:
        raise ReasonerError(f"the reply's probabilities sum to {total:g} instead of 1")

    return {text: given[text] / total for text in texts}
