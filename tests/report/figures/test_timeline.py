"""Tables on an axis, and stacked bars along it."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.report._figures.timeline import (
    MOST_MOMENTS,
    Timeline,
    are_many,
    rounds_timeline,
    stack,
    states_timeline,
    whole_numbers,
)


def counts(rounds: int, ticks: int) -> pl.DataFrame:
    """Make counts of two states, with as many agents in the first as the moment's number says."""
    moments = [(one, other) for one in range(1, rounds + 1) for other in range(1, ticks + 1)]
    rows = [
        (one, other, state, agents, agents / 1000)
        for place, (one, other) in enumerate(moments)
        for state, agents in (("a", place), ("b", 1000 - place))
    ]
    return pl.DataFrame(rows, schema=["round", "tick", "state", "agents", "share"], orient="row")


def intervals(timeline: Timeline) -> list[tuple[float, float]]:
    """Return the intervals from left to right, each once."""
    return timeline.table.select("begin", "end").unique().sort("begin").rows()


def assert_without_gaps(timeline: Timeline) -> None:
    """Each interval begins where the one before ends."""
    found = intervals(timeline)
    ends = [end for _, end in found]
    assert [begin for begin, _ in found[1:]] == pytest.approx(ends[:-1])


def test_a_tick_before_the_first_leaves_no_gap_in_other_rounds() -> None:
    """Where a treatment moves agents as a round begins, the rounds without it fill their place."""
    table = counts(4, 2)
    early = counts(1, 1).with_columns(round=pl.col("round") + 2, tick=pl.col("tick") - 1)
    timeline = states_timeline(pl.concat([table, early]).sort("round", "tick"), by_round=False)
    assert_without_gaps(timeline)
    found = intervals(timeline)
    assert found[:2] == [pytest.approx((0.5, 0.5 + 2 / 3)), pytest.approx((0.5 + 2 / 3, 1.5))]
    assert found[4] == pytest.approx((2.5, 2.5 + 1 / 3))
    assert len(found) == 9


@given(st.integers(1, 2000), st.integers(1, 3))
def test_there_are_never_too_many_moments(rounds: int, ticks: int) -> None:
    """A run of any length has few enough intervals, which cover all of it, and few labels."""
    table = counts(rounds, ticks)
    timeline = states_timeline(table, by_round=are_many(table))
    assert len(intervals(timeline)) <= MOST_MOMENTS
    assert_without_gaps(timeline)
    last = rounds if rounds > 1 else ticks
    assert intervals(timeline)[-1][1] == pytest.approx(last + 0.5)
    labels = list(timeline.labels or [])
    assert labels == sorted(set(labels))
    assert 1 <= len(labels) <= 21
    assert labels[-1] <= last


def test_many_rounds_are_drawn_together_as_means() -> None:
    """In a run of very many rounds several are drawn together, and say which."""
    table = counts(1000, 1)
    timeline = states_timeline(table, by_round=are_many(table))
    first = timeline.table.row(0, named=True)
    assert (first["when"], first["agents"]) == ("rounds 1 to 5", 2.0)
    assert timeline.title == "round (mean over its ticks, 5 rounds together)"


@pytest.mark.parametrize("rounds", [6, 1000])
def test_rounds_are_called_what_they_are(rounds: int) -> None:
    """The cycles of an agent alone are no rounds, on the axis and in each bar's own words."""
    table = counts(rounds, 1)
    timeline = states_timeline(table, by_round=are_many(table), unit="cycle")
    assert str(timeline.title).startswith("cycle")
    assert all(str(when).startswith("cycle") for when in timeline.table["when"])


@pytest.mark.parametrize("steps", [1, 7, 999])
def test_a_log_of_times_is_drawn_by_time(steps: int) -> None:
    """Each count lasts until the next, and the last is as wide as the shortest."""
    begin = datetime(2026, 3, 1, tzinfo=UTC)
    times = [begin + timedelta(minutes=step) for step in range(steps)]
    rows = [(time, "a", 3, 1.0) for time in times]
    table = pl.DataFrame(rows, schema=["time", "state", "agents", "share"], orient="row")
    timeline = states_timeline(table, by_round=are_many(table))
    assert timeline.is_time
    found = intervals(timeline)
    assert len(found) <= MOST_MOMENTS
    assert [begin for begin, _ in found[1:]] == [end for _, end in found[:-1]]
    assert all(end > begin for begin, end in found)


def test_counts_by_round_add_up() -> None:
    """Rounds that are drawn together have the sum of their counts, for each text."""
    table = pl.DataFrame(
        {"round": [1, 1, 2, 481], "chosen": ["a", "b", "a", "a"], "asked": [1, 2, 3, 4]}
    )
    timeline = rounds_timeline(table)
    assert timeline.table.select("when", "chosen", "asked").rows() == [
        ("rounds 1 to 3", "a", 4),
        ("rounds 1 to 3", "b", 2),
        ("rounds 481 to 481", "a", 4),
    ]


COUNTS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.sampled_from("abc")), st.integers(0, 9), min_size=1
)


@given(COUNTS, st.booleans())
def test_bars_stand_on_each_other_and_add_up(
    found: dict[tuple[int, str], int], as_shares: bool
) -> None:
    """Each bar begins where the one below ends, and the last reaches the sum, or 1."""
    rows = [(begin, begin + 1, key, count) for (begin, key), count in found.items()]
    table = pl.DataFrame(rows, schema=["begin", "end", "key", "count"], orient="row")
    stacked = stack(table, "count", "key", "cab", as_shares=as_shares)
    assert stacked.height == sum(count > 0 for count in found.values())
    for (begin,), bars in stacked.group_by("begin"):
        total = sum(count for (at, _), count in found.items() if at == begin)
        edges = [0.0, *bars["high"]]
        assert bars["low"].to_list() == pytest.approx(edges[:-1])
        assert edges[-1] == pytest.approx(1.0 if as_shares else total)
        assert bars["key"].to_list() == sorted(bars["key"], key="cab".index)


@pytest.mark.parametrize(
    ("highest", "expected"), [(0, [0]), (1, [0, 1]), (5, [0, 1, 2, 3, 4, 5]), (6, None)]
)
def test_a_few_agents_are_counted_in_whole_numbers(
    highest: int, expected: list[int] | None
) -> None:
    """Up to five, each number has its tick; between them there is none."""
    assert whole_numbers([0, highest]).to_dict().get("values") == expected
