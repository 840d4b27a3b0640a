"""Diagrams as SVG: texts, traffic, states in states, and where agents are counted."""

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.drawing import Arrow, Box, Diagram, draw_svg, number_text, printable, showable
from prism.statechart import social_media_chart

TIMES = "\N{MULTIPLICATION SIGN}"
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def titles(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}title")]


def lines(svg: str) -> list[tuple[float, bool]]:
    """Return the width of every arrow's line, and whether it is faint."""
    found = [
        element
        for element in ET.fromstring(svg).iter(f"{SVG}path")
        if "line" in element.get("class", "").split()
    ]
    return [
        (float(element.get("stroke-width", "0")), "idle" in element.get("class", ""))
        for element in found
    ]


@given(data=st.data())
def test_any_chart_is_drawn_as_well_formed_xml(random_charts: Any, data: st.DataObject) -> None:
    """The picture of any chart is valid XML, names every state and loads nothing from elsewhere."""
    chart = data.draw(random_charts.charts())
    svg = chart.to_svg()
    found = [" ".join(title.split()) for title in titles(svg)]
    assert {" ".join(showable(state).split()) for state in chart.states} <= set(found)
    assert not re.search(
        r"href|url\(|@import|<script", re.sub(r"<(title|text)[^>]*>[^<]*<", "<", svg)
    )


def test_the_social_chart_shows_its_states_triggers_and_limit() -> None:
    """The social chart shows names, labels, time-out and legend on at most 900 pixels."""
    svg = social_media_chart().to_svg()
    shown = texts(svg)
    for text in (
        "engaging_reshare",
        "decides [should_engage]",
        "time-out after 2 ticks",
        "every other state",
        "round_ends",
    ):
        assert text in shown
    assert "evaluating → scrolling: ignores, decides, timeout" in titles(svg)
    assert shown[-1].startswith("◆ decision state")
    assert "◉" not in svg
    done = Diagram(("work", "done"), (), final_states=frozenset({"done"}))
    assert texts(draw_svg(done, {}, caption="one run"))[1::3] == ["◉ done", "one run"]
    assert "◆ evaluating" in shown
    assert svg.count('class="box decision"') == svg.count('class="start"') == 1
    assert float(ET.fromstring(svg).get("width", "")) <= 900


def test_the_picture_has_colours_for_light_and_dark() -> None:
    """Every rule with a colour has another colour in dark surroundings; none is a variable."""
    light, _, dark = social_media_chart().to_svg().partition("@media (prefers-color-scheme: dark)")
    bright, dim = (
        dict(re.findall(r"\.prism-chart ([^{]+) \{ ([^}]*#[^}]*) \}", half))
        for half in (light, dark)
    )
    assert len(bright) == 6
    assert bright.keys() == dim.keys()
    assert all(bright[selector] != dim[selector] for selector in bright)
    assert "var(" not in light + dark


TRIANGLE = Diagram(
    ("a", "b", "c"),
    (Arrow("a", "b", ("go",)), Arrow("b", "c", ("on",)), Arrow("c", "a", ("back",))),
    initial="a",
)


def test_traffic_sets_widths_and_counts() -> None:
    """The busiest arrow is the widest, every arrow shows its count, and an unused one is faint."""
    svg = draw_svg(TRIANGLE, {("a", "b"): 40_000, ("b", "c"): 100})
    busy, rare, unused, _ = lines(svg)
    assert busy[0] > 3 * rare[0]
    assert rare[0] > unused[0]
    assert [faint for _, faint in (busy, rare, unused)] == [False, False, True]
    assert [text for text in texts(svg) if text.endswith(TIMES)] == [
        f"{count}{TIMES}" for count in ("40,000", "100", "0")
    ]
    assert texts(svg)[-1].startswith("number and width")
    assert not any(text.endswith(TIMES) for text in texts(draw_svg(TRIANGLE)))


