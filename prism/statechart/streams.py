"""Random numbers that belong to a key instead of to a moment.

A stream keyed by (seed, agent, round) gives the same numbers whichever agent is served first, on however
many machines, and after a resume. Numbers are blocks of keyed BLAKE2b (RFC 7693) over a counter.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from struct import unpack
from typing import Any

_BLOCK = 64
_TO_UNIT = 2.0**-53


class RandomStream:
    """A reproducible sequence of random numbers for one key.

    Args:
        seed: The run's seed.
        key: What the stream belongs to, such as an agent's id and a round number.
    """

    __slots__ = ("_counter", "_ready", "_seed")

    def __init__(self, seed: int, *key: str | int) -> None:
        self._seed = "\x1f".join(map(str, (seed, *key)))
        self._counter = 0
        self._ready: list[int] = []

    def random(self) -> float:
        """Draw a float, uniform in [0, 1), with 53 random bits."""
        if not self._ready:
            block = blake2b(f"{self._seed}\x1e{self._counter}".encode(), digest_size=_BLOCK).digest()
            self._ready = list(unpack("<8Q", block))
            self._counter += 1
        return (self._ready.pop() >> 11) * _TO_UNIT

    def index(self, length: int) -> int:
        """Draw an index, uniform in 0 .. length - 1."""
        return int(self.random() * length)

    def weighted_index(self, weights: Sequence[float]) -> int:
        """Draw an index with a probability proportional to its weight.

        Args:
            weights: Non-negative numbers, not all zero; they need not sum to one.
        """
        sums = list(accumulate(weights))
        point = self.random() * sums[-1]
        return next((number for number, total in enumerate(sums) if point < total), len(sums) - 1)


class AgentStreams:
    """The random numbers of agents' decisions, for reasoners that draw.

    Args:
        seed: Seed of the streams of agents that bring none of their own.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._streams: dict[str, RandomStream] = {}

    def of(self, agent: Any, name: str) -> RandomStream:
        """Give ``agent.random`` where that is a `RandomStream`, as in a simulation, else one kept under its name."""
        own = getattr(agent, "random", None)
        if isinstance(own, RandomStream):
            return own
        if name not in self._streams:
            self._streams[name] = RandomStream(self._seed, name)
        return self._streams[name]
