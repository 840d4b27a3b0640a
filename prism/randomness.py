"""Random numbers that depend on a key, not on the order in which they are drawn.

A stream keyed by (seed, agent, round) gives the same numbers whichever agent comes first, and after
a resumed run. The numbers are blocks of BLAKE2b (RFC 7693) over the key and a counter.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import accumulate
from struct import unpack
from typing import TypeVar

__all__ = ["RandomStream", "Taken", "index_at"]

ItemT = TypeVar("ItemT")

_BLOCK = 64
_NUMBERS_IN_BLOCK = 8
_TO_UNIT = 2.0**-53

Taken = tuple[int, float]
"""A number that was drawn: its place in the sequence, and the number."""


class RandomStream:
    """A reproducible sequence of random numbers for one key.

    Args:
        seed: Seed of the run.
        key: Owner of the stream, such as an agent's id and a round number.
    """

    __slots__ = ("_counter", "_put_back", "_ready", "_seed")

    def __init__(self, seed: int, *key: str | int) -> None:
        self._seed = "\x1f".join(map(str, (seed, *key)))
        self._counter = 0
        self._ready: list[int] = []
        self._put_back: list[Taken] | None = None

    def random(self) -> float:
        """Draw a float, uniform in [0, 1), with 53 random bits."""
        if self._put_back:
            return heappop(self._put_back)[1]

        if not self._ready:
            self._ready = self._next_block()

        return (self._ready.pop() >> 11) * _TO_UNIT

    def _next_block(self) -> list[int]:
        """Return the next numbers as they are hashed, the last to be drawn first."""
        key = f"{self._seed}\x1e{self._counter}".encode()
        self._counter += 1
        return list(unpack("<8Q", blake2b(key, digest_size=_BLOCK).digest()))

    def _several(self, number: int) -> list[float]:
        """Draw several floats at once: those that `random` would give one by one."""
        if self._put_back:
            return [self.random() for _ in range(number)]

        drawn = self._ready[::-1]
        while len(drawn) < number:
            drawn += reversed(self._next_block())

        self._ready = drawn[number:][::-1]
        return [(each >> 11) * _TO_UNIT for each in drawn[:number]]

    def index(self, length: int) -> int:
        """Draw an index, uniform in 0 .. length - 1."""
        return int(self.random() * length)

    def weighted_index(self, weights: Sequence[float]) -> int:
        """Draw an index with a probability proportional to its weight.

        Args:
            weights: Non-negative numbers, not all zero; they need not sum to one.
        """
        return index_at(self.random(), weights)

    def chance(self, probability: float) -> bool:
        """Return True with a probability from 0 to 1."""
        return self.random() < probability

    def between(self, low: float, high: float) -> float:
        """Draw a float, uniform from ``low`` to below ``high``."""
        return low + (high - low) * self.random()

    def choice(self, items: Sequence[ItemT]) -> ItemT:
        """Draw one of several items, each as likely as the others.

        Raises:
            IndexError: If there are none.
        """
        return items[int(self.random() * len(items))]

    def shuffled(self, items: Iterable[ItemT]) -> list[ItemT]:
        """Return items in a random order, as a new list; a set has no order to begin from.

        Raises:
            TypeError: If they are a set, whose order differs between processes.
        """
        if isinstance(items, (set, frozenset)):
            raise TypeError("a set has another order in every process: give a list, or sorted(...)")

        order = list(items)
        lasts = range(len(order) - 1, 0, -1)
        for last, number in zip(lasts, self._several(len(lasts)), strict=True):
            other = int(number * (last + 1))
            order[last], order[other] = order[other], order[last]

        return order

    def sample(self, items: Iterable[ItemT], number: int) -> list[ItemT]:
        """Draw several of the items, none of them twice.

        Raises:
            ValueError: If there are not so many.
            TypeError: If they are a set, whose order differs between processes.
        """
        order = self.shuffled(items)
        if not 0 <= number <= len(order):
            raise ValueError(f"cannot draw {number} of {len(order)} items")

        return order[:number]

    def take(self) -> Taken:
        """Draw a number with its place in the sequence, so that it can be put back."""
        if self._put_back:
            return heappop(self._put_back)
        number = self.random()
        return self._counter * _NUMBERS_IN_BLOCK - len(self._ready), number

    def put_back(self, taken: Taken) -> None:
        """Put a number back to be drawn again; of several, the earliest comes first."""
        self._put_back = self._put_back or []
        heappush(self._put_back, taken)


def index_at(number: float, weights: Sequence[float]) -> int:
    """Return the index that a number falls on if each takes up its weight's part of 0 to 1.

    Args:
        number: From 0 to below 1.
        weights: Non-negative numbers, not all zero; they need not sum to one.
    """
    sums = list(accumulate(weights))
    point = number * sums[-1]
    return min(bisect_right(sums, point), len(sums) - 1)