def test_traffic_without_an_arrow_gets_one() -> None:
    """Traffic without an arrow in the diagram gets one without a trigger, unless its count is 0."""
    svg = draw_svg(TRIANGLE, {("a", "c"): 3, ("b", "a"): 0})
    assert "a → c: " in titles(svg)
    assert not any(title.startswith("b → a") for title in titles(svg))
    assert len(lines(svg)) == len(lines(draw_svg(TRIANGLE))) + 1


def test_traffic_from_everywhere_is_added_up() -> None:
    """An arrow from every other state counts the traffic to its target that has no other arrow."""
    everywhere = Diagram(
        ("a", "b", "c"), (Arrow(None, "a", ("reset",)), Arrow("c", "a", ("back",)))
    )
    svg = draw_svg(everywhere, {("b", "a"): 5, ("a", "a"): 2, ("c", "a"): 4})
    assert [text for text in texts(svg) if text.endswith(TIMES)] == [f"7{TIMES}", f"4{TIMES}"]


def test_a_loop_without_known_traffic_has_no_number() -> None:
    """An arrow from a state to itself is faint, with a number, only where its traffic is given."""
    loop = Diagram(("a", "b"), (Arrow("a", "a", ("stay",)), Arrow("a", "b", ("go",))))
    unknown = draw_svg(loop, {("a", "b"): 5})
    assert [text for text in texts(unknown) if text.endswith(TIMES)] == [f"5{TIMES}"]
    assert not any(faint for _, faint in lines(unknown))
    unused = draw_svg(loop, {("a", "b"): 5, ("a", "a"): 0})
    assert f"0{TIMES}" in texts(unused)
    assert any(faint for _, faint in lines(unused))


def places(svg: str) -> list[str | None]:
    """Return where the states and arrows of a picture are, whatever the widths of arrows are."""
    root = ET.fromstring(svg)
    boxes = [box for box in root.iter(f"{SVG}rect") if "box" in box.get("class", "")]
    return [
        *(box.get(name) for box in boxes for name in ("x", "y", "width", "height")),
        *((line.get("d") or "").split("C")[0] for line in root.iter(f"{SVG}path")),
    ]


@given(data=st.data())
def test_pictures_side_by_side_have_one_layout_and_scale(data: st.DataObject) -> None:
    """With the traffic beside it, a picture has its layout, and widths mean the same in both."""
    names = ("a", "b", "c", "d")
    ends = st.tuples(st.sampled_from(names), st.sampled_from(names))
    traffic = st.dictionaries(ends, st.integers(1, 10**7), min_size=1)
    one, other = data.draw(traffic), data.draw(traffic)
    diagram = Diagram(names, (Arrow("a", "b", ("go",)), Arrow("b", "a", ("back",))), initial="a")
    pictures = [draw_svg(diagram, one, beside=[other]), draw_svg(diagram, other, beside=[one])]
    assert places(pictures[0]) == places(pictures[1])

    widest = max(width for picture in pictures for width, _ in lines(picture))
    most = max(max(one.values()), max(other.values()))
    assert widest == 7.0
    for counts, picture in zip((one, other), pictures, strict=True):
        assert (7.0 in [width for width, _ in lines(picture)]) == (
            round(1.3 + 5.7 * (max(counts.values()) / most) ** 0.5, 1) == 7.0
        )


def test_long_texts_are_wrapped_and_cut() -> None:
    """Long names and labels are cut in the picture and complete in the tooltip."""
    long = "a state of many words that goes on and on " * 5
    triggers = tuple(f"trigger {number} " + "x" * 60 for number in range(9))
    guarded = draw_svg(Diagram(("a",), (Arrow("a", "a", ("goes [is_far_from_home] / walk",)),)))
    assert texts(guarded) == ["a", "goes", "[is_far_from_home] / walk"]
    svg = draw_svg(Diagram((long, "b"), (Arrow(long, "b", triggers),)))
    shown = texts(svg)
    assert len([text for text in shown if text.startswith("trigger") and text.endswith("…")]) == 9
    assert max(map(len, shown)) <= 36
    assert long in titles(svg)


