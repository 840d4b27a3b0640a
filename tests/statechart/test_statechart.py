"""The chart: construction, what is possible in it, copies, and charts as values."""

import copy
from typing import Any

import pytest

from prism.statechart import Statechart, Transition, state_enum

Mood = state_enum("Mood", ["calm", "angry"])


def is_strong(agent: Any, force: Any) -> bool:
    return bool(force > 3)


def moods(enum: Any = Mood, **options: Any) -> Statechart[Any]:
    """Make a chart over an enum with the same texts."""
    calm, angry = enum
    moves = [Transition("bumped", calm, angry, is_strong)]
    limits = {"decision_states": [calm], "timeouts": {angry: 2}}
    return Statechart(enum, moves, calm, name="moods", **limits, **options)


def test_charts_of_one_definition_are_equal() -> None:
    """Charts defined alike are equal and hash alike, whatever their clock, logger or enum class."""
    twin = state_enum("Twin", ["calm", "angry"])
    for other in (moods(), moods(clock=lambda: 0.0), moods(twin), copy.deepcopy(moods())):
        assert other == moods()
        assert hash(other) == hash(moods())
    assert {moods(): 1}[moods(twin)] == 1


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
