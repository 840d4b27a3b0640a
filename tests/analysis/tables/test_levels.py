"""Numbers of agents on a level of their chart, and logs of regions against the chart."""

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from prism.analysis import check_log, read_log
from prism.analysis._check import Rules
from prism.examples import Day
from prism.examples.day import At, Person
from prism.worlds import Run
from tests.kit.tables import dwell_times, events_of, state_counts, transition_counts

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
@pytest.mark.sampled(3)
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


def moves(folder: Path) -> list[dict[str, Any]]:
    """Return the transitions of a log."""
    return events_of(read_log(folder), "statechart.transition").to_dicts()


def on_top(state: str) -> str:
    """Return the outermost state around a state of the day."""
    return state if "+" not in state else "awake"


def test_transitions_are_counted_on_a_level(log: Any) -> None:
    """Only those that leave a state of the level, by the region that reacts."""
    logs = read_log(log[0])
    made = Counter(
        (on_top(each["from_state"]), on_top(each["to_state"]), each["trigger"])
        for each in moves(log[0])
    )
    found = transition_counts(logs, depth=1)
    counts = {tuple(row[:3]): row[3] for row in found.iter_rows()}
    assert counts == {key: n for key, n in made.items() if key[0] != key[1]}

    inner = transition_counts(logs, depth=3).select("from_state", "to_state", "trigger")
    rows = set(inner.iter_rows())
    assert ("pocket", "feed", "buzzes") in rows
    assert not any("+" in state for row in rows for state in row[:2])
    assert not {row for row in rows if {"work", "feed"} == {*row[:2]}}
    outer = transition_counts(logs, depth=2).filter(from_state="asleep")
    assert outer.select("to_state", "probability").sort("to_state").rows() == [
        ("phone", 1.0),
        ("place", 1.0),
    ]


@pytest.mark.slow
def test_visits_to_a_composite_go_on_while_agents_are_inside(log: Any) -> None:
    """The ticks of the visits inside add up, whichever region has moved."""
    lengths: Counter[int] = Counter()
    stayed: Counter[str] = Counter()
    for each in moves(log[0]):
        if on_top(each["from_state"]) == "awake":
            stayed[each["agent_id"]] += each["ticks_in_state"]
            if on_top(each["to_state"]) != "awake":
                lengths[stayed.pop(each["agent_id"])] += 1
        else:
            stayed[each["agent_id"]] = 0

    logs = read_log(log[0])
    described = dwell_times(logs, depth=1).row(by_predicate=pl.col("state") == "awake", named=True)
    assert lengths
    assert described["complete"] == sum(lengths.values())
    assert described["open"] == len(stayed)
    assert described["max"] >= max(lengths)


@pytest.mark.slow
def test_visits_of_one_region_do_not_end_with_those_of_another(log: Any) -> None:
    """Agents visit a state in each region, and are at work while they look at the phone."""
    whole = dwell_times(read_log(log[0]), depth=3)
    visits = dict(whole.select("state", "visits").iter_rows())
    assert {*visits} >= {"work", "home", "pocket", "feed", "asleep"}
    begun = Counter({"work": 20, "pocket": 20})
    for each in moves(log[0]):
        before, after = (each[key].split("+") for key in ("from_state", "to_state"))
        begun.update({*after} - {*before})
    assert {state: begun[state] for state in visits} == visits


@pytest.mark.parametrize("table", [transition_counts, dwell_times])
@pytest.mark.sampled(2)
def test_a_flat_chart_has_one_level(table: Any, carried: Path) -> None:
    """Its tables are the same on every level."""
    logs = read_log(carried)
    assert_frame_equal(table(logs, depth=1), table(logs), check_row_order=False)
    assert table(logs, depth=1).height


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
