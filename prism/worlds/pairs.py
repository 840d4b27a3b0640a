"""Pairs of places, from which every network is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import isqrt

from prism.errors import FieldValueError
from prism.randomness import RandomStream

__all__ = ["random_pairs", "rewired_pairs", "ring_pairs", "scale_free_pairs"]

Pair = tuple[int, int]
"""Places of two agents that are connected."""


def ring_pairs(size: int, neighbours: int) -> list[Pair]:
    """Return the connections of a ring, beginning with direct neighbours.

    Raises:
        FieldValueError: If the number of neighbours is odd, or too large.
    """
    if neighbours % 2 or not 2 <= neighbours < size:
        raise FieldValueError(
            f"neighbours must be even, at least 2 and below the number of agents, {size}; "
            f"got {neighbours}"
        )
    return [
        (place, (place + away) % size)
        for away in range(1, neighbours // 2 + 1)
        for place in range(size)
    ]


def rewired_pairs(
    size: int, pairs: Sequence[Pair], rewired: float, stream: RandomStream
) -> list[Pair]:
    """Return connections, some of which lead to a random agent instead (Watts and Strogatz 1998).

    Args:
        size: Number of agents.
        pairs: The connections.
        rewired: Probability that a connection is rewired, from 0 to 1.
        stream: Random numbers.
    """
    links: list[set[int]] = [set() for _ in range(size)]
    for one, other in pairs:
        links[one].add(other)
        links[other].add(one)

    result = []
    for one, other in pairs:
        target = other
        # an agent that is connected to all others cannot be rewired
        if stream.chance(rewired) and len(links[one]) < size - 1:
            while target == one or target in links[one]:
                target = stream.index(size)
            links[one].remove(other)
            links[other].remove(one)
            links[one].add(target)
            links[target].add(one)

        result.append((one, target))

    return result


def scale_free_pairs(size: int, links: int, exponent: float, stream: RandomStream) -> list[Pair]:
    """Return a network whose numbers of connections follow a power law (Price 1976).

    Each agent connects to some earlier agents: with probability ``1 / (exponent - 1)`` to the end
    of a random earlier connection (the copying of Kumar et al. 2000), or else to any of them. With
    m connections each, the share of agents with k incoming connections falls as ``(k + a) **
    -exponent`` with ``a = m * (exponent - 2)``; an exponent of 3 is the network of Barabási and
    Albert (1999).

    Args:
        size: Number of agents.
        links: Number of connections.
        exponent: Of the power law, above 2.
        stream: Random numbers.

    Returns:
        Pairs, whose first agent made the connection.
    """
    copying = 1 / (exponent - 1)
    pairs: list[Pair] = []
    chosen_before: list[int] = []
    for one in range(1, size):
        # the first agents have few predecessors; later ones make up for their missing connections
        share = (links - len(pairs)) / (size - one)
        wanted = min(one, int(share) + stream.chance(share % 1))
        chosen: dict[int, None] = {}
        while len(chosen) < wanted:
            copies = chosen_before and stream.chance(copying)
            chosen[stream.choice(chosen_before) if copies else stream.index(one)] = None

        pairs += [(one, other) for other in chosen]
        chosen_before += chosen

    return pairs


def random_pairs(size: int, links: int, stream: RandomStream) -> list[Pair]:
    """Return a number of pairs, all equally likely (Erdős and Rényi 1959)."""
    numbers = stream.sample(range(size * (size - 1) // 2), links)
    return [_pair_numbered(number) for number in numbers]


def _pair_numbered(number: int) -> Pair:
    """Return the pair with a number among (1, 0), (2, 0), (2, 1), (3, 0) and so on."""
    one = (1 + isqrt(1 + 8 * number)) // 2
    return one, number - one * (one - 1) // 2


def grid_pairs(width: int, height: int, steps: Sequence[Pair]) -> Iterator[Pair]:
    """Yield the connections of a grid: from each place those at some steps, right and down."""
    for row, column in product(range(height), range(width)):
        for right, down in steps:
            x, y = column + right, row + down
            if 0 <= x < width and y < height:
                yield row * width + column, y * width + x
