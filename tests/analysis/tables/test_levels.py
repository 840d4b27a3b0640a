"""Numbers of agents on a level of their chart, and logs of regions against the chart."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prism.analysis import check_log, read_log, state_counts
from prism.analysis._conformance import Rules
from prism.worlds import Run
from prism.worlds.examples import Day
from prism.worlds.examples.day import At, Person

CHART = Person.chart.bound("day", None, lambda: 0.0)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return the log of a run, and the world after it."""
    folder = tmp_path_factory.mktemp("day") / "run"
    run = Run(Day, 20, seed=2, rounds=2)
    run.keep(folder)
    return folder, run


def counted(log: Any, depth: int | None, where: pl.Expr) -> dict[str, int]:
    """Return the numbers of agents at one tick."""
    table = state_counts(read_log(log[0]), depth=depth).filter(where)
    return dict(table.select("state", "agents").iter_rows())


@pytest.mark.parametrize(
    ("depth", "states"),
    [
        (1, {"awake": 20, "asleep": 0}),
        (2, {"place": 20, "phone": 20, "asleep": 0}),
        (3, {"work": 20, "home": 0, "asleep": 0}),
    ],
)
def test_states_are_counted_on_a_level(log: Any, depth: int, states: dict[str, int]) -> None:
    """Whoever is in two regions is in both, and a state without others is on every level."""
    at_noon = (pl.col("round") == 2) & (pl.col("tick") == 5)
    found = counted(log, depth, at_noon)
    assert {name: found[name] for name in states} == states
    if depth == 3:
        assert found["pocket"] + found["feed"] == 20
        assert counted(log, 9, at_noon) == found
    by_configuration = counted(log, None, at_noon)
    assert sum(by_configuration.values()) == 20
    assert {*by_configuration} >= {"work+feed", "work+pocket", "asleep"}


def test_a_log_of_a_chart_with_regions_agrees_with_it(log: Any) -> None:
    """Rates, timers, histories and regions: each step is one that the chart allows."""
    found = check_log(read_log(log[0]), CHART)
    assert (found.found, found.other_charts) == ({}, {})
    assert found.checked > 100


@pytest.mark.parametrize(
    ("move", "kinds"),
    [
        (("work+pocket", "work+feed", "buzzes"), []),
        (("work+pocket", "home+pocket", "returns"), []),
        # a history stands for whatever its region has been in
        (("asleep", "work+feed", "wakes"), []),
        (("asleep", "work+pocket", "wakes"), []),
        (("asleep", "home+pocket", "wakes"), ["unknown_move"]),
        (("work+pocket", "home+feed", "buzzes"), ["unknown_move"]),
        (("home+feed", "asleep", "sleeps"), []),
        (("work+feed", "asleep", "sleeps"), ["unknown_move"]),
        (("work+feed", "work+pocket", "rings"), ["unknown_trigger"]),
        (("work", "work+pocket", "hides"), ["unknown_state"]),
        (("pocket+work", "work+pocket", "hides"), ["unknown_state"]),
    ],
)
def test_steps_of_configurations_are_checked(move: tuple[str, str, str], kinds: list[str]) -> None:
    """Only what some transitions of the trigger lead to is allowed."""
    found = list(Rules(CHART).transition_faults(*move, 1, None))
    assert [fault.kind for fault in found] == kinds
    assert all("+" not in fault.allowed.partition(" allows")[2] for fault in found)


def test_decisions_in_regions_are_checked() -> None:
    """Options are configurations that the trigger leads to."""
    rules = Rules(CHART)
    both = ["work+feed", "work+pocket"]
    assert not list(rules.decision_faults("work+pocket", "buzzes", ["work+feed"], "work+feed"))
    faults = rules.decision_faults("work+pocket", "buzzes", both, "asleep")
    assert [fault.kind for fault in faults] == ["unknown_option", "not_an_option"]
    assert At.WORK in CHART.state_of("work+feed").leaves
