"""Diagrams of charts."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.statechart import Transition, state_enum
from prism.statechart.outline import label_of, to_outline

Mood = state_enum("Mood", ["calm", "angry", "sad", "gone"])
CALM, ANGRY, SAD, GONE = Mood


def is_strong(agent: Any, force: Any) -> bool:
    return bool(force > 3)


@pytest.mark.parametrize(
    ("guard", "action", "label"),
    [
        (None, None, "go"),
        (is_strong, None, "go [is_strong]"),
        (None, is_strong, "go / is_strong"),
        (lambda agent, context: True, partial(is_strong), "go [guard] / action"),
    ],
)
def test_labels_are_as_in_uml(guard: Any, action: Any, label: str) -> None:
    """A label is ``trigger [guard] / action``; a nameless function is called guard or action."""
    assert label_of(Transition("go", CALM, ANGRY, guard, action)) == label


@given(data=st.data())
def test_a_diagram_shows_every_transition(random_charts: Any, data: st.DataObject) -> None:
    """Every transition is on an arrow, and no arrow shows one that the chart lacks."""
    chart = data.draw(random_charts.charts())
    shown = {
        (arrow.source, arrow.target, label)
        for arrow in to_outline(chart.definition).arrows
        for label in arrow.labels
    }
    needed = {(str(item.source), str(item.target), label_of(item)) for item in chart.transitions}
    left = {str(state) for state in chart.states - chart.final_states}
    spread = {
        (source, target, label)
        for end, target, label in shown
        for source in ([end] if end is not None else left - {target})
    }
    assert spread <= needed
    assert all(item in spread or (None, *item[1:]) in shown for item in needed)
