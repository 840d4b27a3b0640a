"""A deterministic layout of a network that puts connected agents near each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import cos, hypot, pi, sin, sqrt

_STEPS = 60
_STEPS_OF_MANY = 30
_MANY = 500
_REACH = 2.0
_LEAST = 1e-6

Edges = tuple[tuple[int, int], ...]


@lru_cache(maxsize=8)
def spread(count: int, edges: Edges) -> Sequence[tuple[float, float]]:
    """Return a position for each agent by springs and repulsion (Fruchterman and Reingold 1991).

    Agents begin on a circle in their order, so no random numbers are involved. Only agents that are
    near repel each other.

    Args:
        count: Number of agents.
        edges: Pairs of connected agents.
    """
    ideal = 1.0
    radius = ideal * sqrt(count) / 2
    xs = [radius * cos(2 * pi * place / count) for place in range(count)]
    ys = [radius * sin(2 * pi * place / count) for place in range(count)]
    steps = _STEPS if count <= _MANY else _STEPS_OF_MANY
    for step in range(steps):
        right, down = [0.0] * count, [0.0] * count
        _repel(xs, ys, ideal, right, down)
        _attract(xs, ys, ideal, edges, right, down)
        most = radius / 4 * (1 - step / steps) + _LEAST
        for place in range(count):
            length = hypot(right[place], down[place]) or 1.0
            by = min(length, most) / length
            xs[place] += right[place] * by
            ys[place] += down[place] * by

    return list(zip(xs, ys, strict=True))


def _repel(
    xs: list[float], ys: list[float], ideal: float, right: list[float], down: list[float]
) -> None:
    reach = _REACH * ideal
    for one, other in _near(xs, ys, reach):
        across, along = xs[one] - xs[other], ys[one] - ys[other]
        # two agents at the same position separate, the first to the right
        square = across * across + along * along or _LEAST
        across = across or _LEAST
        if square < reach * reach:
            force = ideal * ideal / square
            right[one] += across * force
            down[one] += along * force
            right[other] -= across * force
            down[other] -= along * force


def _attract(
    xs: list[float],
    ys: list[float],
    ideal: float,
    edges: Edges,
    right: list[float],
    down: list[float],
) -> None:
    for one, other in edges:
        across, along = xs[one] - xs[other], ys[one] - ys[other]
        force = hypot(across, along) / ideal / 2
        right[one] -= across * force
        down[one] -= along * force
        right[other] += across * force
        down[other] += along * force


def _near(xs: list[float], ys: list[float], reach: float) -> Iterator[tuple[int, int]]:
    """Yield each pair that may be within a distance, once."""
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, (x, y) in enumerate(zip(xs, ys, strict=True)):
        cells[int(x // reach), int(y // reach)].append(place)

    for (column, row), here in cells.items():
        for number, one in enumerate(here):
            for other in here[number + 1 :]:
                yield one, other
        for across, along in ((1, 0), (-1, 1), (0, 1), (1, 1)):
            for other in cells.get((column + across, row + along), ()):
                for one in here:
                    yield one, other
