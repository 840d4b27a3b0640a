"""Numbers of a log are claims: they cost no more than the log itself."""

from typing import Any

import pytest

from prism.analysis import Log, check_log
from prism.statechart import social_media_chart
from tests.kit import make
from tests.kit.logs import LogOf

HUGE = [10**9, 10**12, 2**62, 2**63 - 1]
TABLES = ["states", "transitions", "dwell", "decisions", "participation", "cascades"]
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
    for table in TABLES:
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
