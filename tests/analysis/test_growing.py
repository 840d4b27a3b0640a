"""Logs that grow while they are read, and numbers of a log that claim too much."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import Log, check_log, read_log
from prism.analysis.growing import GrowingLog
from prism.statechart import social_media_chart
from tests.kit import make
from tests.kit.logs import LogOf, WriteLog

TABLES = (
    *("runs", "states", "transitions", "dwell", "agents", "faults", "cascades", "participation"),
    *("measures", "world", "messages", "arms", "stuck"),
)
RUN = [make.started(), make.joined("a", "x"), b"{broken", make.move("a", "x", "y")]


def assert_alike(path: Path, ends: list[int], tables: Sequence[str] = TABLES) -> None:
    """Assert that a log that was read up to each of some lines is as one that was read at once."""
    whole = read_log(path)
    lines = path.read_bytes().splitlines(keepends=True)
    with closing(GrowingLog(path, path.parent.name)) as log:
        for begin, end in zip([0, *ends], [*ends, len(lines)], strict=True):
            log.append(b"".join(lines[begin:end]))
            log.rows("states")
        for name in tables:
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


@pytest.mark.slow
@pytest.mark.parametrize("ends", [[3, 6], [3], [4], []])
@pytest.mark.sampled(4)
def test_damaged_lines_and_an_earlier_run_are_left_out_with_a_note(
    ends: list[int], write_log: WriteLog
) -> None:
    """Lines keep their numbers, the last of several runs counts, and late facts have columns."""
    born = make.joined("b", "x", parent="a")
    assert_alike(write_log([*RUN, *RUN, born]), ends, ["runs", "states", "transitions", "agents"])


HUGE = [10**9, 10**12, 2**62, 2**63 - 1]
LISTED = ["states", "transitions", "dwell", "decisions", "participation", "cascades"]
MOVES = [
    make.move("a", "idle", "scrolling", round=number, tick=tick)
    for number in (1, 2)
    for tick in (1, 3)
]


def lines(**claims: Any) -> list[make.Event]:
    """Return a run of two agents, two rounds and three ticks that claims something else."""
    return [make.started(**claims), make.joined("a"), make.joined("b"), *MOVES]


def assert_small(log: Log) -> None:
    """Assert that every table is short."""
    for table in LISTED:
        assert len(log.rows(table)) < 100
    assert check_log(log, social_media_chart()).checked < 100


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.sampled(4)
def test_claims_of_a_run_cost_nothing(huge: int, log_of: LogOf) -> None:
    """A run that claims many rounds or ticks has the rows of one that tells the truth."""
    honest = log_of(lines()).rows("states")
    for claims in (("rounds",), ("ticks_per_round",), ("rounds", "ticks_per_round")):
        claimed = log_of(lines(**dict.fromkeys(claims, huge)))
        assert claimed.rows("states") == honest
    assert_small(claimed)


@pytest.mark.parametrize("key", ["round", "tick", "ticks_in_state"])
@pytest.mark.parametrize("huge", [*HUGE, *(-number for number in HUGE)])
@pytest.mark.parametrize("says", [True, False])
@pytest.mark.sampled(48, long=5)
def test_numbers_of_an_event_cost_nothing(key: str, huge: int, says: bool, log_of: LogOf) -> None:
    """One event of a far round or tick adds a few rows, not all those between."""
    claims = {} if says else {"rounds": None, "ticks_per_round": None}
    last = make.move("b", "idle", "scrolling", **{"round": 2, "tick": 3, key: huge})
    assert_small(log_of([*lines(**claims), last]))
