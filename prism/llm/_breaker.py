"""Leaving a failing host alone for a while."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

FAILURES_TO_OPEN = 5
"""More than one question makes before it gives up, so that a single one cannot keep the next from being asked."""

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0

PROBE_SECONDS = 10.0
"""How long others wait for a probe. It may itself take longer, as a server that has just come back loads the model."""


class CircuitBreaker:
    """Tells whether a host should be asked (Nygard, "Release It!", 2007).

    After a few failures in a row it opens: the host is not asked for a pause. Then one question is
    let through as a probe. If that succeeds the breaker closes, if it fails the pause doubles.
    Questions that were under way when it opened cannot make the pause longer, nor end the probe.
    Others may wait for the probe's outcome for a while, and, if there is patience, for the next
    probe until the host has failed for too long.

    Args:
        now: Gives a time in seconds that only grows.
        first_pause: Seconds of the first pause.
        probe_wait: Seconds that others may wait for a probe.
        patience: Seconds after it has opened in which it pays to wait for the host, whatever the
            probes say.
    """

    def __init__(
        self,
        now: Callable[[], float] = monotonic,
        *,
        first_pause: float = FIRST_PAUSE_SECONDS,
        probe_wait: float = PROBE_SECONDS,
        patience: float = 0.0,
    ) -> None:
        self._now = now
        self._first_pause = first_pause
        self._probe_wait = probe_wait
        self._patience = patience
        self._failures = 0
        self._pause = first_pause
        self._open_until: float | None = None
        self._probe_began: float | None = None
        self._awaited_until = 0.0

    def allows(self) -> bool:
        """Return whether a question may be put now."""
        if self._open_until is None:
            return True
        return self._probe_began is None and self._now() >= self._open_until

    def is_open(self) -> bool:
        """Return whether the host is being left alone or probed."""
        return self._open_until is not None

    def is_hopeless(self) -> bool:
        """Return whether it is open, the patience is over, and no probe is under way that it pays to wait for."""
        if self._open_until is None:
            return False

        now = self._now()
        is_probed = self._probe_began is not None and now < self._probe_began + self._probe_wait
        return not is_probed and now >= self._awaited_until

    def seconds_left(self) -> float:
        """Return the seconds until something changes by itself: a pause, the wait for a probe or the patience ends."""
        if self._open_until is None:
            return 0.0

        now = self._now()
        ends = (
            self._open_until if self._probe_began is None else self._probe_began + self._probe_wait
        )

        return min((end - now for end in (ends, self._awaited_until) if end > now), default=0.0)

    def asked(self) -> bool:
        """Note that a question is under way, and tell whether it is the probe."""
        if self._open_until is None:
            return False
        self._probe_began = self._now()
        return True

    def succeeded(self) -> None:
        """Note an answer: the host works."""
        self._failures = 0
        self._pause = self._first_pause
        self._open_until = None
        self._probe_began = None

    def failed(self, *, probe: bool = False) -> None:
        """Note a failure; enough of them in a row, or a failed probe, open the breaker.

        Args:
            probe: What `asked` said of the question.
        """
        self._failures += 1
        if self._open_until is None:
            if self._failures >= FAILURES_TO_OPEN:
                now = self._now()
                self._open_until = now + self._pause
                self._awaited_until = now + self._patience
        elif probe:
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            self._open_until = self._now() + self._pause
            self._probe_began = None

    def abandoned(self, *, probe: bool = False) -> None:
        """Note that a question was given up without telling anything about the host.

        Args:
            probe: What `asked` said of the question.
        """
        if probe:
            self._probe_began = None