def test_a_box_is_as_wide_as_its_letters() -> None:
    """Narrow ones need less room than others, and those of Chinese more."""
    names = ("il" * 9, "no" * 9, "会话" * 9)
    boxes = [
        re.findall(r'<rect class="box" .*?width="(.*?)"', draw_svg(Diagram((each,), ())))
        for each in names
    ]
    narrow, usual, wide = (float(width) for (width,) in boxes)
    assert narrow < 0.8 * usual < 0.6 * wide


NESTED = Diagram(
    ("in", "one", "two", "out"),
    (Arrow("one", "two", ("go",)), Arrow("in", "out", ("leave",)), Arrow("out", "in")),
    boxes={"in": Box(("one", "two"), ("one",))},
)


def test_boxes_have_agents_and_arrows_the_traffic_of_what_is_inside() -> None:
    """A page finds each by its name; one that was never used is faint, on any level."""
    traffic = {("one", "two"): 9, ("two", "out"): 1, ("two", "one"): 2}
    svg = draw_svg(NESTED, traffic, agents={"one": 3, "two": 4, "out": 1})
    found = dict(re.findall(r'data-state="(\w+)".*?>([\d,]+) agents?<', svg))
    assert found == {"in": "7", "one": "3", "two": "4", "out": "1"}
    counts = re.findall(r'data-source="(\w+)" data-target="(\w+)".*?>(\d+)\u00d7<', svg)
    assert {(source, target): int(count) for source, target, count in counts} == {
        ("one", "two"): 9,
        ("in", "out"): 1,
        ("two", "one"): 2,
        ("out", "in"): 0,
    }
    assert svg.count('class="line idle"') == 1


def test_all_levels_have_one_layout_and_one_scale() -> None:
    """The widest arrow is that of the most traffic of all levels and pictures."""
    quiet = {("one", "two"): 1, ("two", "out"): 100}
    busy = {("one", "two"): 100}
    one, other = draw_svg(NESTED, quiet, beside=[busy]), draw_svg(NESTED, busy, beside=[quiet])
    assert places(one) == places(other)
    widest = [max(width for width, _ in lines(svg)) for svg in (one, other)]
    assert widest[0] == widest[1]


def test_characters_that_cannot_be_shown_are_replaced() -> None:
    """Control characters and lone surrogates become replacement characters; the rest stays."""
    assert showable("a\0b\x1b[\ud800é\n😀") == "a\ufffdb\ufffd[\ufffdé\n😀"


def test_a_printable_text_stands_on_one_line() -> None:
    """Line breaks and control characters become blanks; letters of any script stay."""
    assert printable("a\n\x1b[1mé\u2028ß") == "a  [1mé ß"


def test_numbers_have_commas_and_exponents_only_where_people_write_them() -> None:
    """An income of 15,234.5 is not 1.523e+04; a share keeps four digits."""
    numbers = (15234.5, -15234.5, 0.123456, 9999.6, 1234567, 0.0, 1e-7, 2e20)
    texts = "15,234 -15,234 0.1235 10,000 1,234,567 0 1e-07 2e+20"
    assert " ".join(map(number_text, numbers)) == texts


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
    histories={"back": "H"},
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
        ("feed+home", "feed+home", {("feed", "feed")}),
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


def test_an_arrow_from_every_other_state_leads_to_the_box_around_its_target() -> None:
    """As an arrow of any other state outside the box does."""
    diagram = Diagram(
        ("in", "one", "out"), (Arrow(None, "one", ("go",)),), boxes={"in": Box(("one",))}
    )
    svg = draw_svg(diagram)
    assert ">every other state<" in svg
    assert ">go → one<" in svg
