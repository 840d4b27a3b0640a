"""Time inside a simulation."""

from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from time import time
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from prism import Run
from prism.errors import InputError
from prism.runlog import RunLog, SimulatedClock

zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
starts = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=zones)


@given(starts, st.lists(st.integers(0, 30), max_size=6))
def test_a_tick_takes_so_many_seconds(start: datetime, rounds: list[int]) -> None:
    """The clock shows its start plus a minute a tick, or what it was given, as text and seconds."""
    assert SimulatedClock().seconds_per_tick == 60
    clock = SimulatedClock(start, 90)
    for number, ticks in enumerate(rounds, start=1):
        before = clock()
        clock.begin_round(number)
        assert (clock(), clock.round, clock.tick) == (before, number, 0)
        for _ in range(ticks):
            clock.advance()
        assert (clock.round, clock.tick) == (number, ticks)
    now = start + timedelta(seconds=90 * sum(rounds))
    assert clock() == now.timestamp()
    assert clock.moment.stamp["timestamp"].endswith("Z")
    assert datetime.fromisoformat(clock.moment.stamp["timestamp"]) == now


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (datetime(2026, 7, 1, 12, 0), "2026-07-01T12:00:00Z"),
        (datetime(2026, 7, 1, 12, 0, tzinfo=UTC), "2026-07-01T12:00:00Z"),
        (datetime(2026, 7, 1, 12, 0, tzinfo=timezone(timedelta(hours=2))), "2026-07-01T10:00:00Z"),
        (datetime(2026, 7, 1, 12, 0, 0, 500_000, tzinfo=UTC), "2026-07-01T12:00:00.500000Z"),
    ],
)
@pytest.mark.usefixtures("_in_tokyo")
def test_the_text_is_utc_whatever_the_start(start: datetime, expected: str) -> None:
    """A start is shown in UTC; without a zone it counts as UTC, whatever the local time zone."""
    clock = SimulatedClock(start)
    assert clock.moment.stamp["timestamp"] == expected
    assert clock() == datetime.fromisoformat(expected).timestamp()


def test_round_and_tick_are_bound_temporarily() -> None:
    """Round and tick are bound in structlog's context, which is restored afterwards."""
    clock, context = SimulatedClock(), structlog.contextvars.get_contextvars
    clock.advance()
    assert context() == {}
    with structlog.contextvars.bound_contextvars(round="mine", other=1):
        with clock.bound():
            assert context() == {"round": 0, "tick": 1, "other": 1}
            clock.begin_round(4)
            before = clock.moment
            clock.advance()
            assert context() == {"round": 4, "tick": 1, "other": 1}
            with clock.at(before):
                assert context()["tick"] == 0
            assert context()["tick"] == 1
        clock.advance()
        assert context() == {"round": "mine", "other": 1}


def test_a_clock_that_only_tells_the_time_is_refused(tmp_path: Path) -> None:
    """A run and its log also need round and tick."""
    only_time: Any = time
    for make in (partial(RunLog, tmp_path / "events.jsonl"), partial(Run, "rumour", 3)):
        with pytest.raises(InputError, match="'clock': must be a SimulatedClock, got <built-in"):
            make(clock=only_time)
