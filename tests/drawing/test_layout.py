"""Layout of boxes and arrows."""

from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prism.drawing._layout import Box, Layout, Link, Point, lay_out, spread, spread_within

SIZES = st.floats(10, 200)
SLACK = 0.01
MANY = 5 * settings().max_examples
"""Examples of what is cheap: more where CI asks for more of all."""


@st.composite
def diagrams(draw: st.DrawFn) -> tuple[list[Box], list[Link]]:
    boxes = draw(
        st.lists(
            st.builds(Box, SIZES, st.floats(10, 80), st.sampled_from([0.0, 60.0])),
            min_size=1,
            max_size=8,
        )
    )
    ends = st.tuples(st.integers(0, len(boxes) - 1), st.integers(0, len(boxes) - 1)).filter(
        lambda end: end[0] != end[1]
    )
    links = draw(st.lists(ends, max_size=16)) if len(boxes) > 1 else []
    return boxes, [
        Link(*end, *draw(st.sampled_from([(0.0, 0.0), (90.0, 14.0), (40.0, 60.0)])))
        for end in links
    ]


def rectangle(
    x: float, y: float, width: float, height: float, more: float = 0.0
) -> tuple[float, ...]:
    """Return left, right, top and bottom."""
    return x - width / 2, x + width / 2 + more, y - height / 2, y + height / 2


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    across = one[0] < other[1] - SLACK and other[0] < one[1] - SLACK
    return across and one[2] < other[3] - SLACK and other[2] < one[3] - SLACK


def rectangles(boxes: list[Box], links: list[Link], layout: Layout) -> list[tuple[float, ...]]:
    """Return the room of all boxes, with their right margins, then of all labels."""
    placed = zip(layout.boxes, boxes, strict=True)
    labelled = zip(layout.routes, links, strict=True)
    return [
        *(
            rectangle(found.x, found.y, found.width, found.height, box.right_margin)
            for found, box in placed
        ),
        *(
            rectangle(*route.label, link.width, link.height)
            for route, link in labelled
            if link.height
        ),
    ]


def passed(points: tuple[Point, ...]) -> list[Point]:
    """Return points along the curves and the straight parts of a route."""
    found: list[Point] = []
    for (x1, y1), (x2, y2) in zip(points[::2], points[1::2], strict=True):
        for step in range(21):
            t = step / 20
            bend = 3 * t * t - 2 * t**3
            height = y1 + (y2 - y1) * (1.5 * t - 1.5 * t * t + t**3)
            found.append((x1 + (x2 - x1) * bend, height))
    for (x1, y1), (x2, y2) in zip(points[1:-1:2], points[2::2], strict=True):
        assert x1 == x2
        found += [(x1, y1 + (y2 - y1) * step / 10) for step in range(11)]
    return found


@given(diagrams())
def test_nothing_overlaps(diagram: tuple[list[Box], list[Link]]) -> None:
    """No two boxes or labels overlap, and all lie within the picture."""
    layout = lay_out(*diagram)
    found = rectangles(*diagram, layout)
    assert not any(overlap(one, other) for one, other in combinations(found, 2))
    for left, right, top, bottom in found:
        assert left >= -SLACK
        assert right <= layout.width + SLACK
        assert top >= -SLACK
        assert bottom <= layout.height + SLACK


@given(diagrams())
def test_arrows_run_through_no_box_and_no_other_label(
    diagram: tuple[list[Box], list[Link]],
) -> None:
    """An arrow crosses no box, and no label but its own."""
    boxes, links = diagram
    layout = lay_out(boxes, links)
    for link, route in zip(links, layout.routes, strict=True):
        others = [*layout.boxes]
        labels = [
            rectangle(*other.label, of.width, of.height)
            for of, other in zip(links, layout.routes, strict=True)
            if other is not route and of.height
        ]
        for x, y in passed(route.points):
            for left, right, top, bottom in [
                *(rectangle(b.x, b.y, b.width, b.height) for b in others),
                *labels,
            ]:
                assert not (
                    left + SLACK < x < right - SLACK and top + SLACK < y < bottom - SLACK
                ), (link, x, y)


@given(diagrams())
def test_arrows_lead_from_source_to_target(diagram: tuple[list[Box], list[Link]]) -> None:
    """An arrow starts at its source, ends at its target and passes its label."""
    boxes, links = diagram
    layout = lay_out(boxes, links)
    for link, route in zip(links, layout.routes, strict=True):
        for (x, y), box in (
            (route.points[0], layout.boxes[link.source]),
            (route.points[-1], layout.boxes[link.target]),
        ):
            assert box.left - SLACK <= x <= box.left + box.width + SLACK
            assert abs(abs(y - box.y) - box.height / 2) < SLACK
        label_x, label_y = route.label
        lines = zip(route.points[1:-1:2], route.points[2::2], strict=True)
        assert any(
            x1 == label_x and min(y1, y2) <= label_y <= max(y1, y2) for (x1, y1), (_, y2) in lines
        )


@given(diagrams())
def test_a_layout_is_repeatable(diagram: Any) -> None:
    """The same boxes and arrows always get the same layout."""
    assert lay_out(*diagram) == lay_out(*diagram)


