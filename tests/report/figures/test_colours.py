"""Colours, on light and on dark pages."""

import re

from prism.report._figures.page_figures import (
    AXIS,
    BLUE,
    DARK_PAPER,
    GREY,
    INK,
    PAPER,
    Figure,
    colour_of,
    dark_rules,
    in_dark,
)
from prism.report._figures.rendering import draw
from tests.kit.colours import contrast

STATES = [colour_of(place) for place in range(30)]


def test_marks_can_be_seen_on_a_dark_page() -> None:
    """Every colour of a mark has a contrast of 3:1 with dark paper, and a text one of 4.5:1."""
    for colour in (*STATES, BLUE, GREY, AXIS):
        assert contrast(in_dark(colour), DARK_PAPER) >= 3, colour
    assert contrast(in_dark(INK), DARK_PAPER) >= 4.5
    assert in_dark(PAPER) == DARK_PAPER
    # nearer to white by one part for all of red, green and blue
    assert [in_dark(each) for each in ("#ff0000", "#00ff00", "#0000ff")] == [
        "#ff" + (part := in_dark("#000001")[1:3]) * 2,
        f"#{part}ff{part}",
        f"#{part * 2}ff",
    ]


def test_colours_that_differ_in_light_differ_in_dark() -> None:
    """Thirty states have thirty colours in the dark, too."""
    assert len({in_dark(colour) for colour in STATES}) == len(set(STATES)) == 30


def test_rules_cover_fills_and_lines() -> None:
    """The style sheet has a rule for each colour as a fill and as a line."""
    rules = dark_rules(["#332288"])
    assert f'.picture [fill="#332288"] {{ fill: {in_dark("#332288")}; }}' in rules
    assert f'.picture [stroke="#332288"] {{ stroke: {in_dark("#332288")}; }}' in rules
    assert f'[fill="{INK}"]' in rules


def test_a_title_has_the_colour_of_ink() -> None:
    """All texts of a figure have a colour that dark pages change, its title and subtitle, too."""
    titled = {"text": "Reached", "subtitle": "band: 95% interval"}
    data = {"values": [{"round": 1, "group": "plain"}, {"round": 2, "group": "warned"}]}
    places = {"x": {"field": "round"}, "color": {"field": "group"}}
    spec = {"title": titled, "data": data, "mark": "point", "encoding": places}
    svg = draw(Figure(spec, stretches=True).alone())

    assert "Reached" in svg
    assert "band" in svg
    assert set(re.findall(r'<text[^>]* fill="([^"]*)"', svg)) == {INK}
