"""Numbers of agents on a level of their chart, and logs of regions against the chart."""

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prism.analysis import read_log
from prism.examples import Day
from prism.worlds import Run
from tests.kit.tables import dwell_times, events_of, state_counts, transition_counts


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
    shares = state_counts(read_log(log[0]), depth=depth).filter(at_noon)
    assert shares["share"].to_list() == pytest.approx([n / 20 for n in shares["agents"]])
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
