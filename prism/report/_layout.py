"""A deterministic layout of a network that puts connected agents near each other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import cos, pi, sin, sqrt

_STEPS = 20
_PULL = 0.45

Edges = tuple[tuple[int, int], ...]


@lru_cache(maxsize=8)
def spread(count: int, edges: Edges) -> Sequence[tuple[float, float]]:
    """Return a position for each agent, nearer to its neighbours than to others.

    Each agent is pulled from its place on a circle to the middle of its neighbours, as in Tutte's
    drawing (1963), so no random numbers are involved and two agents hardly ever coincide.

    Args:
        count: Number of agents.
        edges: Pairs of connected agents.
    """
    near: list[list[int]] = [[] for _ in range(count)]
    for one, other in edges:
        near[one].append(other)
        near[other].append(one)
    size, turn = sqrt(count), 2 * pi / (count or 1)
    circle = [(size * cos(turn * index), size * sin(turn * index)) for index in range(count)]
    points = circle
    for _ in range(_STEPS):
        points = [
            _pulled(home, [points[each] for each in others])
            for home, others in zip(circle, near, strict=True)
        ]
    return points


def _pulled(
    home: tuple[float, float], others: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    if not others:
        return home
    x, y = (sum(values) / len(others) for values in zip(*others, strict=True))
    return home[0] + _PULL * (x - home[0]), home[1] + _PULL * (y - home[1])
