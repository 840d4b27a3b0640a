"""A clock that stands still."""

from datetime import UTC, datetime, timedelta, timezone

from prism.agents import SocialAgent
from prism.statechart import social_media_chart
from prism.testing import FrozenClock


def test_time_passes_only_when_the_test_moves_it() -> None:
    """The clock shows its start until it is moved by ticks, seconds or a timedelta."""
    clock = FrozenClock()
    assert clock() == clock() == datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    clock.tick()
    clock.tick(2)
    clock.advance(1.5)
    clock.advance(timedelta(hours=1))
    assert clock.now == datetime(2026, 1, 1, 1, 3, 1, 500_000, tzinfo=UTC)


def test_time_can_be_set() -> None:
    """Any time can be shown, as UTC; one without a zone is taken as UTC."""
    clock = FrozenClock(datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))))
    assert clock.now == datetime(2030, 1, 1, 10, tzinfo=UTC)
    clock.at(datetime(1999, 12, 31))
    assert clock.now == datetime(1999, 12, 31, tzinfo=UTC)


def test_records_have_the_time_of_the_clock() -> None:
    """A chart with this clock stamps its records with it."""
    clock, agent = FrozenClock(), SocialAgent("ada")
    chart = social_media_chart(clock=clock)
    chart.fire(agent, "feed_ready")
    clock.tick()
    chart.fire(agent, "sees_post")
    assert [record.timestamp.minute for record in agent.state_history] == [0, 1]
