"""The visits to states: which of them ended, and the ticks that they add up to."""

from pathlib import Path

import polars as pl
import pytest

from prism.analysis import read_log
from tests.kit.occupancy import cut_off, occupied, read_events
from tests.kit.tables import dwell_times, state_counts


@pytest.mark.parametrize("share", [0.5, 0.31, 0.77])
@pytest.mark.sampled(3)
def test_ticks_of_a_killed_run_are_exact(share: float, folder: Path, tmp_path: Path) -> None:
    """Of a log that ends in the middle of a line, ticks in a state are exact, too."""
    assert_exact(cut_off(folder / "events.jsonl", tmp_path, share))


@pytest.mark.slow
def test_ticks_in_states_are_those_counted_by_hand(
    faulty: Path, carried: Path, market: Path, rumours: list[Path]
) -> None:
    """They are exact by visits and at every tick, also with faults, absences and treatments."""
    folders = (carried, market, rumours[0])
    assert_exact([faulty, *(each / "events.jsonl" for each in folders)])


def assert_exact(logs: list[Path]) -> None:
    """Assert that ticks in a state are those of counting by hand."""
    for path in logs:
        read = read_log(path)
        begins, ends = occupied(read_events(path))
        states = state_counts(read).filter(pl.col("round") > 0)
        ticks = dict(states.group_by("state").agg(pl.col("agents").sum()).rows())
        assert ticks == {state: ends[state] for state in ticks}
        assert sum(ends.values()) == sum(ticks.values())
        if path.parent.name != "market":  # where buyers move sellers
            at_risk = dict(dwell_times(read).select("state", "at_risk").rows())
            assert at_risk == {state: begins[state] for state in at_risk}
