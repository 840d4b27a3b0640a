"""The log of a run that goes on: its tables are those of the whole log, however it grew."""

from contextlib import closing
from pathlib import Path

import pytest

from prism.analysis import read_log
from prism.analysis._growing import GrowingLog
from tests.kit import make
from tests.kit.logs import WriteLog

TABLES = (
    *("runs", "states", "transitions", "dwell", "agents", "faults", "cascades", "participation"),
    *("measures", "world", "messages", "arms", "stuck"),
)
RUN = [make.started(), make.joined("a", "x"), b"{broken", make.move("a", "x", "y")]


def assert_alike(path: Path, ends: list[int]) -> None:
    """Assert that a log that was read up to each of some lines is as one that was read at once."""
    whole = read_log(path)
    lines = path.read_bytes().splitlines(keepends=True)
    with closing(GrowingLog(path, path.parent.name)) as log:
        for begin, end in zip([0, *ends], [*ends, len(lines)], strict=True):
            log.append(b"".join(lines[begin:end]))
            log.rows("states")
        for name in TABLES:
            assert log.table(name).columns == whole.table(name).columns
            assert log.rows(name) == whole.rows(name), name
        for row in whole.rows("agents")[:2]:
            agent = row["agent_id"]
            assert log.rows("agent", agent) == whole.rows("agent", agent)
        assert [str(note) for note in log.notes] == [str(note) for note in whole.notes]


@pytest.mark.parametrize("ends", [[60, 61, 2000], [1], []])
@pytest.mark.sampled(3)
def test_every_table_is_that_of_the_whole_log_in_all_of_its_columns(
    folder: Path, ends: list[int]
) -> None:
    """Wherever the reading of the log paused, nothing of it is counted twice or forgotten."""
    assert_alike(folder / "events.jsonl", ends)


@pytest.mark.parametrize("ends", [[3, 6], [3], [4], []])
@pytest.mark.sampled(4)
def test_damaged_lines_and_an_earlier_run_are_left_out_with_a_note(
    ends: list[int], write_log: WriteLog
) -> None:
    """Lines keep their numbers, and the last of several runs counts."""
    assert_alike(write_log([*RUN, *RUN]), ends)
