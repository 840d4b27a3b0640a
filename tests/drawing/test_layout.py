"""The places of boxes, arrows and labels in pictures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations, pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prism.drawing import Arrow, Box, Diagram, draw_svg

SVG = "{http://www.w3.org/2000/svg}"
SLACK = 0.3
"""Coordinates are rounded to a tenth."""

Rectangle = tuple[float, float, float, float]
Point = tuple[float, float]


@st.composite
def diagrams(draw: st.DrawFn) -> Diagram:
    """Return a diagram of which every arrow has a label; names, labels and notes of any size."""
    number = draw(st.integers(1, 8))
    sizes = draw(st.lists(st.integers(0, 16), min_size=number, max_size=number))
    names = tuple(f"s{place} {'wide ' * size}".strip() for place, size in enumerate(sizes))
    ends = draw(st.lists(st.sampled_from([*product(names, names)]), max_size=16, unique=True))
    labels = st.lists(st.sampled_from(["go", "a rather long label", "then"]), min_size=1)
    tall = {name: ("entry / wake",) * 4 for name in names if draw(st.booleans())}
    arrows = tuple(Arrow(*pair, tuple(draw(labels))) for pair in ends)
    return Diagram(names, arrows, draw(st.sampled_from([None, *names])), notes=tall)


def rectangle(element: ET.Element) -> Rectangle:
    """Return left, right, top and bottom."""
    x, y, width, height = (float(element.get(key, "")) for key in ("x", "y", "width", "height"))
    return x, x + width, y, y + height


class Picture:
    """Where everything is in a picture of a diagram without boxes, by the order of drawing."""

    def __init__(self, diagram: Diagram) -> None:
        root = ET.fromstring(draw_svg(diagram))
        self.width, self.height = (float(root.get(key, "")) for key in ("width", "height"))
        inner = root.find(f"{SVG}g")
        assert inner is not None
        (self.left, self.top) = map(float, re.findall(r"[\d.]+", inner.get("transform", "")))
        rectangles = [*inner.iter(f"{SVG}rect")]
        self.labels = [rectangle(each) for each in rectangles if each.get("class") == "paper"]
        self.boxes = [rectangle(each) for each in rectangles if each.get("class") == "box"]
        lines = [each for each in inner.findall(f"{SVG}path") if each.get("class") == "line"]
        self.lines = [[*passed(each.get("d", ""))] for each in lines if not is_loop(each)]
        self.beside = [*loop_labels(inner)]


def is_loop(line: ET.Element) -> bool:
    return "V" not in line.get("d", "")


def loop_labels(inner: ET.Element) -> Iterator[Rectangle]:
    """Yield about the room of each label of an arrow from a state to itself."""
    for group in inner.iter(f"{SVG}g"):
        texts = group.findall(f"{SVG}text[@text-anchor='start']")
        if texts:
            x, y = float(texts[0].get("x", "")), float(texts[0].get("y", ""))
            longest = max(len(text.text or "") for text in texts)
            yield x, x + 5 * longest, y - 9, y + 14 * (len(texts) - 1)


def passed(path: str) -> Iterator[Point]:
    """Yield points along a path of straight vertical lines and of curves."""
    x = y = 0.0
    for command, numbers in re.findall(r"([MVC])([-\d. ]+)", path):
        values = [*map(float, numbers.split())]
        if command == "M":
            x, y = values
        elif command == "V":
            yield from ((x, y + (values[0] - y) * step / 10) for step in range(11))
            y = values[0]
        else:
            x1, y1, x2, y2, to_x, to_y = values
            for step in range(21):
                t = step / 20
                parts = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
                yield (
                    sum(p * v for p, v in zip(parts, (x, x1, x2, to_x), strict=True)),
                    sum(p * v for p, v in zip(parts, (y, y1, y2, to_y), strict=True)),
                )
            x, y = to_x, to_y


def overlap(one: Rectangle, other: Rectangle) -> bool:
    across = one[0] < other[1] - SLACK and other[0] < one[1] - SLACK
    return across and one[2] < other[3] - SLACK and other[2] < one[3] - SLACK


def is_inside(point: Point, room: Rectangle) -> bool:
    left, right, top, bottom = room
    return left + SLACK < point[0] < right - SLACK and top + SLACK < point[1] < bottom - SLACK


@given(diagrams())
def test_a_picture_is_clear(diagram: Diagram) -> None:
    """Nothing overlaps, no arrow runs through anything but its own label, and all fits in."""
    picture = Picture(diagram)
    assert len(picture.boxes) == len(diagram.states)
    assert_apart(picture)
    assert_arrows_run_free(picture)
    boxes = dict(zip(diagram.states, picture.boxes, strict=True))
    arrows = [arrow for arrow in diagram.arrows if arrow.source != arrow.target]
    for arrow, line in zip(arrows, picture.lines, strict=False):
        # the line begins at the border of its source, and its head is at the border of its target
        assert_at_border(line[0], boxes[arrow.source or ""], most=0)
        assert_at_border(line[-1], boxes[arrow.target], most=8)


def assert_apart(picture: Picture) -> None:
    """Assert that no two boxes or labels overlap, and that all lie within the picture."""
    rooms = [*picture.boxes, *picture.labels, *picture.beside]
    assert not any(overlap(one, other) for one, other in combinations(rooms, 2))
    for left, right, top, bottom in rooms:
        assert -SLACK <= left + picture.left < right + picture.left <= picture.width + SLACK
        assert -SLACK <= top + picture.top < bottom + picture.top <= picture.height + SLACK


def assert_arrows_run_free(picture: Picture) -> None:
    """Assert that arrows cross no box, and no label but their own, each in its middle."""
    for number, line in enumerate(picture.lines):
        others = [room for place, room in enumerate(picture.labels) if place != number]
        for point in line:
            assert not any(is_inside(point, room) for room in [*picture.boxes, *others])
        for left, right, top, bottom in picture.labels[number : number + 1]:
            within = [x for x, y in line if top <= y <= bottom]
            assert within
            assert all(abs(x - (left + right) / 2) < SLACK for x in within)


def assert_at_border(point: Point, box: Rectangle, *, most: float) -> None:
    """Assert that a point is at the upper or lower border of a box, or so far from it at most."""
    (x, y), (left, right, top, bottom) = point, box
    assert left - SLACK <= x <= right + SLACK
    assert min(abs(y - top), abs(y - bottom)) <= most + SLACK


def test_an_arrow_without_a_box_above_starts_next_to_its_target() -> None:
    """A state that nothing leads to is as near to where it leads as the arrows allow."""
    names = ("a", "b", "c", "late")
    arrows = (Arrow("a", "b"), Arrow("b", "c"), Arrow("late", "c"))
    _, second, _, late = Picture(Diagram(names, arrows)).boxes
    assert late[2] == second[2]


@pytest.mark.parametrize("upwards", [False, True])
def test_arrows_go_straight_past_a_tall_neighbour(upwards: bool) -> None:
    """An arrow of a low box does not bend until it is clear of a taller box in the same layer."""
    names = tuple(f"s{number}" for number in range(7))
    ends = [("s0", lower) for lower in names[2:]]
    arrows = [Arrow(*(pair[::-1] if upwards else pair), ("a long label",)) for pair in ends]
    if upwards:
        arrows += [Arrow(upper, "s1", ("go",)) for upper in names[2:]]
    tall = {"s1": ("entry / wake",) * 14}
    picture = Picture(Diagram(names, tuple(arrows), notes=tall))
    room = picture.boxes[1]
    assert room[3] - room[2] > 200
    assert abs(room[2] + room[3] - picture.boxes[0][2] - picture.boxes[0][3]) < 2 * SLACK
    assert not any(is_inside(point, room) for line in picture.lines for point in line)


def test_a_box_is_widened_for_its_arrows() -> None:
    """A box with many arrows is wide enough to keep them apart."""
    names = tuple(f"s{number}" for number in range(10))
    picture = Picture(Diagram(names, tuple(Arrow(names[0], name) for name in names[1:])))
    starts = sorted(line[0][0] for line in picture.lines)
    assert picture.boxes[0][1] - picture.boxes[0][0] > 120
    assert min(later - earlier for earlier, later in pairwise(starts)) > 10


@pytest.mark.slow
def test_a_long_chain_is_drawn() -> None:
    """A thousand states one below the other."""
    names = tuple(f"s{number}" for number in range(1000))
    tops = [box[2] for box in Picture(Diagram(names, tuple(map(Arrow, names, names[1:])))).boxes]
    assert tops == sorted(tops)


RING = Diagram(("a", "b", "c"), (Arrow("a", "b"), Arrow("b", "c"), Arrow("c", "a")))


@given(diagrams(), st.booleans())
@example(RING, False)
@example(RING, True)
def test_an_unconnected_box_adds_only_its_own_width(diagram: Diagram, comes_first: bool) -> None:
    """An unconnected box widens a picture by at most its width and the space between two boxes."""
    states = ("alone", *diagram.states) if comes_first else (*diagram.states, "alone")
    more = Diagram(states, diagram.arrows, diagram.initial, notes=diagram.notes)
    left, right, *_ = Picture(more).boxes[states.index("alone")]
    assert Picture(more).width <= Picture(diagram).width + right - left + 18 + 1


@pytest.mark.parametrize("count", [2, 3])
def test_unconnected_parts_are_laid_out_separately(count: int) -> None:
    """Several rings look like one each, side by side, in whatever order their states come."""
    one = Picture(RING)
    names = tuple(f"{state}{ring}" for state in RING.states for ring in range(count))
    arrows = tuple(
        Arrow(f"{arrow.source}{ring}", f"{arrow.target}{ring}")
        for ring in range(count)
        for arrow in RING.arrows
    )
    several = Picture(Diagram(names, arrows))
    assert several.height == one.height
    assert several.width <= count * one.width + (count - 1) * 18 + SLACK
    for ring in range(count):
        own = several.boxes[ring::count]
        shift = own[0][0] - one.boxes[0][0]
        for mine, (left, right, *down) in zip(own, one.boxes, strict=True):
            assert mine == (pytest.approx(left + shift), pytest.approx(right + shift), *down)


def test_boxes_in_boxes_have_room_for_what_is_inside() -> None:
    """Whatever is inside, also regions with names wider than what is inside them."""
    wide = "a region with a rather long name"
    boxes = {"out": Box((wide, "b"), is_parallel=True), wide: Box(("x", "y"), ("x",))}
    diagram = Diagram(("out", wide, "b", "x", "y"), (Arrow("x", "y", ("go",)),), "out", boxes=boxes)
    root = ET.fromstring(draw_svg(diagram))
    found = [*rooms(root, 0, 0)]
    outer = max(found, key=lambda room: room[1] - room[0])
    assert len(found) == 3
    for left, right, top, bottom in found:
        assert outer[0] <= left < right <= outer[1]
        assert outer[2] <= top < bottom <= outer[3]


def rooms(element: ET.Element, x: float, y: float) -> Iterator[Rectangle]:
    """Yield the boxes in an element, with those in what it moves."""
    for child in element:
        moved = re.findall(r"[-\d.]+", child.get("transform", "")) or (0, 0)
        if child.get("class", "").startswith("box") and not child.get("style"):
            left, right, top, bottom = rectangle(child)
            yield left + x, right + x, top + y, bottom + y
        yield from rooms(child, x + float(moved[0]), y + float(moved[1]))
