"""Where agents are, on every level of their chart, and how long they stay there."""

import json
from collections import Counter
from datetime import datetime, timedelta
from enum import StrEnum
from math import log as ln
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism import Agent, Run, Statechart, Transition, World, during
from prism.analysis import Log, read_log
from prism.worlds import state
from tests.kit import make
from tests.kit.logs import LogOf, WriteLog, events_in
from tests.kit.make import Event
from tests.kit.textbook import Vote, Voter

BEGIN = datetime(2026, 1, 1)
TIMES = ["2026-01-01T00:00:00.25Z", "2026-01-01T01:00:00.75+01:00", "2026-01-01T00:00:02Z"]
BARE = [
    make.move(*ends, timestamp=time, round=None, tick=None)
    for ends, time in zip(("xab", "yab", "xba"), TIMES, strict=True)
]


def counted(log: Log) -> dict[tuple[Any, ...], dict[str, int]]:
    """Return the agents in each state by moment, states without agents left out."""
    found: dict[tuple[Any, ...], dict[str, int]] = {}
    for *moment, name, agents, share in log.table("states").fetchall():
        found.setdefault(tuple(moment), {}).update({name: agents} if agents else {})
        assert 0 <= share <= 1
    return found


@pytest.mark.parametrize(
    ("lines", "counts", "note"),
    [
        # set without a transition
        (
            [make.move(agent, "a", "b", round=n) for n in (1, 2, 3) for agent in "xy"],
            {(1, 1): {"b": 2}, (2, 1): {"b": 2}, (3, 1): {"b": 2}},
            "4 transitions do not start where the agent's last one ended (the first in line 3): "
            "lines are missing, or the state was set outside the chart",
        ),
        # rounds that start again
        (
            [
                make.move("x", *ends, round=n)
                for ends, n in zip(("ab", "ba", "ac", "ca"), (1, 2, 1, 2), strict=True)
            ],
            {(1, 1): {"b": 1}, (2, 1): {"a": 1}},
            "1 transition does not follow the agent's last one in round, tick or time "
            "(the first in line 3): they count together with that",
        ),
        # what closes a round, in its last tick alone, and what a world does once it is counted
        (
            [
                make.started(rounds=2, ticks_per_round=2),
                make.joined("x"),
                make.move("x", "idle", "composing", tick=1),
                make.move("x", "composing", "liking", "compose_done", tick=1, ticks_in_state=0),
                make.move("x", "liking", "composing", tick=2),
                make.move("x", "composing", "resting", "calms", tick=2, ticks_in_state=0),
                make.move("x", "resting", "idle", "round_ends", tick=2, ticks_in_state=0),
                make.event("round.ended", round=1, tick=2, states={"composing": 1, "idle": 0}),
                make.event("round.ended", round=2, tick=1),
                make.event("run.ended"),
            ],
            {(1, 1): {"liking": 1}, (1, 2): {"composing": 1}, (2, 1): {"idle": 1}},
            None,
        ),
        # up to the last tick of the log
        (
            [
                make.started(rounds=9, ticks_per_round=3),
                make.joined("x"),
                make.move("x", "idle", "a", round=2, tick=2),
                make.event("run.ended", round=None, tick=None),
            ],
            {
                **{moment: {"idle": 1} for moment in ((1, 1), (1, 2), (1, 3), (2, 1))},
                (2, 2): {"a": 1},
            },
            None,
        ),
        # by round, one that is unknown before the first
        (
            [
                make.move("x", "a", "b", round=None, tick=None),
                make.move("x", "b", "c", round=1, tick=None),
                make.move("y", "a", "c", round=2, tick=None),
            ],
            {(0,): {"a": 1, "b": 1}, (1,): {"a": 1, "c": 1}, (2,): {"c": 2}},
            None,
        ),
        # by seconds of any precision and zone
        (
            BARE,
            {(BEGIN,): {"b": 2}, (BEGIN + timedelta(seconds=2),): {"a": 1, "b": 1}},
            None,
        ),
    ],
)
def test_agents_are_counted_at_each_moment(
    lines: list[make.Event], counts: Any, note: str | None, log_of: LogOf
) -> None:
    """By tick, round or time, as the log has them; where steps do not fit, a note says so."""
    log = log_of(lines)
    found = counted(log)
    assert (found, list(found)) == (counts, list(counts))
    assert [each.message for each in log.notes] == ([] if note is None else [note])


