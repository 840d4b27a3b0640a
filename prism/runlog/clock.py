"""Time inside a simulation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS_PER_TICK = 60


class SimulatedClock:
    """A clock that only the simulation moves: one minute a tick, from a fixed start.

    Calling it gives seconds since the epoch, so it can serve as a chart's ``clock``. Two runs of the same
    simulation read the same times from it, which a real clock never gives.

    Args:
        start: Time at which the first round begins; one without a zone is taken as UTC.

    Attributes:
        round: Current round, counted from 1; 0 before the first.
        tick: Current tick of the round, counted from 1; 0 before the first.
        timestamp: Current time as ISO 8601 text, such as ``2026-01-01T00:07:00Z``.
        stamp: All three, as they stand in every line of a log.
    """

    def __init__(self, start: datetime = DEFAULT_START) -> None:
        self._start = start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)
        self._elapsed = 0
        self._set(0, 0)

    def begin_round(self, number: int) -> None:
        """Begin a round; time stands still until its first tick."""
        self._set(number, 0)

    def advance(self) -> None:
        """Let one tick pass."""
        self._elapsed += SECONDS_PER_TICK
        self._set(self.round, self.tick + 1)

    def __call__(self) -> float:
        """Give the current time in seconds since the epoch."""
        return self._seconds

    def _set(self, round_number: int, tick: int) -> None:
        self.round = round_number
        self.tick = tick
        now = self._start + timedelta(seconds=self._elapsed)
        self._seconds = now.timestamp()
        self.timestamp = now.isoformat().replace("+00:00", "Z")
        self.stamp = {"timestamp": self.timestamp, "round": self.round, "tick": self.tick}
