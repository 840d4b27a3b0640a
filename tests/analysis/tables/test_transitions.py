"""Counts of transitions, and their probabilities."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from prism.analysis import read_log
from tests.kit.tables import transition_counts

WriteLog = Callable[..., Path]


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
