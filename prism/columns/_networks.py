"""Networks of agents in columns: the neighbours of each as places in one array."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numba import njit

from prism.columns._numbers import BY_11, GOLDEN, mixed
from prism.errors import FieldValueError, SimulationError
from prism.randomness import RandomStream
from prism.worlds import Network
from prism.worlds._networks import ring_pairs, small_world_pairs

_compiled = njit(cache=True, error_model="numpy")


class ColumnNetwork(Network[Any]):
    """The connections of agents, as two arrays.

    Args:
        agents: All agents.
        pairs: Places of connected agents.
        directed: Whether a connection leads one way only.
    """

    def __init__(self, agents: Any, pairs: Any, *, directed: bool = False) -> None:
        self.directed = directed
        self.has_changed = False
        self.width = None
        self._agents = agents
        given = pairs if isinstance(pairs, np.ndarray) else np.array(list(pairs), np.int64)
        given = np.ascontiguousarray(given.reshape(-1, 2), np.int64)
        if (given[:, 0] == given[:, 1]).any():
            raise FieldValueError("an agent cannot be connected to itself")
        self._offsets, self._places = _linked(len(agents), given, directed)

    def connect(self, one: Any, other: Any) -> None:
        """Refuse a new connection."""
        raise self._fixed(one, other, "connected")

    def disconnect(self, one: Any, other: Any) -> None:
        """Refuse to remove a connection."""
        raise self._fixed(one, other, "disconnected")

    def _fixed(self, one: Any, other: Any, verb: str) -> SimulationError:
        return SimulationError(
            f"{one!r} and {other!r} cannot be {verb}: a network in columns can only be "
            "replaced as a whole: set another one, or run this world without columns"
        )

    def wire(self) -> None:
        """Pass the connections to the run."""
        everybody: Any = self._agents
        everybody.host.take_network(self._offsets, self._places)

    def _by_agent(self) -> list[list[int]]:
        """Return the neighbours of each agent."""
        return [each.tolist() for each in np.split(self._places, self._offsets[1:-1])]

    def _take(self, links: Sequence[Collection[int]]) -> None:
        """Take the neighbours of each agent."""
        self._offsets = np.cumsum([0, *map(len, links)], dtype=np.int64)
        self._places = np.fromiter(chain.from_iterable(links), np.int32)

    _links: Any = property(_by_agent, _take)

    def __len__(self) -> int:
        """Return the number of connections."""
        return len(self._places) // (1 if self.directed else 2)


def _linked(size: int, pairs: Any, directed: bool) -> Any:
    """Return the start of each agent's neighbours, and their places, in the order of the pairs."""
    ends = pairs if directed else np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)
    # of a pair that is named twice the first is kept
    _, first = np.unique(ends[:, 0] * size + ends[:, 1], return_index=True)
    ends = ends[np.sort(first)]
    offsets = np.cumsum(np.bincount(ends[:, 0] + 1, minlength=size + 1))
    return offsets, ends[np.argsort(ends[:, 0], kind="stable"), 1].astype(np.int32)


def ring_twin(size: int, neighbours: int) -> Any:
    """Return the connections of a ring, as `ring_pairs` does."""
    if neighbours % 2 or not 2 <= neighbours < size:
        return ring_pairs(size, neighbours)
    places = np.arange(size, dtype=np.int64)
    layers = [
        np.stack([places, (places + away) % size], axis=1) for away in range(1, neighbours // 2 + 1)
    ]
    return np.concatenate(layers)


def small_world_twin(size: int, links: int, rewired: float, stream: RandomStream) -> Any:
    """Return a ring with some connections rewired, as `small_world_pairs` does."""
    if not links or links % size or 2 * (links // size) >= size:
        return small_world_pairs(size, links, rewired, stream)

    pairs = ring_twin(size, 2 * (links // size))
    at = _rewired(size, pairs, float(rewired), np.uint64(stream._at))
    stream._at = int(at)
    return pairs


_mixed = _compiled(mixed)


@_compiled
def _unit(at: Any) -> float:
    return np.float64(_mixed(at) >> BY_11) * 1.1102230246251565e-16


@_compiled
def _key(size: int, one: int, other: int) -> int:
    return min(one, other) * size + max(one, other)


@_compiled
def _rewired(size: int, pairs: Any, rewired: float, at: Any) -> Any:
    """Rewire connections in place, and return the position of the random stream."""
    degrees = np.zeros(size, np.int64)
    links: set[int] = set()
    for one, other in pairs:
        links.add(_key(size, one, other))
        degrees[one] += 1
        degrees[other] += 1

    for each in range(len(pairs)):
        one, other = pairs[each]
        at = at + GOLDEN
        if not (_unit(at) < rewired and degrees[one] < size - 1):
            continue
        target = other
        while target == one or _key(size, one, target) in links:
            at = at + GOLDEN
            target = np.int64(_unit(at) * size)

        links.discard(_key(size, one, other))
        links.add(_key(size, one, target))
        degrees[other] -= 1
        degrees[target] += 1
        pairs[each, 1] = target

    return at


TWINS: Mapping[Any, Callable[..., Any]] = {
    ring_pairs: ring_twin,
    small_world_pairs: small_world_twin,
}
"""Functions that make the same connections as those of `prism.worlds`, without a list."""
