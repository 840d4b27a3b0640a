"""The chart: construction, what is possible in it, copies, and charts as values."""

import copy
from typing import Any

import pytest

from prism.statechart import (
    AgentState,
    Statechart,
    Transition,
    state_enum,
)

S = AgentState


Mood = state_enum("Mood", ["calm", "angry"])
CALM, ANGRY = Mood


def is_strong(agent: Any, force: Any) -> bool:
    return bool(force > 3)


def moods(**changes: Any) -> Statechart[Any]:
    parts: dict[str, Any] = {
        "states": Mood,
        "transitions": [Transition("bumped", CALM, ANGRY, is_strong)],
        "initial": CALM,
        "name": "moods",
        "decision_states": [CALM],
        "timeouts": {ANGRY: 2},
        "strict": False,
    }
    return Statechart(**{**parts, **changes})


def over(enum: Any, **changes: Any) -> Statechart[Any]:
    """Make the chart over another enum."""
    by_text = {str(member): member for member in enum}
    move = Transition("bumped", by_text["calm"], by_text["angry"], is_strong)
    parts = {
        "transitions": [move],
        "initial": by_text["calm"],
        "decision_states": [by_text["calm"]],
    }
    return moods(states=enum, timeouts={by_text["angry"]: 2}, **{**parts, **changes})


def test_charts_of_one_definition_are_equal() -> None:
    """Charts defined alike are equal and hash alike, whatever their clock, logger or enum class."""
    twin = state_enum("Twin", ["calm", "angry"])
    for other in (moods(), moods(clock=lambda: 0.0), over(twin), copy.deepcopy(moods())):
        assert other == moods()
        assert hash(other) == hash(moods())
    assert {moods(): 1}[over(twin)] == 1


@pytest.mark.parametrize(
    ("spec", "beginning"),
    [
        ("mermaid", "stateDiagram-v2\n"),
        ("dot", 'digraph "moods" {\n'),
        ("scxml", "<?xml "),
        ("json", '{\n  "schema": 2,'),
        ("svg", "<svg "),
    ],
)
def test_formats_are_named_by_the_spec(spec: str, beginning: str) -> None:
    """``format(chart, spec)`` writes each of the formats."""
    assert format(moods(), spec).startswith(beginning)


def test_a_notebook_gets_a_picture() -> None:
    """A notebook is offered the drawing."""
    assert moods()._repr_svg_() == f"{moods():svg}"
