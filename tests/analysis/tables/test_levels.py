"""Numbers of agents on a level of their chart, and logs of regions against the chart."""

from collections import Counter
from pathlib import Path

import pytest

from prism.analysis import Log, read_log
from prism.examples import Day
from prism.worlds import Run
from tests.kit.logs import events_in
from tests.kit.make import Event


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run."""
    folder = tmp_path_factory.mktemp("day") / "run"
    Run(Day, 20, seed=2, rounds=2).keep(folder)
    return folder


@pytest.fixture
def log(folder: Path) -> Log:
    """Return its log."""
    return read_log(folder)


@pytest.fixture
def moves(folder: Path) -> list[Event]:
    """Return its transitions."""
    return [each for each in events_in(folder) if each["event"] == "statechart.transition"]


def at_noon(log: Log, *table: str | int) -> dict[str, int]:
    """Return the agents in each state at one tick, whose shares are those of everybody."""
    rows = [row for row in log.rows(*table) if (row["round"], row["tick"]) == (2, 5)]
    assert [row["share"] for row in rows] == pytest.approx([row["agents"] / 20 for row in rows])
    return {row["state"]: row["agents"] for row in rows}


def test_states_are_counted_on_a_level(log: Log) -> None:
    """Whoever is in two regions is in both, and a state without others is on every level."""
    assert at_noon(log, "states_at", 1) == {"awake": 20, "asleep": 0}
    assert at_noon(log, "states_at", 2) == {"place": 20, "phone": 20, "asleep": 0}
    leaves = at_noon(log, "states_at", 3)
    assert (leaves["work"], leaves["home"], leaves["asleep"]) == (20, 0, 0)
    assert leaves["pocket"] + leaves["feed"] == 20
    assert at_noon(log, "states_at", 9) == leaves
    by_configuration = at_noon(log, "states")
    assert sum(by_configuration.values()) == 20
    assert {*by_configuration} >= {"work+feed", "work+pocket", "asleep"}


def on_top(state: str) -> str:
    """Return the outermost state around a state of the day."""
    return state if "+" not in state else "awake"


def test_transitions_are_counted_on_a_level(log: Log, moves: list[Event]) -> None:
    """Only those that leave a state of the level, by the region that reacts."""
    made = Counter(
        (on_top(each["from_state"]), on_top(each["to_state"]), each["trigger"]) for each in moves
    )
    columns = 'select from_state, to_state, "trigger", count, probability from transitions_at'
    counts = {tuple(ends): count for *ends, count, _ in log.sql(f"{columns}(1)").fetchall()}
    assert counts == {key: number for key, number in made.items() if key[0] != key[1]}

    inner = {row[:3] for row in log.sql(f"{columns}(3)").fetchall()}
    assert ("pocket", "feed", "buzzes") in inner
    assert not any("+" in state for row in inner for state in row[:2])
    assert not {row for row in inner if {"work", "feed"} == {*row[:2]}}
    outer = log.sql(f"{columns}(2) where from_state = 'asleep' order by to_state").fetchall()
    assert [(row[1], row[4]) for row in outer] == [("phone", 1.0), ("place", 1.0)]


@pytest.mark.slow
def test_visits_to_a_composite_go_on_while_agents_are_inside(log: Log, moves: list[Event]) -> None:
    """The ticks of the visits inside add up, whichever region has moved."""
    lengths: list[int] = []
    stayed: Counter[str] = Counter()
    for each in moves:
        if on_top(each["from_state"]) == "awake":
            stayed[each["agent_id"]] += each["ticks_in_state"]
            if on_top(each["to_state"]) != "awake":
                lengths.append(stayed.pop(each["agent_id"]))
        else:
            stayed[each["agent_id"]] = 0

    (row,) = (row for row in log.rows("dwell_at", 1) if row["state"] == "awake")
    assert lengths
    assert (row["complete"], row["open"]) == (len(lengths), len(stayed))
    assert row["max"] >= max(lengths)
