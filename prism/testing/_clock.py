"""A clock that stands still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from prism.runlog._clock import DEFAULT_START, SECONDS_PER_TICK


class FrozenClock:
    """A clock that moves only when it is told to; calling it gives seconds, so it serves as a chart's ``clock``.

    Args:
        start: Time that it shows first; one without a zone is taken as UTC.

    Attributes:
        now: Time that it shows, in UTC.
    """

    def __init__(self, start: datetime = DEFAULT_START) -> None:
        self.at(start)

    def __call__(self) -> float:
        """Return the time in seconds since the epoch."""
        return self.now.timestamp()

    def tick(self, ticks: int = 1) -> None:
        """Let ticks pass, each a minute long, as in a simulation."""
        self.advance(ticks * SECONDS_PER_TICK)

    def advance(self, time: timedelta | float) -> None:
        """Let some time pass.

        Args:
            time: How long, as a timedelta or in seconds.
        """
        self.now += time if isinstance(time, timedelta) else timedelta(seconds=time)

    def at(self, time: datetime) -> None:
        """Show a given time; one without a zone is taken as UTC."""
        self.now: datetime = (
            time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        )
