"""Time inside a simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

DEFAULT_START = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS_PER_TICK = 60

_PLACE = ("round", "tick")


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant of a simulation.

    Args:
        time: The simulated time, in UTC.
        round: Round, counted from 1; 0 before the first.
        tick: Tick of the round, counted from 1; 0 before the first.

    Attributes:
        seconds: The time in seconds since the epoch.
        stamp: Time, round and tick as every line of a log has them.
    """

    time: datetime
    round: int = 0
    tick: int = 0
    seconds: float = field(init=False)
    stamp: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare, once for all readers, the forms in which this instant is written."""
        text = self.time.isoformat().replace("+00:00", "Z")
        object.__setattr__(self, "seconds", self.time.timestamp())
        object.__setattr__(
            self, "stamp", {"timestamp": text, "round": self.round, "tick": self.tick}
        )


class SimulatedClock:
    """A clock that only the simulation advances: one minute a tick, from a fixed start.

    Calling it returns seconds since the epoch, so it can be a chart's ``clock``. Two runs of the
    same simulation get the same times from it. A `RunLog` with this clock writes its time; other
    loggers get round and tick from structlog's context (``structlog.contextvars``).

    Args:
        start: Time at which the first round begins; in UTC if it has no time zone.

    Attributes:
        moment: The current instant.
    """

    def __init__(self, start: datetime = DEFAULT_START) -> None:
        aware = start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)
        self.moment: Moment = Moment(aware)
        self._start = self.moment.seconds
        self._is_bound = False

    def to_list(self) -> list[Any]:
        """Return the current instant as plain data, for `go_on_at`."""
        now = self.moment
        return [now.time.isoformat(), now.round, now.tick]

    def go_on_at(self, instant: Sequence[Any]) -> None:
        """Go on at an instant that `to_list` returned."""
        time, *place = instant
        self.moment = Moment(datetime.fromisoformat(time), *place)

    @property
    def round(self) -> int:
        """Current round, counted from 1; 0 before the first."""
        return self.moment.round

    @property
    def tick(self) -> int:
        """Current tick of the round, counted from 1; 0 before the first."""
        return self.moment.tick

    @property
    def ticks(self) -> int:
        """Ticks since the start."""
        return round((self.moment.seconds - self._start) / SECONDS_PER_TICK)

    @property
    def timestamp(self) -> str:
        """Current time as ISO 8601 text, such as ``2026-01-01T00:07:00Z``."""
        return str(self.moment.stamp["timestamp"])

    def begin_round(self, number: int) -> None:
        """Begin a round; the time does not change before its first tick."""
        self._show(Moment(self.moment.time, number))

    def advance(self) -> None:
        """Advance by one tick."""
        now = self.moment
        self._show(Moment(now.time + timedelta(seconds=SECONDS_PER_TICK), now.round, now.tick + 1))

    @contextmanager
    def at(self, moment: Moment) -> Iterator[None]:
        """Show another instant inside the block, to log what belongs to it."""
        now = self.moment
        self._show(moment)
        try:
            yield
        finally:
            self._show(now)

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Bind round and tick in structlog's context, and leave it as it was afterwards."""
        from structlog import contextvars

        before = contextvars.get_contextvars()
        self._is_bound = True
        self._show(self.moment)

        try:
            yield
        finally:
            self._is_bound = False
            contextvars.unbind_contextvars(*_PLACE)
            contextvars.bind_contextvars(
                **{name: before[name] for name in _PLACE if name in before}
            )

    def _show(self, moment: Moment) -> None:
        self.moment = moment
        if self._is_bound:
            from structlog.contextvars import bind_contextvars

            bind_contextvars(round=moment.round, tick=moment.tick)

    def __call__(self) -> float:
        """Return the current time in seconds since the epoch."""
        return self.moment.seconds
