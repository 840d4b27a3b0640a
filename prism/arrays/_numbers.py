"""Agents by number, values for them, and their random numbers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prism.errors import FieldTypeError, FieldValueError

Agents: TypeAlias = NDArray[np.integer[Any]]
"""Agents by number; the first of a world is 0."""

Mask: TypeAlias = NDArray[np.bool_]
"""A truth value for each of some agents."""


_GOLDEN = 0x9E3779B97F4A7C15
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def checked(who: ArrayLike, size: int) -> Agents:
    """Return agents as an array of their numbers.

    Raises:
        FieldTypeError: If they are truth values, or no numbers at all.
        FieldValueError: If a number is no agent's.
    """
    numbers = np.asarray(who)
    if not numbers.size:
        return np.empty(0, np.int32)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        kind = f"{numbers.dtype} of the shape {numbers.shape}"
        raise FieldTypeError(f"agents are a row of numbers, np.flatnonzero(mask) of a mask: {kind}")
    # numpy would count negative numbers from the end
    if numbers.min() < 0 or numbers.max() >= size:
        wrong = numbers[(numbers < 0) | (numbers >= size)][0]
        raise FieldValueError(f"there is no agent {wrong}: they are numbered 0 to {size - 1}")
    return numbers


def for_each(values: ArrayLike, number: int, what: str) -> NDArray[Any]:
    """Return a value for each of so many agents; a single value serves all.

    Raises:
        FieldValueError: If there is another number of them.
    """
    array = np.asarray(values)
    if array.ndim and array.shape != (number,):
        raise FieldValueError(
            f"{what}: there must be {number} values, one for each agent, got the shape "
            f"{array.shape}: index columns by the agents, as in self.trust[agents]"
        )
    return np.broadcast_to(array, number)


def times_named(who: Agents) -> NDArray[np.int64]:
    """Return for each naming of an agent how often it was named before."""
    if (who[1:] > who[:-1]).all():
        return np.zeros(len(who), np.int64)
    indices = order = np.arange(len(who))
    if (who[1:] < who[:-1]).any():
        # sorting values takes a seventh of the time of sorting indices
        who, order = np.divmod(np.sort(who.astype(np.int64) * len(who) + indices), len(who))
    begin = np.flatnonzero(np.append(True, who[1:] != who[:-1]))
    times = np.empty(len(who), np.int64)
    times[order] = indices - np.repeat(begin, np.diff(begin, append=len(who)))
    return times


class Population:
    """Agents by number, each of which has random numbers of its own in every round.

    Args:
        size: Number of agents.
        seed: Seed of every random number.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size: int = size
        self.seed: int = seed.__index__()
        self.round: int = 0
        self.agents: Agents = np.arange(size, dtype=np.int32)
        self.agents.flags.writeable = False
        self._keys = _words(self.agents.astype(np.uint64), self.seed % 2**64)
        self._draws = 0

    def random(self, who: ArrayLike) -> NDArray[np.float64]:
        """Draw a number in [0, 1) for each of some agents.

        It depends on the seed, the round, how many draws were made before in the round, and the
        agent, but not on who else draws. An agent that is named twice gets two numbers.
        """
        who = checked(who, self.size)
        self._draws += 1
        return self._drawn(who, times_named(who))

    def generator(self, purpose: str) -> np.random.Generator:
        """Return numpy's generator for a purpose, by seed and round; twice the same one."""
        return np.random.default_rng([self.seed % 2**64, self.round, *purpose.encode()])

    def in_order(self, who: ArrayLike) -> Agents:
        """Return agents in the random order of the round."""
        who = checked(who, self.size)
        return who[np.argsort(_words(self._keys[who], self.round << 40))]

    def _drawn(self, who: Agents, times: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the uniform numbers of a draw; further ones of an agent have other times."""
        number = (self.round << 40) + (self._draws << 24)
        return np.asarray((_words(self._keys[who], number + times) >> 11) * 2.0**-53)


def _words(keys: NDArray[np.uint64], numbers: int | NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return random words, by number those of splitmix64 for each key."""
    steps = np.atleast_1d(numbers).astype(np.uint64) * np.uint64(_GOLDEN)
    result: NDArray[np.uint64] = keys + steps
    for shift, factor in _STEPS:
        result ^= result >> np.uint64(shift)
        result *= np.uint64(factor)
    result ^= result >> np.uint64(31)
    return result
