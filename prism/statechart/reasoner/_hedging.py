"""How long answers usually take, and when one is so late that a second request is put."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from typing import Any


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until their connections are closed."""
    for task in tasks:
        task.cancel()

    await asyncio.gather(*tasks, return_exceptions=True)


HEDGE_PERCENTILE = 0.95
"""Dean and Barroso, "The tail at scale", 2013: a hedge from here on costs about 5 % more."""

FEWEST_SEEN = 20
"""Answers that have to be seen before one of twenty can be told to be late."""

_MOST_KEPT = 256


class Pace:
    """How long the latest answers took, and from when on another is a straggler."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque()
        self._ordered: list[float] = []

    def note(self, seconds: float) -> None:
        """Note how long an answer took."""
        if len(self._latest) == _MOST_KEPT:
            oldest = self._latest.popleft()
            del self._ordered[bisect_left(self._ordered, oldest)]

        self._latest.append(seconds)
        insort(self._ordered, seconds)

    def note_given_up(self, seconds: float) -> None:
        """Note how long a request had taken that was given up without an answer."""
        limit = self.straggles_after()
        # without those that lose to their hedges the stragglers would seem to become fewer, while
        # one that was given up early tells nothing
        if limit is not None and seconds > limit:
            self.note(seconds)

    def straggles_after(self) -> float | None:
        """Return the seconds after which a request is hedged; None while too little is known."""
        if len(self._ordered) < FEWEST_SEEN:
            return None
        return self._ordered[int(HEDGE_PERCENTILE * len(self._ordered))]
