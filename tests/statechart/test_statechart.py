"""The chart: construction, what is possible in it, copies, and charts as values."""

import copy
import pickle
from enum import Enum, IntEnum
from types import SimpleNamespace
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


Plain = Enum("Plain", ["calm", "angry"], start=0)
Number = IntEnum("Number", ["calm", "angry"], start=0)


@pytest.mark.parametrize("enum", [Plain, Number])
def test_states_may_be_of_any_enum(enum: Any) -> None:
    """An agent keeps the members it has; files and logs have their names where values are no texts.

    Mesa's examples have numbers as states, the first of which is 0.
    """
    agent = SimpleNamespace(state=enum.calm, ticks_in_state=0, state_history=[], agent_id="a")
    chart = pickle.loads(pickle.dumps(moods(enum)))
    assert chart.fire(agent, "bumped", 5) is agent.state is enum.angry
    assert [chart.tick(agent) for _ in range(2)] == [None, None]
    assert chart.history(agent)[0].to_dict()["to_state"] == "angry"
    assert "'angry' does not react to it" in str(chart.explain(agent, "bumped"))
    assert chart.state_of("calm") is enum.calm
    text = SimpleNamespace(state="calm", ticks_in_state=0, state_history=[], agent_id="b")
    assert (chart.fire(text, "bumped", 5), text.state) == (enum.angry, "angry")
    written, guards = chart.to_dict(), {"is_strong": is_strong}
    assert written == moods().to_dict()
    assert Statechart.from_dict(written, guards=guards, states=enum) == chart
