"""Counts of transitions, and their probabilities."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.analysis import read_log
from tests.kit.tables import transition_counts

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
