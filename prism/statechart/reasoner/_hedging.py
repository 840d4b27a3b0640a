"""How long answers usually take, and a second request where one takes too long."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar


async def cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until their connections are closed."""
    for task in tasks:
        task.cancel()

    await asyncio.gather(*tasks, return_exceptions=True)


ResultT = TypeVar("ResultT")

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


async def first_success(
    tasks: list[asyncio.Task[ResultT]],
    hedge: Callable[[Callable[[], None]], Coroutine[Any, Any, ResultT]],
    seconds: float,
) -> asyncio.Task[ResultT]:
    """Wait for a request, and, once it has taken too long, for a hedge as well.

    What fails leaves the question to the other: a hedge only if it has been put by then. All tasks
    are over when this returns or raises: the one that comes second is cancelled.

    Args:
        tasks: The request; the hedge is appended.
        hedge: Makes the same request elsewhere; calls what it is given when it has a slot.
        seconds: When the hedge begins.

    Returns:
        The task that decides: the first success, or else the request.
    """
    (request,) = tasks
    is_put = False

    def note_put() -> None:
        nonlocal is_put
        is_put = True

    try:
        _, pending = await asyncio.wait(tasks, timeout=seconds)
        if pending:
            tasks.append(asyncio.create_task(hedge(note_put)))
            pending = set(tasks)

        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            # a hedge that was not put may also end first, as where the budget does not allow it
            if any(map(is_success, done)) or not (is_put or request in pending):
                break
    finally:
        await cancel(tasks)

    return next((task for task in tasks if is_success(task)), request)


def is_success(task: asyncio.Task[Any]) -> bool:
    """Return True if a task that is over has a result."""
    return not task.cancelled() and task.exception() is None
