"""States in states: where agents are counted, and which arrow each of their moves takes."""

import pytest

from prism.drawing import Arrow, Box, Diagram
from prism.drawing._levels import Levels

DAY = Diagram(
    ("awake", "place", "work", "home", "phone", "pocket", "feed", "back", "asleep"),
    (
        Arrow("work", "home"),
        Arrow("pocket", "feed"),
        Arrow("feed", "back"),
        Arrow("home", "asleep"),
        Arrow("asleep", "awake"),
        Arrow("awake", "awake"),
        Arrow("feed", "feed"),
    ),
    boxes={
        "awake": Box(("place", "phone"), is_parallel=True),
        "place": Box(("work", "home"), ("work",)),
        "phone": Box(("pocket", "feed", "back"), ("pocket",)),
    },
    marks={"back": "H"},
)


@pytest.mark.parametrize(
    ("source", "target", "ends"),
    [
        ("work+pocket", "work+feed", {("pocket", "feed")}),
        ("work+pocket", "home+feed", {("work", "home"), ("pocket", "feed")}),
        ("home+feed", "asleep", {("awake", "asleep")}),
        ("asleep", "work+pocket", {("asleep", "awake")}),
        # a history of the same box
        ("work+feed", "work+pocket", {("feed", "back")}),
        # no arrow of the place itself leads back
        ("home+pocket", "work+pocket", {("awake", "awake")}),
        # the inner arrow comes first
        ("home+feed", "home+feed", {("feed", "feed")}),
        ("home+pocket", "home+pocket", {("awake", "awake")}),
        ("asleep", "asleep", {("asleep", "asleep")}),
    ],
)
def test_a_move_takes_the_arrow_between_what_changes(
    source: str, target: str, ends: set[tuple[str, str]]
) -> None:
    """Each region has its own; what it takes is its own again when it is read as a move."""
    levels = Levels(DAY)
    assert {*levels.used(source, target)} == ends
    assert {own for each in ends for own in levels.used(*each)} == ends


def test_a_box_counts_all_inside_and_regions_count_each_agent() -> None:
    """An agent counts once in each state around it."""
    counts = Levels(DAY).agents({"work+pocket": 3, "work+feed": 2, "home+feed": 1, "asleep": 4})
    assert counts == {
        **{"awake": 6, "place": 6, "phone": 6, "asleep": 4},
        **{"work": 5, "home": 1, "pocket": 3, "feed": 3},
    }


def test_an_arrow_between_regions_starts_at_the_state_around_both() -> None:
    """Its label says from where to where it leads."""
    inside = Diagram(DAY.states, (Arrow("work", "feed", ("looks",)),), boxes=DAY.boxes)
    whole = Levels(inside)
    assert whole.at(None).arrows == (Arrow("awake", "awake", ("work: looks → feed",)),)
    assert whole.at("awake").arrows == ()

    day = Box(("awake",))
    around = Diagram((*DAY.states, "day"), inside.arrows, boxes={**DAY.boxes, "day": day})
    assert Levels(around).at("day").arrows == whole.at(None).arrows


def test_states_without_boxes_are_what_they_are_called() -> None:
    """A sign that joins regions elsewhere is a part of a name there."""
    levels = Levels(Diagram(("a+b", "c"), (Arrow("a+b", "c"),)))
    assert [*levels.active("a+b")] == ["a+b"]
    assert [*levels.used("a+b", "c")] == [("a+b", "c")]
