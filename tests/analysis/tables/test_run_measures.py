"""A run as one row of numbers."""

from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from prism.analysis import read_log
from tests.kit.logs import events_in


@pytest.mark.slow
def test_measures_are_those_of_the_tables(folder: Path, events: list[dict[str, Any]]) -> None:
    """The row agrees with the tables that describe the same run, and with its own log."""
    log = read_log(folder)
    (row,) = log.rows("run_measures")
    ended = events[-1]
    trees = log.rows("cascades")
    acts = sum(ended[name] for name in ("posts", "replies", "reshares", "likes"))
    views = sum(each.get("trigger") == "sees_post" for each in events if "to_state" in each)
    last = log.rows("participation")[-1]
    viral = [tree["virality"] for tree in trees if tree["virality"] is not None]
    expected = {
        **{name: ended[name] for name in ("agent_ticks", "transitions", "posts", "replies")},
        **{name: ended[name] for name in ("reshares", "likes")},
        **{"decisions": ended["decisions_asked"], "fallbacks": 0},
        "timeouts": sum(ended["timeouts"].values()),
        **{"views": views, "browsing": views / (views + acts)},
        **{"cascades": len(trees), "singletons": mean(tree["size"] == 1 for tree in trees)},
        "beyond_one_degree": mean(tree["depth"] > 1 for tree in trees),
        "largest_cascade": max(tree["size"] for tree in trees),
        "deepest_cascade": max(tree["depth"] for tree in trees),
        "virality": mean(viral),
        **{name: last[name] for name in ("silent", "top_1", "gini")},
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected)


def test_agents_who_left_take_no_steps(logs: dict[str, Path]) -> None:
    """Agent-ticks are the steps that the log counts, not agents times ticks."""
    (row,) = read_log(logs["leaving"]).rows("run_measures")
    assert row["agent_ticks"] == events_in(logs["leaving"])[-1]["agent_ticks"] < 30 * 36
