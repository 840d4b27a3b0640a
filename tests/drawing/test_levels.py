"""States in states: where agents are counted, and which arrow each of their moves takes."""

import re

import pytest

from prism.drawing import Arrow, Box, Diagram, draw_svg

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


def used(diagram: Diagram, source: str, target: str) -> set[tuple[str, str]]:
    """Return the ends of the arrows that have one move of an agent."""
    svg = draw_svg(diagram, {(source, target): 1}, agents={})
    label = r'data-source="([^"]*)" data-target="([^"]*)"(?:(?!</g>).)*>1\u00d7<'
    return {*re.findall(label, svg)}


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
    assert used(DAY, source, target) == ends
    assert {own for each in ends for own in used(DAY, *each)} == ends


def agents_of(diagram: Diagram, agents: dict[str, int]) -> dict[str, int]:
    svg = draw_svg(diagram, agents=agents)
    found = re.findall(r'data-state="([^"]*)"(?:(?!</g>).)*>(\d+) agents?<', svg)
    return {state: int(count) for state, count in found}


@pytest.mark.parametrize("depth", [1, 2])
def test_an_arrow_between_regions_starts_at_the_state_around_both(depth: int) -> None:
    """Its label says from where to where it leads, also where regions are inside regions."""
    boxes = {**DAY.boxes, "all": Box(("awake", "asleep"), is_parallel=depth == 2)}
    arrows = (Arrow("work", "feed", ("looks",)),)
    svg = draw_svg(Diagram((*DAY.states, "all"), arrows, boxes=boxes), agents={})
    ends = re.findall(r'data-source="(\w+)" data-target="(\w+)"', svg)
    assert ends == [("awake", "awake"), ("all", "all")][depth - 1 : depth]
    assert ">work: looks → feed<" in svg


def test_states_without_boxes_are_what_they_are_called() -> None:
    """A sign that joins regions elsewhere is a part of a name there."""
    diagram = Diagram(("a+b", "c"), (Arrow("a+b", "c"),))
    assert agents_of(diagram, {"a+b": 2}) == {"a+b": 2, "c": 0}
    assert used(diagram, "a+b", "c") == {("a+b", "c")}


def test_an_arrow_from_every_other_state_leads_to_the_box_around_its_target() -> None:
    """As an arrow of any other state outside the box does."""
    diagram = Diagram(
        ("in", "one", "out"), (Arrow(None, "one", ("go",)),), boxes={"in": Box(("one",))}
    )
    svg = draw_svg(diagram)
    assert ">every other state<" in svg
    assert ">go → one<" in svg
