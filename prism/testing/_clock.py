"""A clock that only the test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prism.runlog._clock import DEFAULT_START, SECONDS_PER_TICK


class FrozenClock:
    """A clock that only the test moves, for ``Statechart(..., clock=clock)``.

    Args:
        start: Time that the clock shows at first; UTC if it has no time zone.

    Attributes:
        now: Time that the clock shows, in UTC.
    """

    def __init__(self, start: datetime = DEFAULT_START) -> None:
        self.at(start)

    def __call__(self) -> float:
        """Return the time in seconds since the epoch."""
        return self.now.timestamp()

    def tick(self, ticks: int = 1) -> None:
        """Move the clock by a number of ticks, each a minute long, as in a simulation."""
        self.advance(ticks * SECONDS_PER_TICK)

    def advance(self, time: timedelta | float) -> None:
        """Move the clock by some time.

        Args:
            time: A timedelta, or seconds.
        """
        self.now += time if isinstance(time, timedelta) else timedelta(seconds=time)

    def at(self, time: datetime) -> None:
        """Set the clock to a time, in UTC if it has no time zone."""
        has_zone = time.tzinfo is not None
        self.now: datetime = time.astimezone(UTC) if has_zone else time.replace(tzinfo=UTC)
