"""The usual time of answers, and when a second request is sent for a late one."""

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
"""Number of answers before the slowest 5 % can be identified."""

_MOST_KEPT = 256


class Pace:
    """The times of the latest answers, and the time after which another one is slow."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque()
        self._ordered: list[float] = []

    def note(self, seconds: float) -> None:
        """Record the time of an answer."""
        if len(self._latest) == _MOST_KEPT:
            oldest = self._latest.popleft()
            del self._ordered[bisect_left(self._ordered, oldest)]

        self._latest.append(seconds)
        insort(self._ordered, seconds)

    def note_given_up(self, seconds: float) -> None:
        """Record the time of a request that was abandoned without an answer."""
        limit = self.straggles_after()
        # without requests that lose to their hedges, slow answers would seem to become rarer, while
        # a request that was abandoned early reveals nothing
        if limit is not None and seconds > limit:
            self.note(seconds)

    def straggles_after(self) -> float | None:
        """Return the seconds after which a request is hedged; None if too little is known."""
        if len(self._ordered) < FEWEST_SEEN:
            return None
        return self._ordered[int(HEDGE_PERCENTILE * len(self._ordered))]
