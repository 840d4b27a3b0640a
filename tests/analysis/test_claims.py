"""Numbers of a log are claims: they cost no more than the log itself."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism.analysis import Log, check_log, read_log
from prism.statechart import social_media_chart
from tests.kit import tables
from tests.kit.tables import state_counts

WriteLog = Callable[..., Path]
HUGE = [10**9, 10**12, 2**62, 2**63 - 1]
TABLES = ["transition_counts", "dwell_times", "decisions", "participation", "cascades"]


def lines(make: SimpleNamespace, **claims: Any) -> list[dict[str, Any]]:
    """Return a run of two agents, two rounds and three ticks that claims something else."""
    moves = [
        make.move("a", "idle", "scrolling", round=number, tick=tick)
        for number in (1, 2)
        for tick in (1, 3)
    ]
    return [make.started(**claims), make.joined("a"), make.joined("b"), *moves]


def assert_small(logs: Log) -> None:
    """Assert that every table is short."""
    for table in TABLES:
        assert getattr(tables, table)(logs).height < 100
    assert check_log(logs, social_media_chart()).checked < 100


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.sampled(4)
def test_claims_of_a_run_cost_nothing(
    huge: int, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A run that claims many rounds or ticks has the rows of one that tells the truth."""
    honest = state_counts(read_log(write_log(lines(make), "honest.jsonl")))
    for claims in (("rounds",), ("ticks_per_round",), ("rounds", "ticks_per_round")):
        claimed = read_log(write_log(lines(make, **dict.fromkeys(claims, huge)), "claims.jsonl"))
        assert state_counts(claimed).equals(honest)
        assert_small(claimed)


@pytest.mark.parametrize("key", ["round", "tick", "ticks_in_state"])
@pytest.mark.parametrize("huge", [*HUGE, *(-number for number in HUGE)])
@pytest.mark.parametrize("says", [True, False])
@pytest.mark.sampled(48, long=5)
def test_numbers_of_an_event_cost_nothing(
    key: str, huge: int, says: bool, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """One event of a far round or tick adds a few rows, not all those between."""
    events = lines(make, **({} if says else {"rounds": None, "ticks_per_round": None}))
    events.append(make.move("b", "idle", "scrolling", **{"round": 2, "tick": 3, key: huge}))
    logs = read_log(write_log(events))
    assert state_counts(logs).height < 100
    assert_small(logs)
