"""Leaving a failing host alone for a while."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

FAILURES_TO_OPEN = 5
"""More than one question makes before it gives up, so that a single one cannot keep the next from being asked."""

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0


class CircuitBreaker:
    """Tells whether a host should be asked (Nygard, "Release It!", 2007).

    After a few failures in a row it opens: the host is not asked for a pause. Then one question is let
    through as a probe. If that succeeds the breaker closes, if it fails the pause doubles. Questions that were
    under way when it opened cannot make the pause longer, nor end the probe.

    Args:
        now: Gives a time in seconds that only grows.
    """

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._failures = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._open_until: float | None = None
        self._probing = False

    def allows(self) -> bool:
        """Tell whether a question may be put now."""
        if self._open_until is None:
            return True
        return not self._probing and self._now() >= self._open_until

    def is_open(self) -> bool:
        """Tell whether the host is being left alone or probed."""
        return self._open_until is not None

    def seconds_left(self) -> float:
        """Give the seconds until the next probe."""
        return 0.0 if self._open_until is None else max(0.0, self._open_until - self._now())

    def asked(self) -> bool:
        """Note that a question is under way, and tell whether it is the probe."""
        self._probing = self._open_until is not None
        return self._probing

    def succeeded(self) -> None:
        """Note an answer: the host works."""
        self._failures = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._open_until = None
        self._probing = False

    def failed(self, *, probe: bool = False) -> None:
        """Note a failure; enough of them in a row, or a failed probe, open the breaker.

        Args:
            probe: What `asked` said of the question.
        """
        self._failures += 1
        if self._open_until is None:
            if self._failures >= FAILURES_TO_OPEN:
                self._open_until = self._now() + self._pause
        elif probe:
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            self._open_until = self._now() + self._pause
            self._probing = False

    def abandoned(self, *, probe: bool = False) -> None:
        """Note that a question was given up without telling anything about the host.

        Args:
            probe: What `asked` said of the question.
        """
        if probe:
            self._probing = False
