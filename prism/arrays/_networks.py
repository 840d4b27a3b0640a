"""Networks of agents in arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prism.arrays._numbers import Agents, Population, checked
from prism.errors import FieldValueError


class ArrayNetwork:
    """The neighbours of all agents in one array (compressed sparse rows).

    Args:
        world: The world, in its `ArrayWorld.setup`.
        pairs: Pairs of connected agents, an array with two columns; of a graph of networkx
            ``np.array(graph.edges)``. A repeated pair counts once.

    Raises:
        FieldTypeError: If they are no whole numbers.
        FieldValueError: If an agent does not exist, or is connected to itself.
    """

    def __init__(self, world: Population, pairs: ArrayLike) -> None:
        self._world = world
        one, other = (checked(ends, world.size).astype(np.int64) for ends in np.transpose(pairs))
        if (one == other).any():
            raise FieldValueError("an agent cannot be connected to itself: leave such pairs out")

        links = np.concatenate([one * world.size + other, other * world.size + one])
        # in this order, neighbours do not depend on which pair came first
        links.sort()
        links = links[np.append(True, links[1:] != links[:-1])[: len(links)]]
        rows, others = np.divmod(links, world.size)
        self._others: Agents = others.astype(np.int32)
        self._degree: NDArray[np.int64] = np.bincount(rows, minlength=world.size)
        self._begin: NDArray[np.int64] = self._degree.cumsum() - self._degree

    def degree(self, who: Agents) -> NDArray[np.int64]:
        """Return how many neighbours each of some agents has."""
        return self._degree[checked(who, len(self._degree))]

    def pick(self, who: Agents) -> Agents:
        """Return a random neighbour of each of some agents.

        Raises:
            FieldValueError: If one has none.
        """
        drawn, degree = self._world.random(who), self.degree(who)
        if len(lonely := np.asarray(who)[degree == 0]):
            cure = "leave such agents out, agents[self.network.degree(agents) > 0]"
            raise FieldValueError(f"agent {lonely[0]} has no neighbour to pick: {cure}")
        return self._others[self._begin[who] + (drawn * degree).astype(np.int64)]

    def edges(self, who: Agents) -> tuple[Agents, Agents]:
        """Return each of some agents once for each of its neighbours, and these neighbours."""
        degree = self.degree(who)
        shifts = np.repeat(self._begin[who] - degree.cumsum() + degree, degree)
        return np.repeat(who, degree), self._others[np.arange(len(shifts)) + shifts]


def small_world(world: Population, neighbours: int, rewired: float) -> ArrayNetwork:
    """Connect agents in a ring and rewire some connections (Watts and Strogatz 1998).

    Args:
        world: The world, in its `ArrayWorld.setup`.
        neighbours: Neighbours of each agent in the ring, an even number, at most half of the agents
            if connections are rewired.
        rewired: Probability that a connection leads to a random agent instead, 0 to 1.

    Raises:
        FieldValueError: If a number is out of its range.
    """
    size, most = world.size, world.size / 2 if rewired else world.size - 1
    if neighbours % 2 or not (2 <= neighbours <= most and 0 <= rewired <= 1):
        raise FieldValueError(f"neighbours must be even, 2 to {most:.0f}, and rewired from 0 to 1")
    one = np.tile(np.arange(size), neighbours // 2)
    other = (one + np.repeat(np.arange(1, neighbours // 2 + 1), size)) % size
    generator = world.generator("small world")
    again = moved = np.flatnonzero(generator.random(len(one)) < rewired)
    # with a number at the end that no pair has
    codes = np.sort(np.append(np.delete(_numbers(one, other, size), moved), size**2))
    while len(again):
        other[again] = generator.integers(0, size, len(again))
        numbers, first = np.unique(_numbers(one[moved], other[moved], size), return_index=True)
        is_wrong = np.ones(len(moved), bool)
        is_wrong[first] = codes[np.searchsorted(codes, numbers)] == numbers
        again = moved[is_wrong | (one[moved] == other[moved])]

    return ArrayNetwork(world, np.stack([one, other], 1))


def _numbers(one: Agents, other: Agents, size: int) -> NDArray[np.int64]:
    """Return a number for each pair, whichever end comes first."""
    return np.minimum(one, other) * np.int64(size) + np.maximum(one, other)
