"""Placing points on a line: near to where they want to be, in order, and not too close."""

from __future__ import annotations

from collections.abc import Sequence


def spread(
    wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]
) -> list[float]:
    """Place points on a line as near as can be to where they want to be, in order and with distances kept.

    The weighted sum of squared deviations is least: an isotonic regression, by pooling adjacent
    violators (Ayer et al., 1955).

    Args:
        wanted: Where each point wants to be.
        weights: How much it matters, each above 0.
        distances: Least distance from each point to the next; one fewer than points.
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)

    pools: list[tuple[float, float, int]] = []

    for place, weight, offset in zip(wanted, weights, offsets, strict=False):
        value, total, count = place - offset, weight, 1
        while pools and pools[-1][0] > value:
            other, other_total, other_count = pools.pop()
            value = (value * total + other * other_total) / (total + other_total)
            total, count = total + other_total, count + other_count

        pools.append((value, total, count))

    placed = [value for value, _, count in pools for _ in range(count)]

    return [value + offset for value, offset in zip(placed, offsets, strict=False)]


def within(least: float, most: float, wanted: Sequence[float], distance: float) -> list[float]:
    """Place points on a line as `spread` does, all of them between two bounds.

    Args:
        least: Lower bound.
        most: Upper bound.
        wanted: Where each point wants to be.
        distance: From each point to the next at the least, or less where there is no room for that.
    """
    distance = min(distance, (most - least) / max(1, len(wanted) - 1))
    placed = spread(wanted, [1.0] * len(wanted), [distance] * (len(wanted) - 1))
    slack = most - least - distance * (len(wanted) - 1)

    return [
        min(max(x, least + distance * number), least + distance * number + slack)
        for number, x in enumerate(placed)
    ]
