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
