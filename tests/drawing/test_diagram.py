"""Charts as they are drawn."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.drawing._diagram import Arrow, Diagram, showable
from prism.errors import DefinitionError
from prism.statechart import Statechart, Transition, social_media_chart, state_enum
from prism.statechart.formats._diagram import label_of, to_diagram

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
    """A label is trigger, guard in brackets, action behind a slash; functions without a name go by what they are."""
    assert label_of(Transition("go", CALM, ANGRY, guard, action)) == label


def test_triggers_between_two_states_share_an_arrow() -> None:
    """Several moves from one state to another are one arrow, with each label once, in definition order."""
    moves = [Transition(trigger, CALM, ANGRY) for trigger in ("b", "a", "b")] + [
        Transition("c", ANGRY, CALM)
    ]
    assert to_diagram(Statechart(Mood, moves, CALM).definition).arrows == (
        Arrow("calm", "angry", ("b", "a")),
        Arrow("angry", "calm", ("c",)),
    )


@pytest.mark.parametrize("sources", [["*"], [ANGRY, SAD, GONE]])
def test_a_move_from_everywhere_is_one_arrow(sources: list[Any]) -> None:
    """A move that all other states make alike is one arrow without a source, wildcard or not."""
    moves = [
        *(Transition("reset", source, CALM) for source in sources),
        Transition("go", CALM, GONE),
    ]
    assert to_diagram(Statechart(Mood, moves, CALM).definition).arrows == (
        Arrow(None, "calm", ("reset",)),
        Arrow("calm", "gone", ("go",)),
    )


def test_a_move_from_nearly_everywhere_keeps_its_sources() -> None:
    """A move that one of the other states does not make, or makes under a guard, is drawn from each source."""
    moves = [
        Transition("reset", ANGRY, CALM),
        Transition("reset", SAD, CALM),
        Transition("reset", GONE, CALM, is_strong),
    ]
    assert [
        arrow.source for arrow in to_diagram(Statechart(Mood, moves, CALM).definition).arrows
    ] == [
        "angry",
        "sad",
        "gone",
    ]


def test_few_sources_are_not_everywhere() -> None:
    """A move from all but one of the other states, or in a chart of three, is drawn from each source."""
    five = list(state_enum("Five", "abcde"))
    most = [Transition("reset", source, five[0]) for source in five[1:4]]
    assert [
        arrow.source for arrow in to_diagram(Statechart(five, most, five[0]).definition).arrows
    ] == [
        "b",
        "c",
        "d",
    ]
    three = [Transition("reset", source, five[0]) for source in five[1:3]]
    assert [
        arrow.source for arrow in to_diagram(Statechart(five[:3], three, five[0]).definition).arrows
    ] == [
        "b",
        "c",
    ]


def test_the_social_chart_is_drawn_with_few_arrows() -> None:
    """In the social chart the end of a round is one arrow, and the rest of its 27 transitions are 17."""
    found = to_diagram(social_media_chart().definition)
    assert [arrow for arrow in found.arrows if arrow.source is None] == [
        Arrow(None, "idle", ("round_ends",))
    ]
    assert len(found.arrows) == 18
    assert (found.initial, found.decision_states, found.timeouts) == (
        "idle",
        {"evaluating"},
        {"resting": 2},
    )


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_an_outline_loses_no_move(random_charts: Any, data: st.DataObject) -> None:
    """Every transition stands on the arrow between its states or on the one from everywhere, and no arrow says more."""
    chart = data.draw(random_charts.charts())
    shown = {
        (arrow.source, arrow.target, label)
        for arrow in to_diagram(chart.definition).arrows
        for label in arrow.labels
    }
    needed = {(str(item.source), str(item.target), label_of(item)) for item in chart.transitions}
    spread = {
        (source, target, label)
        for end, target, label in shown
        for source in (
            [str(state) for state in chart.states if str(state) != target] if end is None else [end]
        )
    }
    assert spread <= needed
    assert all(item in spread or (None, *item[1:]) in shown for item in needed)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"states": ()}, "at least one state"),
        ({"states": ("a", "a")}, "each state once"),
        ({"arrows": (Arrow("x", "a"), Arrow(None, "y"))}, "'x', 'y' not among the states"),
        ({"initial": "x"}, "'x' not among"),
        ({"decision_states": frozenset("x")}, "'x' not among"),
        ({"timeouts": {"x": 1}}, "'x' not among"),
    ],
)
def test_an_outline_that_cannot_be_drawn_is_refused(parts: dict[str, Any], problem: str) -> None:
    """An outline without states, or that names others, is refused by name."""
    with pytest.raises(DefinitionError, match=problem):
        Diagram(**{"states": ("a",), "arrows": (), **parts})


def test_what_cannot_be_shown_is_replaced() -> None:
    """Control characters and half surrogate pairs become replacement characters; everything else stays."""
    assert showable("a\0b\x1b[\ud800é\n😀") == "a\ufffdb\ufffd[\ufffdé\n😀"
