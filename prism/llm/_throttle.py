"""Asking a busy host no more than it takes."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from random import uniform
from time import monotonic

FIRST_HOLD_SECONDS = 0.2
LONGEST_HOLD_SECONDS = 5.0
LONGEST_RETRY_AFTER = 30.0

LONGEST_BUSY_SECONDS = 30.0
"""A host that has answered nothing for so long, and refuses a question that is alone, fails rather than is busy."""

_ROUNDS_TO_GROW = 5
"""How often the limit has to be filled with answers before one question more is tried."""


class Throttle:
    """Finds how many questions at once a host takes, from those that it refuses because it is busy.

    A refusal sets the limit to the number of other questions under way, for these the host has
    taken; answers raise it again, one by one (additive increase, as in Jacobson, "Congestion
    avoidance and control", 1988). Where none is under way, or the host asks for a pause, it is
    held: nothing is put to it for a while that grows with each refusal.

    Args:
        now: Gives a time in seconds that only grows.
        first_hold: Seconds of the first hold at the most; the jitter makes them fewer.
        longest_busy: Seconds without any answer after which a refusal is a failure.
    """

    def __init__(
        self,
        now: Callable[[], float] = monotonic,
        *,
        first_hold: float = FIRST_HOLD_SECONDS,
        longest_busy: float = LONGEST_BUSY_SECONDS,
    ) -> None:
        self._now = now
        self._first_hold = first_hold
        self._longest_busy = longest_busy
        self._limit = inf
        self._answers = 0
        self._refusals = 0
        self._busy_since: float | None = None
        self._held_until = 0.0

    def allows(self, in_flight: int) -> bool:
        """Return whether a question may be put besides those under way."""
        return in_flight < self._limit and (not self._held_until or self._now() >= self._held_until)

    def seconds_left(self) -> float:
        """Return the seconds until the hold is over."""
        return max(0.0, self._held_until - self._now()) if self._held_until else 0.0

    def answered(self) -> None:
        """Note an answer: the host takes what is put to it."""
        if self._limit == inf:
            return

        self._refusals, self._busy_since = 0, None
        self._answers += 1
        if self._answers >= _ROUNDS_TO_GROW * self._limit:
            self._limit += 1
            self._answers = 0

    def refused(self, others: int) -> bool:
        """Note a refusal, and tell whether it shows that the host fails.

        Args:
            others: Questions under way besides the one that was refused.
        """
        now = self._now()
        if self._busy_since is None:
            self._busy_since = now

        self._limit = max(1, min(others, self._limit))
        self._answers = 0
        if others:
            return False

        longest = min(self._first_hold * 2.0 ** min(self._refusals, 30), LONGEST_HOLD_SECONDS)
        self._refusals += 1
        self.hold(0, jitter=longest)

        return now - self._busy_since >= self._longest_busy

    def hold(self, seconds: float, *, jitter: float | None = None) -> None:
        """Let nothing be put to the host for a while, unless it is held for longer.

        Args:
            seconds: For how long, half a minute at the most.
            jitter: Seconds more at the most, so that several runs do not come back together; as for
                a first refusal by default.
        """
        pause = min(seconds, LONGEST_RETRY_AFTER) + uniform(
            0, self._first_hold if jitter is None else jitter
        )
        self._held_until = max(self._held_until, self._now() + pause)