LOOSE = st.tuples(
    *(st.sampled_from("xyz"), st.sampled_from("abc"), st.sampled_from("abc")),
    *(st.one_of(st.none(), st.integers(0, 3)), st.one_of(st.none(), st.integers(0, 3))),
    *(st.sampled_from(["go", "round_ends", "compose_done"]), st.integers(0, 1)),
    *(st.sampled_from([*TIMES, "?"]), st.booleans()),
)


@given(
    moves=st.lists(LOOSE, min_size=1, max_size=12), is_dated=st.booleans(), ticks=st.integers(1, 3)
)
def test_every_agent_is_counted_in_any_log(
    moves: list[Any], is_dated: bool, ticks: int, tmp_path_factory: Any
) -> None:
    """Transitions from anywhere at any time, joins in between and repeated rounds lose no agent."""
    lines = [make.started(rounds=4, ticks_per_round=ticks)] if is_dated else []
    for agent, begin, end, number, tick, trigger, dwelt, stamp, joins in moves:
        when = {"round": number, "tick": tick} if is_dated else {"round": None, "tick": None}
        facts = {**when, "timestamp": stamp}
        # in a later round, an agent would be nowhere before
        joined = {**facts, "round": 0} if is_dated else facts
        lines += [make.joined(agent, end, **joined)] if joins else []
        lines.append(make.move(agent, begin, end, trigger, ticks_in_state=dwelt, **facts))
    path: Path = tmp_path_factory.mktemp("loose") / "loose.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    agents = len({agent for agent, *_ in moves})
    assert {sum(counts.values()) for counts in counted(read_log(path)).values()} == {agents}


@pytest.fixture(scope="module")
def log(logs: dict[str, Path]) -> Log:
    """Return the log of twelve agents with regions."""
    return read_log(logs["regions"])


@pytest.fixture
def moves(logs: dict[str, Path]) -> list[Event]:
    """Return its transitions."""
    return [each for each in events_in(logs["regions"]) if "to_state" in each]


def at_noon(log: Log, *table: str | int) -> dict[str, int]:
    """Return the agents in each state at one tick, whose shares are those of everybody."""
    rows = [row for row in log.rows(*table) if (row["round"], row["tick"]) == (2, 5)]
    assert [row["share"] for row in rows] == pytest.approx([row["agents"] / 12 for row in rows])
    return {row["state"]: row["agents"] for row in rows}


def test_states_are_counted_on_a_level(log: Log) -> None:
    """Whoever is in two regions is in both, and a state without others is on every level."""
    assert at_noon(log, "states_at", 1) == {"awake": 12, "asleep": 0}
    assert at_noon(log, "states_at", 2) == {"place": 12, "phone": 12, "asleep": 0}
    leaves = at_noon(log, "states_at", 3)
    assert (leaves["work"], leaves["home"], leaves["asleep"]) == (12, 0, 0)
    assert leaves["pocket"] + leaves["feed"] == 12
    assert at_noon(log, "states_at", 9) == leaves
    by_configuration = at_noon(log, "states")
    assert sum(by_configuration.values()) == 12
    assert {*by_configuration} >= {"work+feed", "work+pocket", "asleep"}


def test_a_level_of_a_log_without_levels_is_noted(write_log: WriteLog) -> None:
    """So is that agents of a log in which nobody joined are counted once they have moved."""
    log = read_log(write_log([make.move("x", "a", "b")]))
    assert [row["agents"] for row in log.rows("states_at", 1)] == [0, 1]
    assert [note.kind for note in log.notes] == ["no_levels", "unjoined"]


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


def test_censored_visits_are_those_of_a_textbook(log_of: LogOf) -> None:
    """Remission times under 6-MP have the published median and mean (Freireich et al. 1963)."""
    exits = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    cuts = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    lines = [make.move("x", "a", "b", ticks_in_state=weeks) for weeks in exits]
    lines += [make.move("x", "a", "b", "round_ends", ticks_in_state=weeks) for weeks in cuts]
    row = log_of(lines).rows("dwell")[0]
    assert (row["state"], row["median"], row["p90"]) == ("a", 23, None)
    assert (row["complete"], row["cut"], row["at_risk"]) == (9, 12, sum(exits + cuts))
    # the area under the curve to the longest visit, as R's survival package has it
    assert row["mean"] == pytest.approx(23.287, abs=1e-3)