@pytest.mark.parametrize("upwards", [False, True])
def test_arrows_go_straight_past_a_tall_neighbour(upwards: bool) -> None:
    """An arrow of a low box does not bend until it is clear of a taller box in the same layer."""
    boxes = [Box(40, 10), Box(120, 200), *[Box(40, 20)] * 5]
    links = [Link(0, lower, 120, 14) for lower in range(2, 7)]
    if upwards:
        links = [Link(link.target, link.source, link.width, link.height) for link in links] + [
            Link(upper, 1) for upper in range(2, 7)
        ]
    layout = lay_out(boxes, links)
    tall = layout.boxes[1]
    assert tall.y == layout.boxes[0].y
    for x, y in [place for route in layout.routes[:5] for place in passed(route.points)]:
        assert not (
            abs(x - tall.x) < tall.width / 2 - SLACK and abs(y - tall.y) < tall.height / 2 - SLACK
        )


def test_a_box_is_widened_for_its_arrows() -> None:
    """A box with many arrows is wide enough to keep them apart."""
    layout = lay_out(
        [Box(20, 20), *[Box(20, 20)] * 9], [Link(0, number) for number in range(1, 10)]
    )
    starts = sorted(route.points[0][0] for route in layout.routes)
    assert layout.boxes[0].width > 120
    assert min(later - earlier for earlier, later in pairwise(starts)) > 10


def test_large_diagrams_are_placed_in_bounded_time() -> None:
    """A hundred boxes with three hundred arrows get a layout, with fewer sweeps."""
    links = [
        Link(number % 100, (number * 7 + 3) % 100)
        for number in range(300)
        if number % 100 != (number * 7 + 3) % 100
    ]
    assert len(lay_out([Box(40, 20)] * 100, links).routes) == len(links)


RING = ([Box(80, 30)] * 3, [Link(0, 1), Link(1, 2), Link(2, 0)])


@given(diagrams(), st.booleans())
@example(RING, False)
@example(RING, True)
def test_an_unconnected_box_adds_only_its_own_width(
    diagram: tuple[list[Box], list[Link]], comes_first: bool
) -> None:
    """An unconnected box widens a picture by at most its width and the space between two boxes."""
    boxes, links = diagram
    alone = Box(50, 20)
    moved = [
        Link(link.source + comes_first, link.target + comes_first, link.width, link.height)
        for link in links
    ]
    more = lay_out([alone, *boxes] if comes_first else [*boxes, alone], moved)
    assert more.width <= lay_out(boxes, links).width + alone.width + 18 + SLACK


@pytest.mark.parametrize("count", [2, 3])
def test_unconnected_parts_are_laid_out_separately(count: int) -> None:
    """Several rings look like one each, side by side, in whatever order their boxes come."""
    boxes, links = RING
    one = lay_out(boxes, links)
    several = lay_out(
        boxes * count,
        [
            Link(end.source * count + n, end.target * count + n)
            for n in range(count)
            for end in links
        ],
    )
    assert several.height == one.height
    assert several.width <= count * one.width + (count - 1) * 18 + SLACK
    for ring in range(count):
        shift = several.boxes[ring].x - one.boxes[0].x
        for number, box in enumerate(one.boxes):
            same = several.boxes[number * count + ring]
            assert (same.x - shift, same.y) == (pytest.approx(box.x), box.y)


@settings(max_examples=MANY)
@given(
    st.lists(
        st.tuples(st.floats(-50, 50), st.floats(0.1, 10), st.floats(0, 20)), min_size=1, max_size=8
    ),
    st.data(),
)
def test_spread_keeps_distances_at_least_cost(
    points: list[tuple[float, float, float]], data: st.DataObject
) -> None:
    """Distances are kept, and no other placement that keeps them is closer to the wanted places."""
    wanted, weights, distances = (list(values) for values in zip(*points, strict=True))

    def cost(placed: list[float]) -> float:
        return sum(w * (x - goal) ** 2 for x, goal, w in zip(placed, wanted, weights, strict=True))

    placed = spread(wanted, weights, distances[:-1])
    gaps = [later - earlier for earlier, later in pairwise(placed)]
    assert all(gap >= least - 1e-6 for gap, least in zip(gaps, distances[:-1], strict=True))
    start = data.draw(st.floats(-50, 50))
    other = [start]
    for least in distances[:-1]:
        other.append(other[-1] + least + data.draw(st.floats(0, 30)))
    assert cost(placed) <= cost(other) + 1e-6


@settings(max_examples=MANY)
@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=8),
    st.floats(-20, 0),
    st.floats(0, 60),
    st.floats(1, 20),
)
def test_spread_within_keeps_bounds_and_order(
    wanted: list[float], least: float, width: float, distance: float
) -> None:
    """All points lie in order between the bounds, and far enough apart if there is room."""
    placed = spread_within(least, least + width, wanted, distance)
    apart = min(distance, width / max(1, len(wanted) - 1))
    assert least - 1e-6 <= placed[0]
    assert placed[-1] <= least + width + 1e-6
    assert all(later - earlier >= apart - 1e-6 for earlier, later in pairwise(placed))
