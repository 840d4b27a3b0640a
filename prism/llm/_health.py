"""What is known of a host's health: whether to ask it at all, and how much at once."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from random import uniform
from time import monotonic

FAILURES_TO_OPEN = 5
"""More than the attempts of one question, so that one that fails does not open the breaker."""

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0

PROBE_SECONDS = 10.0
"""How long others wait for a probe, which may take longer while a server loads the model."""

FIRST_HOLD_SECONDS = 0.2
LONGEST_HOLD_SECONDS = 5.0
LONGEST_RETRY_AFTER = 30.0

LONGEST_BUSY_SECONDS = 30.0
"""A host that has answered nothing for so long, and refuses a lone question, counts as failing."""

_ROUNDS_TO_GROW = 5
"""How often the limit has to be filled with answers before one question more is tried."""


class Traffic:
    """What is under way on one server, whatever models it is asked for.

    Args:
        limit: How many questions may be under way at once.

    Attributes:
        limit: How many questions may be under way at once.
        in_flight: Questions under way.
        doubts: Questions that it gave no usable answer to, and that are being asked elsewhere to
            see whose fault that was.
        throttle: How much it takes.
    """

    def __init__(self, limit: int = 1) -> None:
        self.limit: int = limit
        self.in_flight: int = 0
        self.doubts: int = 0
        self.throttle: Throttle = Throttle()


class CircuitBreaker:
    """Decides whether a host should be asked (Nygard, "Release It!", 2007).

    Closed, it lets every question through. A few failures in a row open it: the host is not asked
    for a pause. Then it is half-open: one question is let through as a probe. If that succeeds the
    breaker closes, if it fails the breaker opens for twice as long. Questions that were under way
    when it opened can neither make the pause longer nor end the probe. Others may wait for the
    probe's outcome for a while, and, if there is patience, for the next probe until the host has
    failed for too long.

    Args:
        clock: Returns a time in seconds that only grows.
        first_pause: Seconds of the first pause.
        probe_wait: Seconds that others may wait for a probe.
        patience: Seconds after it has opened in which questions wait, whatever the probes show.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        *,
        first_pause: float = FIRST_PAUSE_SECONDS,
        probe_wait: float = PROBE_SECONDS,
        patience: float = 0.0,
    ) -> None:
        self._clock = clock
        self._first_pause = first_pause
        self._probe_wait = probe_wait
        self._patience = patience
        self._failures = 0
        self._pause = first_pause
        self._open_until: float | None = None
        self._probe_began: float | None = None
        self._patient_until = 0.0

    def allows(self) -> bool:
        """Return True if a question may be put now."""
        if self._open_until is None:
            return True
        return self._probe_began is None and self._clock() >= self._open_until

    def is_open(self) -> bool:
        """Return True if it is open or half-open."""
        return self._open_until is not None

    def fails_fast(self) -> bool:
        """Return True if questions should fail now instead of waiting for the host."""
        if self._open_until is None:
            return False

        now = self._clock()
        is_probed = self._probe_began is not None and now < self._probe_began + self._probe_wait
        return not is_probed and now >= self._patient_until

    def seconds_left(self) -> float:
        """Return the seconds until it changes by itself: by a pause, a probe's wait or patience."""
        if self._open_until is None:
            return 0.0

        now = self._clock()
        changes = (
            self._open_until if self._probe_began is None else self._probe_began + self._probe_wait
        )

        return min((end - now for end in (changes, self._patient_until) if end > now), default=0.0)

    def asked(self) -> bool:
        """Note that a question is under way; return True if it is the probe."""
        if self._open_until is None:
            return False
        self._probe_began = self._clock()
        return True

    def succeeded(self) -> None:
        """Note an answer: the breaker closes."""
        self._failures = 0
        self._pause = self._first_pause
        self._open_until = None
        self._probe_began = None

    def failed(self, *, probe: bool = False) -> None:
        """Note a failure; enough of them in a row, or a failed probe, open the breaker.

        Args:
            probe: What `asked` returned for the question.
        """
        self._failures += 1
        if self._open_until is None:
            if self._failures >= FAILURES_TO_OPEN:
                now = self._clock()
                self._open_until = now + self._pause
                self._patient_until = now + self._patience
        elif probe:
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            self._open_until = self._clock() + self._pause
            self._probe_began = None

    def abandoned(self, *, probe: bool = False) -> None:
        """Note that a question ended without showing anything about the host.

        Args:
            probe: What `asked` returned for the question.
        """
        if probe:
            self._probe_began = None


class Throttle:
    """Finds how many questions at once a host takes, from those that it refuses because it is busy.

    A refusal sets the limit to the number of other questions under way, for these the host has
    taken; answers raise it again, one by one (additive increase, as in Jacobson, "Congestion
    avoidance and control", 1988). Where none is under way, or the host asks for a pause, it is
    put on hold: nothing is asked for a while that grows with each refusal.

    Args:
        clock: Returns a time in seconds that only grows.
        first_hold: Most seconds of the first hold; the jitter makes them fewer.
        longest_busy: Seconds without any answer after which a refusal is a failure.
    """

    def __init__(
        self,
        clock: Callable[[], float] = monotonic,
        *,
        first_hold: float = FIRST_HOLD_SECONDS,
        longest_busy: float = LONGEST_BUSY_SECONDS,
    ) -> None:
        self._clock = clock
        self._first_hold = first_hold
        self._longest_busy = longest_busy
        self._limit = inf
        self._answers = 0
        self._refusals = 0
        self._busy_since: float | None = None
        self._hold_until = 0.0

    def allows(self, in_flight: int) -> bool:
        """Return True if one question more may be put besides those under way."""
        if in_flight >= self._limit:
            return False
        return not self._hold_until or self._clock() >= self._hold_until

    def seconds_left(self) -> float:
        """Return the seconds until the hold is over."""
        return max(0.0, self._hold_until - self._clock()) if self._hold_until else 0.0

    def answered(self) -> None:
        """Note an answer: the host takes as many as are under way."""
        if self._limit == inf:
            return

        self._refusals, self._busy_since = 0, None
        self._answers += 1
        if self._answers >= _ROUNDS_TO_GROW * self._limit:
            self._limit += 1
            self._answers = 0

    def refused(self, others: int) -> bool:
        """Note a refusal; return True if it shows that the host fails.

        Args:
            others: Questions under way besides the one that was refused.
        """
        now = self._clock()
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
        """Put the host on hold, unless it is for longer already.

        Args:
            seconds: For how long, half a minute at most.
            jitter: Most seconds to add at random, so that several runs do not come back together;
                as for a first refusal by default.
        """
        pause = min(seconds, LONGEST_RETRY_AFTER) + uniform(
            0, self._first_hold if jitter is None else jitter
        )
        self._hold_until = max(self._hold_until, self._clock() + pause)