def test_a_state_that_is_never_left_has_no_median(log_of: LogOf) -> None:
    """A visit that is open at the end is censored: its length is known, not that of others."""
    lines = [make.started(), make.joined("x", "a"), make.joined("y", "a")]
    lines += [make.move("x", "a", "b", round=1, tick=2, ticks_in_state=2)]
    lines += [make.event("round.ended", round=2, tick=3)]
    columns = "state, complete, open, median, p90, max, at_risk"
    assert log_of(lines).sql(f"select {columns} from dwell").fetchall() == [
        ("a", 1, 1, 2, None, 6, 8),
        ("b", 0, 1, None, None, 4, 4),
    ]


Case = StrEnum("Case", ["WAITING", "SEEN"])


class Patient(Agent):
    """Somebody who is asked in some ticks, and stays until the ninth."""

    chart = Statechart(
        Case,
        [
            Transition("calls", Case.WAITING, Case.WAITING),
            Transition("calls", Case.WAITING, Case.SEEN),
        ],
        Case.WAITING,
        decision_states=[Case.WAITING],
    )
    calls: int = state(0)


class Practice(World[Patient]):
    """Decides to stay, which begins the time in the state anew and is no transition of the log."""

    rounds, ticks = 4, 3
    leaves: bool = False

    @during(Case.WAITING)
    async def call(self, patient: Patient) -> None:
        patient.calls += 1
        is_ninth = patient.calls == 9
        if is_ninth and self.leaves:
            patient.leave()
        else:
            await patient.decide("calls", weights={Case.WAITING: not is_ninth, Case.SEEN: is_ninth})


@pytest.mark.parametrize("leaves", [False, True])
def test_a_decision_to_stay_ends_no_visit(leaves: bool, tmp_path: Path) -> None:
    """A stay is as long as the log says, whatever the agent decided meanwhile."""
    Run(Practice(leaves=leaves), 2).keep(tmp_path)
    (row,) = (each for each in read_log(tmp_path).rows("dwell") if each["state"] == "waiting")
    assert (row["complete"], row["mean"], row["max"]) == (2, 9, 9)


class Voting(World[Voter]):
    """A chain whose dwell times are exponential with known rates."""

    rounds, ticks = 20, 3

    @during(Vote.RED, rate=0.7)
    def turn_blue(self, voter: Voter) -> None:
        voter.take(Vote.BLUE)

    @during(Vote.BLUE, rate=2.0)
    def turn_red(self, voter: Voter) -> None:
        voter.take(Vote.RED)


@pytest.mark.parametrize(
    "table", [("dwell",), pytest.param(("dwell_at", 1), marks=pytest.mark.slow)]
)
def test_dwell_times_of_events_at_rates_are_in_rounds(
    table: tuple[str, int], write_log: WriteLog, tmp_path: Path
) -> None:
    """Means and medians are those of the chain's rates, also beside a run in ticks."""
    Run(Voting(), 200, seed=1).keep(tmp_path / "run")
    rows = {row["state"]: row for row in read_log(tmp_path / "run").rows(*table)}
    for vote, rate in (("red", 0.7), ("blue", 2.0)):
        row = rows[vote]
        assert row["complete"] / row["at_risk"] == pytest.approx(rate, rel=0.1)
        assert row["mean"] == pytest.approx(1 / rate, rel=0.1)
        assert row["median"] == pytest.approx(ln(2) / rate, rel=0.1)
    # agents are always in one of the two states
    assert sum(row["at_risk"] for row in rows.values()) == pytest.approx(200 * 20)
    in_ticks = write_log([make.move("x", "a", "b", ticks_in_state=3)])
    both = {
        row["state"]: row["median"] for row in read_log(in_ticks, tmp_path / "run").rows(*table)
    }
    assert (both["a"], both["red"]) == (3, rows["red"]["median"])
