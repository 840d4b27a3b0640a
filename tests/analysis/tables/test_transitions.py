"""Transitions, time-outs, and the columns of process mining."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.analysis import read_log, timeouts, to_event_log, transition_counts
from prism.errors import InputError
from prism.social import Results

WriteLog = Callable[..., Path]


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


def test_runs_are_described_separately(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Several runs have their own counts and probabilities."""
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
    assert timeouts(logs).select("run", "timeouts").rows() == [("one", 1)]


def test_states_of_several_charts_are_told_apart(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Two charts with a state of one name have time-outs of their own."""
    lines = [
        make.move("x", "busy", "idle", trigger, ticks_in_state=ticks, chart=chart)
        for chart, trigger, ticks in (
            ("ant", "timeout", 1),
            ("bee", "timeout", 5),
            ("bee", "go", 3),
        )
    ]
    logs = read_log(write_log(lines))
    assert timeouts(logs).select("chart", "timeouts", "left").rows() == [
        ("ant", 1, 1),
        ("bee", 1, 2),
    ]


def test_columns_are_those_of_the_standard(folder: Path, events: list[dict[str, Any]]) -> None:
    """Names and types of columns are those that pm4py documents."""
    table = to_event_log(read_log(folder)).collect()
    assert dict(table.schema) == {
        "case:concept:name": pl.String,
        "concept:name": pl.String,
        "time:timestamp": pl.Datetime("us", "UTC"),
        "org:resource": pl.String,
        "lifecycle:transition": pl.String,
        "round": pl.Int64,
        "tick": pl.Int64,
        "from_state": pl.String,
        "to_state": pl.String,
        "trigger": pl.String,
    }
    moves = [event for event in events if event["event"] == "statechart.transition"]
    assert table["case:concept:name"].to_list() == [move["agent_id"] for move in moves]
    assert table["concept:name"].to_list() == [move["to_state"] for move in moves]
    assert table["org:resource"].to_list() == [move["agent_id"] for move in moves]
    assert set(table["lifecycle:transition"]) == {"complete"}
    assert table["time:timestamp"][0] == datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


def test_activity_can_be_the_trigger(folder: Path) -> None:
    """The trigger can be the activity; anything else is refused."""
    table = to_event_log(read_log(folder), activity="trigger").collect()
    assert table["concept:name"].to_list() == table["trigger"].to_list()
    with pytest.raises(InputError, match="must be one of to_state, trigger, got 'mood'"):
        to_event_log(read_log(folder), activity="mood")


def test_same_agent_in_two_runs_is_two_cases(write_log: WriteLog, make: SimpleNamespace) -> None:
    """The same agent in two runs is two cases, and one resource."""
    moves = [make.move("x", "a", "b")]
    table = to_event_log(
        read_log(write_log(moves, "one.jsonl"), write_log(moves, "two.jsonl"))
    ).collect()
    assert table["case:concept:name"].to_list() == ["one/x", "two/x"]
    assert table["org:resource"].to_list() == ["x", "x"]


def test_event_log_can_be_written_by_blocks(folder: Path, tmp_path: Path) -> None:
    """The query can be sunk to a file, which equals the collected frame."""
    query = to_event_log(read_log(folder))
    query.sink_parquet(tmp_path / "events.parquet")
    assert pl.read_parquet(tmp_path / "events.parquet").equals(query.collect())
