"""Moves, dwell times and time-outs."""

from collections import Counter
from collections.abc import Callable
from math import log
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis import dwell_times, read_log, timeouts, transition_counts
from prism.social import Results

WriteLog = Callable[..., Path]
DWELLS = st.lists(st.integers(1, 12), min_size=1, max_size=30)


def moves_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == "statechart.transition"]


def test_counts_are_those_of_the_log(folder: Path, events: list[dict[str, Any]]) -> None:
    """Every kind of transition is counted, and the probabilities out of a state add up to 1."""
    table = transition_counts(read_log(folder))
    expected = Counter(
        (move["from_state"], move["to_state"], move["trigger"]) for move in moves_of(events)
    )
    assert {row[:3]: row[3] for row in table.iter_rows()} == dict(expected)
    assert (
        table.group_by("from_state")
        .agg(pl.col("probability").sum())["probability"]
        .is_close(1.0)
        .all()
    )
    leaving = Counter(move["from_state"] for move in moves_of(events))
    for source, target, trigger, count, probability in table.iter_rows():
        assert probability == pytest.approx(expected[source, target, trigger] / leaving[source])
        assert count == expected[source, target, trigger]


def test_transitions_without_ends_are_left_out(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A transition without source or target is not counted; one without a trigger is."""
    lines = [make.move("x", None, "b"), make.move("x", "a", None), make.move("x", "a", "b", None)]
    assert transition_counts(read_log(write_log(lines))).rows() == [("a", "b", None, 1, 1.0)]


def quantile(values: list[int], share: float) -> int:
    """Return the smallest value that so many values do not exceed."""
    return next(
        value
        for value in sorted(values)
        if sum(other <= value for other in values) >= share * len(values)
    )


@given(dwells=DWELLS, zeros=st.integers(0, 3))
def test_dwell_times_are_described_as_by_hand(
    dwells: list[int], zeros: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Counts, percentiles and the fit agree with their definitions, computed value by value."""
    path = tmp_path_factory.mktemp("dwell") / "log.jsonl"
    values = [0] * zeros + dwells
    line = (
        '{{"event":"statechart.transition","agent_id":"x",'
        '"from_state":"a","to_state":"b","ticks_in_state":{}}}\n'
    )
    path.write_text("".join(line.format(value) for value in values))
    (row,) = dwell_times(read_log(path)).iter_rows(named=True)
    assert (row["state"], row["visits"], row["zero"], row["max"]) == (
        "a",
        len(values),
        zeros,
        max(values),
    )
    assert row["mean"] == pytest.approx(sum(values) / len(values))
    assert [row[name] for name in ("median", "p90", "p99")] == [
        quantile(values, share) for share in (0.5, 0.9, 0.99)
    ]
    p = len(dwells) / sum(dwells)
    assert row["p"] == pytest.approx(p)
    seen = [sum(value <= ticks for value in dwells) / len(dwells) for ticks in range(1, 40)]
    gaps = [abs(share - (1 - (1 - p) ** ticks)) for ticks, share in enumerate(seen, start=1)]
    assert row["distance"] == pytest.approx(max(gaps), abs=1e-12)
    likelihood = sum(log(p) + (value - 1) * log(1 - p) if value > 1 else log(p) for value in dwells)
    assert row["log_likelihood"] == pytest.approx(likelihood)


def test_no_other_p_is_likelier(write_log: WriteLog, make: SimpleNamespace) -> None:
    """The fit has the greatest likelihood of all p."""
    dwells = [1, 1, 2, 5, 3, 1, 8]
    lines = [make.move("x", "a", "b", ticks_in_state=ticks) for ticks in dwells]
    (row,) = dwell_times(read_log(write_log(lines))).iter_rows(named=True)
    for other in (row["p"] * 0.98, row["p"] * 1.02):
        assert (
            sum(log(other) + (ticks - 1) * log(1 - other) for ticks in dwells)
            < row["log_likelihood"]
        )


def test_visits_of_no_tick_have_no_fit(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A state that is only passed through has no fit; visits of unknown length do not count."""
    lines = [
        make.move("x", "a", "b", ticks_in_state=0),
        make.move("x", "a", "b", ticks_in_state=None),
    ]
    (row,) = dwell_times(read_log(write_log(lines))).iter_rows(named=True)
    assert (row["visits"], row["zero"], row["mean"], row["max"]) == (1, 1, 0.0, 0)
    assert (row["p"], row["distance"], row["log_likelihood"]) == (None, None, None)


def test_time_outs_are_those_of_the_simulation(run: tuple[Path, Results]) -> None:
    """Time-outs by round and state are those of the simulation's own summary."""
    folder, results = run
    table = timeouts(read_log(folder))
    found = {(number, state): count for number, state, count, *_ in table.iter_rows()}
    expected = {
        (each.number, state): n
        for each in results.rounds
        for state, n in each.activity.timeouts.items()
    }
    assert found == expected
    assert len(found) > 3


def test_time_outs_have_their_share(write_log: WriteLog, make: SimpleNamespace) -> None:
    """The share of time-outs is of all transitions out of the state, in a round or in all."""
    lines = [
        make.move("x", "a", "b", "timeout"),
        make.move("x", "a", "c"),
        make.move("x", "a", "b", "timeout", round=2),
        make.move("x", "b", "a", round=2),
    ]
    logs = read_log(write_log(lines))
    assert timeouts(logs).rows() == [(1, "a", 1, 2, 0.5), (2, "a", 1, 1, 1.0)]
    assert dwell_times(logs)["timeout_share"].to_list() == [pytest.approx(2 / 3), 0.0]


def test_runs_are_described_separately(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Several runs have their own counts, probabilities and fits."""
    one = write_log([make.move("x", "a", "b", "timeout")], "one.jsonl")
    two = write_log(
        [make.move("x", "a", "b", ticks_in_state=4), make.move("x", "a", "c", ticks_in_state=4)],
        "two.jsonl",
    )
    logs = read_log(one, two)
    assert transition_counts(logs).select("run", "probability").rows() == [
        ("one", 1.0),
        ("two", 0.5),
        ("two", 0.5),
    ]
    assert dwell_times(logs).select("run", "mean", "p").rows() == [
        ("one", 1.0, 1.0),
        ("two", 4.0, 0.25),
    ]
    assert timeouts(logs).select("run", "timeouts").rows() == [("one", 1)]


def test_states_of_several_charts_are_told_apart(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Two charts with a state of one name have dwell times and time-outs of their own."""
    lines = [
        make.move("x", "busy", "idle", trigger, ticks_in_state=ticks, chart=chart)
        for chart, trigger, ticks in (
            ("ant", "timeout", 1),
            ("bee", "timeout", 5),
            ("bee", "go", 3),
        )
    ]
    logs = read_log(write_log(lines))
    assert dwell_times(logs).select("chart", "state", "visits", "mean", "p").rows() == [
        ("ant", "busy", 1, 1.0, 1.0),
        ("bee", "busy", 2, 4.0, 0.25),
    ]
    assert timeouts(logs).select("chart", "timeouts", "left").rows() == [
        ("ant", 1, 1),
        ("bee", 1, 2),
    ]
