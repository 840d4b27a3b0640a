"""The probabilities of a decision model."""

from typing import Any

import pytest

from prism.errors import ReasonerError
from prism.reasoner._replies._reading import read_probabilities
from prism.statechart.states import AgentState

OPTIONS = [AgentState.COMPOSING, AgentState.SCROLLING]


@pytest.mark.parametrize(
    ("given", "chances"),
    [
        ({"composing": 0.25, "scrolling": 0.75}, {"composing": 0.25, "scrolling": 0.75}),
        ({"scrolling": 0.75, "composing": 0.25}, {"composing": 0.25, "scrolling": 0.75}),
        ({"composing": 0, "scrolling": 1}, {"composing": 0.0, "scrolling": 1.0}),
        ({"composing": 0.49, "scrolling": 0.49}, {"composing": 0.5, "scrolling": 0.5}),
        ({"composing": 0.52, "scrolling": 0.52}, {"composing": 0.5, "scrolling": 0.5}),
    ],
)
def test_probabilities_are_read_in_the_options_order(given: Any, chances: dict[str, float]) -> None:
    """Probabilities come in the options' order and sum to one, rounding in the reply taken out."""
    read = read_probabilities(given, OPTIONS)
    assert read == pytest.approx(chances)
    assert list(read) == ["composing", "scrolling"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "the reply has None instead of probabilities"),
        ([0.5, 0.5], r"has \[0.5, 0.5\] instead of"),
        ({}, "gives 'composing' the probability None, which is not a number from 0 to 1"),
        ({"composing": 1.0}, "gives 'scrolling' the probability None"),
        ({"composing": float("nan"), "scrolling": 0.5}, "the probability nan"),
        ({"composing": float("inf"), "scrolling": 0.5}, "the probability inf"),
        ({"composing": 10**400, "scrolling": 0.5}, "the probability 1000"),
        ({"composing": -0.1, "scrolling": 1.0}, "the probability -0.1"),
        ({"composing": 1.1, "scrolling": 0.0}, "the probability 1.1"),
        ({"composing": "0.5", "scrolling": 0.5}, "the probability '0.5'"),
        ({"composing": True, "scrolling": 0.0}, "the probability True"),
        (
            {"composing": 0.5, "scrolling": 0.5, "resting": 0.0},
            "gives a probability to 'resting', which is not one of composing,",
        ),
        (
            {"composing": 0.5, "scrolling": 0.5, 3: 0.0},
            "gives a probability to 3, which is not one of",
        ),
        ({"composing": 0.4, "scrolling": 0.4}, "probabilities sum to 0.8 instead of 1"),
        ({"composing": 0.9, "scrolling": 0.9}, "probabilities sum to 1.8 instead of 1"),
        ({"composing": 0, "scrolling": 0}, "probabilities sum to 0 instead of 1"),
    ],
)
def test_probabilities_that_are_none_are_refused(given: Any, message: str) -> None:
    """Each option needs a number from 0 to 1, no other has one, and they sum to about one."""
    with pytest.raises(ValueError, match=message) as caught:
        read_probabilities(given, OPTIONS)
    assert isinstance(caught.value, ReasonerError)
    assert len(str(caught.value)) < 250
