"""The moves as process-mining tools read them."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.analysis import read_log, to_event_log
from prism.errors import InputError

WriteLog = Callable[..., Path]


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
    assert table["time:timestamp"][0] == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


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
