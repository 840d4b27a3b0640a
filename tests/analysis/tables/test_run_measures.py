"""A run as one row of numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import read_log
from tests.kit.tables import cascades, participation, run_measures


@pytest.mark.slow
def test_measures_are_those_of_the_tables(folder: Path, events: list[dict[str, Any]]) -> None:
    """The row agrees with the tables that describe the same run, and with its own log."""
    logs = read_log(folder)
    (row,) = run_measures(logs).iter_rows(named=True)
    ended = events[-1]
    for name in ("agent_ticks", "transitions", "posts", "replies", "reshares", "likes"):
        assert row[name] == ended[name]
    assert (row["decisions"], row["fallbacks"]) == (ended["decisions_asked"], 0)
    assert row["timeouts"] == sum(ended["timeouts"].values())

    trees = cascades(logs)
    acts = sum(ended[name] for name in ("posts", "replies", "reshares", "likes"))
    assert row["browsing"] == row["views"] / (row["views"] + acts)
    moves = [each for each in events if each["event"] == "statechart.transition"]
    opened = [each for each in moves if each["trigger"] == "sees_post"]
    assert row["views"] == len(opened)
    assert row["cascades"] == trees.height
    assert row["singletons"] == pytest.approx((trees["size"] == 1).mean())
    assert row["beyond_one_degree"] == pytest.approx((trees["depth"] > 1).mean())
    assert (row["largest_cascade"], row["deepest_cascade"]) == (
        trees["size"].max(),
        trees["depth"].max(),
    )
    assert row["virality"] == pytest.approx(trees["virality"].mean())
    last = participation(logs).row(-1, named=True)
    assert {name: row[name] for name in ("silent", "top_1", "gini")} == {
        name: last[name] for name in ("silent", "top_1", "gini")
    }


def test_agents_who_left_take_no_steps(carried: Path) -> None:
    """Agent-ticks are the steps that the log counts, not agents times ticks."""
    (row,) = run_measures(read_log(carried)).iter_rows(named=True)
    ended = json.loads((carried / "events.jsonl").read_bytes().splitlines()[-1])
    assert row["agent_ticks"] == ended["agent_ticks"] < 30 * 36
