"""The visits to states: which of them ended, and the ticks that they add up to."""

from pathlib import Path

import polars as pl
import pytest

from prism.analysis import dwell_times, read_log, state_counts
from tests.kit.occupancy import cut_off, occupied, read_events


@pytest.mark.parametrize("share", [0.5, 0.31, 0.77])
@pytest.mark.sampled(3)
def test_agent_ticks_of_a_killed_run_are_exact(share: float, folder: Path, tmp_path: Path) -> None:
    """Of a log that ends in the middle of a line, ticks in a state are exact, too."""
    assert_exact(cut_off(folder / "events.jsonl", tmp_path, share))


@pytest.mark.slow
def test_shares_times_agent_ticks_are_the_visits(faulty: Path, carried: Path, market: Path) -> None:
    """Ticks in a state are exact, by visits, by counts at every tick, and by hand."""
    folders = (carried, market)
    assert_exact([faulty, *(each / "events.jsonl" for each in folders)])


def assert_exact(logs: list[Path]) -> None:
    """Assert that ticks in a state are those of counting, at every tick and by hand."""
    for path in logs:
        read = read_log(path)
        dwelling, states = dwell_times(read), state_counts(read)
        keys = ["chart", "state"] if "chart" in dwelling.columns else ["state"]
        ticks = dict(dwelling.group_by("state").agg(pl.col("agent_ticks").sum()).rows())
        in_rounds = states.filter(pl.col("round") > 0).group_by(keys).agg(pl.col("agents").sum())
        assert ticks == dict(in_rounds.group_by("state").agg(pl.col("agents").sum()).rows())
        begins, ends = occupied(read_events(path))
        assert ticks == {state: ends[state] for state in ticks}
        assert sum(ends.values()) == sum(ticks.values())
        if path.parent.name != "market":  # where buyers move sellers
            assert dict(dwelling.select("state", "at_risk").rows()) == {
                state: begins[state] for state in ticks
            }


@pytest.mark.slow
def test_ticks_in_a_state_are_exact_where_agents_are_treated(rumours: list[Path]) -> None:
    """So they are in a run whose treatments come in its middle."""
    assert_exact([rumours[0] / "events.jsonl"])


@pytest.mark.slow
def test_rounds_add_up_to_the_whole(folder: Path) -> None:
    """A visit counts in the round in which it ended; open ones in the last."""
    logs = read_log(folder)
    table = dwell_times(logs, by_round=True)
    counts = ["visits", "complete", "cut", "open", "zero", "at_risk", "agent_ticks"]
    rounds = table.drop_nulls("round")
    assert rounds["round"].unique().sort().to_list() == [1, 2, 3, 4]
    whole = table.filter(pl.col("round").is_null()).drop("round")
    assert whole.equals(dwell_times(logs))
    summed = rounds.group_by("state").agg(pl.col(counts).sum()).sort("state")
    assert summed.rows() == whole.select("state", *counts).rows()
