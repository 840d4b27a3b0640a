"""The log of a run that goes on: its tables are those of the whole log, however it grew."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import read_log
from prism.analysis._growing import GrowingLog

TABLES = (
    *("runs", "states", "transitions", "dwell", "agents", "faults", "cascades", "participation"),
    *("measures", "world", "messages", "arms", "stuck"),
)


def grown(log: Path, ends: list[int]) -> GrowingLog:
    """Return the log as it is after it was read up to each of some lines."""
    found = GrowingLog(log, log.parent.name)
    lines = log.read_bytes().splitlines(keepends=True)
    for begin, end in zip([0, *ends], [*ends, len(lines)], strict=True):
        if block := b"".join(lines[begin:end]):
            found.append(block)
            found.rows("states")
    return found


@pytest.mark.parametrize("ends", [[], [1], [60, 61, 2000]])
def test_every_table_is_that_of_the_whole_log_in_all_of_its_columns(
    folder: Path, ends: list[int]
) -> None:
    """Wherever the reading of the log paused, nothing of it is counted twice or forgotten."""
    whole = read_log(folder)
    with closing(grown(folder / "events.jsonl", ends)) as log:
        for name in TABLES:
            assert log.table(name).columns == whole.table(name).columns
            assert log.rows(name) == whole.rows(name), name
        for agent in ("agent_0001", "agent_0007"):
            assert log.rows("agent", agent) == whole.rows("agent", agent)
        assert log.notes == whole.notes


def test_damaged_lines_and_an_earlier_run_are_left_out_with_a_note(
    write_log: Callable[..., Path], make: Any
) -> None:
    """Lines keep their numbers, and the last of several runs counts."""
    run = [make.started(), make.joined("a", "x"), b"{broken", make.move("a", "x", "y")]
    path = write_log([*run, *run])
    whole = read_log(path)
    for ends in ([], [3], [4], [3, 6]):
        with closing(grown(path, ends)) as log:
            assert [str(note) for note in log.notes] == [str(note) for note in whole.notes]
            for name in ("runs", "states", "transitions", "agents"):
                assert log.rows(name) == whole.rows(name)
