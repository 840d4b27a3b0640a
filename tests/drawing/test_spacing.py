"""Placing points on a line."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from prism.drawing._spacing import spread, within


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.floats(-50, 50), st.floats(0.1, 10), st.floats(0, 20)), min_size=1, max_size=8
    ),
    st.data(),
)
def test_spread_keeps_distances_at_least_cost(
    points: list[tuple[float, float, float]], data: st.DataObject
) -> None:
    """Distances are kept, and no other placement that keeps them is nearer to what is wanted."""
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


@settings(max_examples=200)
@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=8),
    st.floats(-20, 0),
    st.floats(0, 60),
    st.floats(1, 20),
)
def test_within_keeps_bounds_and_order(
    wanted: list[float], least: float, width: float, distance: float
) -> None:
    """All points lie between the bounds, in order, and apart as they should be where there is room for that."""
    placed = within(least, least + width, wanted, distance)
    apart = min(distance, width / max(1, len(wanted) - 1))
    assert least - 1e-6 <= placed[0]
    assert placed[-1] <= least + width + 1e-6
    assert all(later - earlier >= apart - 1e-6 for earlier, later in pairwise(placed))
