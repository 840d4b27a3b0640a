"""Random numbers that depend on a key, not on the order in which they are drawn.

A stream keyed by (seed, agent, round) gives the same numbers whichever agent comes first, and after
a resumed run. Its key is 64 bits of BLAKE2b (RFC 7693), and its numbers are those of splitmix64
(Steele, Lea and Flood 2014) from there on: a counter, mixed, so that any of them can be had without
those before it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, MutableSequence, Sequence
from functools import lru_cache
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import accumulate, chain
from math import inf, isfinite
from operator import index
from struct import unpack
from sys import byteorder
from typing import Any, TypeVar

from prism.randomness._distributions import Distributions, require

_ItemT = TypeVar("_ItemT")

GOLDEN: int = 0x9E3779B97F4A7C15
"""The step of splitmix64: 2**64 divided by the golden ratio, made odd."""

WORD: int = 2**64 - 1
"""All bits of a word of 64 bits."""

# the factors with which splitmix64 mixes a word of 64 bits
_ONE, _OTHER = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_TO_UNIT = 2.0**-53
_STEPS_BACK = pow(GOLDEN, -1, 2**64)
_AT_ONCE = 2048
_ONE_OF_TWO_WORDS = (1).to_bytes(16, "little")
_LOW_WORDS = slice(int(byteorder == "big"), None, 2)

Taken = tuple[int, float]
"""A number that was drawn: its place in the sequence, and the number."""


def keys_of(number: int, seed: int, *key: str | int) -> tuple[int, ...]:
    """Return so many keys of 64 bits, 8 at most, for a seed and the owner of what is drawn."""
    # unlike `str`, `ascii` tells a text from a number, and is the same in every version of Python
    digest = blake2b(ascii((index(seed), *key)).encode(), digest_size=8 * number).digest()
    return unpack(f"<{number}Q", digest)


def mixed(number: int) -> int:
    """Return the 64 bits that splitmix64 makes of a number."""
    number &= WORD
    number = ((number ^ (number >> 30)) * _ONE) & WORD
    number = ((number ^ (number >> 27)) * _OTHER) & WORD
    return number ^ (number >> 31)


def all_mixed(numbers: Sequence[int], step: int = 0) -> list[int]:
    """Return what `mixed` makes of each 64-bit number plus a step, all computed at once.

    All numbers are laid side by side in one large integer, 128 bits apart so that no product
    reaches the next. So a few operations of Python's, each a loop in C, serve them all.
    """
    if len(numbers) > _AT_ONCE:
        # what fits into the processor's cache is computed in two thirds of the time
        parts = (numbers[at : at + _AT_ONCE] for at in range(0, len(numbers), _AT_ONCE))
        return [*chain.from_iterable(all_mixed(part, step) for part in parts)]

    ones, word = _filled(len(numbers))
    side_by_side = memoryview(bytearray(16 * len(numbers)))
    side_by_side.cast("Q")[_LOW_WORDS] = memoryview(array("Q", numbers))
    number = int.from_bytes(side_by_side, byteorder)
    number = (number + ones * (step & WORD)) & word
    number = ((number ^ ((number >> 30) & word)) * _ONE) & word
    number = ((number ^ ((number >> 27) & word)) * _OTHER) & word
    # what comes from the next one stays above the 64 bits
    number ^= number >> 31
    laid_out = memoryview(number.to_bytes(16 * len(numbers), byteorder)).cast("Q")

    return laid_out[_LOW_WORDS].tolist()


@lru_cache(maxsize=4)
def _filled(lanes: int) -> tuple[int, int]:
    """Return a one in each of so many lanes, and 64 of them in each."""
    ones = int.from_bytes(_ONE_OF_TWO_WORDS * lanes, "little")
    return ones, ones * WORD


class RandomStream(Distributions):
    """A reproducible sequence of random numbers for one key.

    Args:
        seed: Seed of the run.
        key: Owner of the stream, such as an agent's id and a round number. The text ``"1"`` and the
            number 1 are different keys.
    """

    __slots__ = ("_at", "_key", "_put_back")

    def __init__(self, seed: int, *key: str | int) -> None:
        self.begin_at(keys_of(1, seed, *key)[0])

    def begin_at(self, key: int) -> None:
        """Turn this into the stream of another 64-bit key."""
        self._key = self._at = key
        self._put_back: list[Taken] | None = None

    def random(self) -> float:
        """Draw a float, uniform in [0, 1), with 53 random bits."""
        if self._put_back:
            return heappop(self._put_back)[1]

        number = self._at = (self._at + GOLDEN) & WORD
        number = ((number ^ (number >> 30)) * _ONE) & WORD
        number = ((number ^ (number >> 27)) * _OTHER) & WORD

        return ((number ^ (number >> 31)) >> 11) * _TO_UNIT

    def index(self, length: int) -> int:
        """Draw an index, uniform in 0 .. length - 1.

        Raises:
            ValueError: If there are none.
        """
        if not length >= 1:
            require(False, "index(length)", [length], "a length, 1 or more")
        return int(self.random() * length)

    def weighted_index(self, weights: Sequence[float]) -> int:
        """Draw an index with a probability proportional to its weight.

        Args:
            weights: Non-negative numbers, not all zero; they need not sum to one.

        Raises:
            ValueError: If they are not.
        """
        is_right = all(weight >= 0 for weight in weights) and 0 < total_of(weights) < inf
        wanted = "numbers, 0 or more and not all 0"
        require(is_right, "weighted_index(weights)", [weights], wanted)
        return index_at(self.random(), weights)

    def chance(self, probability: float) -> bool:
        """Return True with a probability from 0 to 1.

        Raises:
            ValueError: If it is no such number.
        """
        if not 0 <= probability <= 1:
            require(False, "chance(probability)", [probability], "a number from 0 to 1")
        return self.random() < probability

    def between(self, low: float, high: float) -> float:
        """Draw a float, uniform from ``low`` to below ``high``.

        Raises:
            ValueError: If ``low`` is above ``high``, or one of them is not finite.
        """
        is_right = isfinite(high - low) and low <= high
        require(is_right, "between(low, high)", [low, high], "two numbers, the lower one first")
        return low + (high - low) * self.random()

    def choice(self, items: Sequence[_ItemT]) -> _ItemT:
        """Draw one of several items, all equally likely.

        Raises:
            IndexError: If there are none.
        """
        try:
            return items[int(self.random() * len(items))]
        except IndexError:
            if len(items):
                raise
            raise IndexError("there is nothing to choose from: check first that there is") from None

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle a list in place."""
        for last in range(len(items) - 1, 0, -1):
            other = int(self.random() * (last + 1))
            items[last], items[other] = items[other], items[last]

    def shuffled(self, items: Iterable[_ItemT]) -> list[_ItemT]:
        """Return a new list of the items in a random order.

        Raises:
            TypeError: If they are a set, whose order differs between processes.
        """
        _refuse_set(items)
        order = list(items)
        self.shuffle(order)

        return order

    def sample(self, items: Iterable[_ItemT], number: int) -> list[_ItemT]:
        """Draw several of the items, none of them twice.

        From a sequence, the time depends only on how many are drawn.

        Raises:
            ValueError: If there are fewer.
            TypeError: If they are a set, whose order differs between processes.
        """
        _refuse_set(items)
        pool = items if isinstance(items, Sequence) else list(items)
        size = len(pool)
        if not 0 <= number <= size:
            raise ValueError(f"cannot draw {number} of {size} items")

        # the beginning of a shuffle, which notes only those that are no longer in their places
        moved: dict[int, int] = {}
        drawn = []
        for first in range(number):
            index = first + int(self.random() * (size - first))
            drawn.append(pool[moved.get(index, index)])
            moved[index] = moved.get(first, first)

        return drawn

    def take(self) -> Taken:
        """Draw a number with its place in the sequence, so that it can be put back."""
        if self._put_back:
            return heappop(self._put_back)
        number = self.random()
        return ((self._at - self._key) * _STEPS_BACK) & WORD, number

    def put_back(self, drawn: Taken) -> None:
        """Put a number back to be drawn again; the earliest comes first."""
        self._put_back = self._put_back or []
        heappush(self._put_back, drawn)


def _refuse_set(items: Iterable[Any]) -> None:
    if isinstance(items, (set, frozenset)):
        raise TypeError("a set has a different order in every process: pass a list, or sorted(...)")


def total_of(weights: Iterable[float]) -> float:
    """Return a sum that is the same on every Python; since 3.12, ``sum`` makes up for rounding."""
    total = 0.0
    for weight in weights:
        total += weight

    return total


def index_at(number: float, weights: Sequence[float]) -> int:
    """Return the index that a number falls on if each takes up its weight's part of 0 to 1.

    Args:
        number: From 0 to below 1.
        weights: Non-negative numbers, not all zero; they need not sum to one.
    """
    if len(weights) == 2:
        # as below, for the usual case
        first, second = weights
        return 0 if number * (first + second) < first else 1

    sums = list(accumulate(weights))
    point = number * sums[-1]
    return min(bisect_right(sums, point), len(sums) - 1)
