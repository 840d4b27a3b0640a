"""Logs against a chart: its rules, and every step that it does not allow."""

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from prism.analysis import check_log, read_log
from prism.runlog import configure
from prism.statechart import (
    History,
    PolicyReasoner,
    State,
    Statechart,
    Transition,
    social_media_chart,
    state_enum,
)
from tests.kit import make
from tests.kit.logs import LogOf

S: Any = state_enum("S", ["calm", "angry", "gone"])
MOOD = Statechart(
    S,
    [
        Transition("bump", S("calm"), S("angry")),
        Transition("bump", S("calm"), S("gone")),
        Transition("timeout", S("angry"), S("calm")),
        Transition("leave", "*", S("gone")),
    ],
    S("calm"),
    name="mood",
    timeouts={S("angry"): 2},
)
Door: Any = state_enum("S", ["a", "b", "c"])
MOVES = [
    Transition("go", Door("a"), Door("b")),
    Transition("go", Door("b"), Door("c")),
    Transition("back", "*", Door("a")),
]
DOORS = Statechart(Door, MOVES, Door("a"), name="c")
WITH_TIMEOUT = Statechart(
    Door, [*MOVES, Transition("timeout", "*", Door("a"))], Door("a"), name="c"
)


def mood(source: str, target: str, trigger: str, ticks: int | None = 1) -> list[make.Event]:
    """Return a log of one transition by the chart of moods."""
    return [make.move("x", source, target, trigger, ticks_in_state=ticks, chart="mood")]


@pytest.mark.parametrize(
    ("chart", "lines", "faults"),
    [
        (MOOD, mood("calm", "angry", "bump"), []),
        (MOOD, mood("calm", "gone", "leave", None), []),
        (MOOD, mood("calm", "gone", "bump", 99), []),
        (MOOD, mood("angry", "calm", "timeout", 3), []),
        (MOOD, mood("angry", "gone", "leave", 3), []),
        (
            *(MOOD, mood("calm", "mad", "bump")),
            ["1 unknown_state: mad; the states calm, angry, gone"],
        ),
        (
            *(MOOD, mood("angry", "calm", "soothe")),
            ["1 unknown_trigger: soothe; angry allows timeout to calm, leave to gone"],
        ),
        (
            *(MOOD, mood("angry", "calm", "leave")),
            ["1 unknown_move: angry to calm on leave; angry allows timeout to calm, leave to gone"],
        ),
        (
            *(MOOD, mood("angry", "gone", "leave", 4)),
            ["1 overstayed: 4 ticks in angry; a time-out after 3"],
        ),
        (
            *(MOOD, mood("angry", "calm", "timeout", 2)),
            ["1 early_timeout: 2 ticks in angry; a time-out after 3"],
        ),
        (
            *(DOORS, [make.joined("x", "b"), make.move("x", "a", "b")]),
            ["2 broken_chain: a transition from a; a transition from b, entered in line 1"],
        ),
        (DOORS, [make.joined("x", "d")], ["1 unknown_state: d; the states a, b, c"]),
        (DOORS, [make.decision("x", ["b"], "b")], []),
        (DOORS, [make.decision("x", None, "c")], []),
        (
            *(DOORS, [make.decision("x", ["b", "c"], "b")]),
            ["1 unknown_option: c offered on go; a allows b"],
        ),
        (
            *(DOORS, [make.decision("x", ["b"], "c")]),
            ["1 not_an_option: c chosen; its options b"],
        ),
    ],
)
def test_each_step_has_its_faults(
    chart: Statechart[Any], lines: list[make.Event], faults: list[str], log_of: LogOf
) -> None:
    """Each comes with what the chart would allow, and there is no other."""
    checked = check_log(log_of(lines), chart)
    words = "format('{} {}: {}; {}', line, kind, found, allowed)"
    assert checked.violations.project(words).fetchall() == [(each,) for each in faults]
    assert (checked.checked, sum(checked.found.values())) == (len(lines), len(faults))


def test_real_run_agrees_with_its_chart(folder: Path, events: list[dict[str, Any]]) -> None:
    """Every step of a simulation is checked, and its chart allows it."""
    checked = check_log(read_log(folder), social_media_chart())
    steps = ("agent.joined", "statechart.transition", "reasoner.decision")
    assert checked.checked == sum(event["event"] in steps for event in events)
    assert (checked.found, checked.violations.fetchall(), checked.other_charts) == ({}, [], {})


def test_transitions_of_other_charts_are_left_out(log_of: LogOf) -> None:
    """Transitions of another chart are counted, not checked; those that name none are checked."""
    lines = [
        make.move("x", "p", "q", chart="other"),
        make.move("x", "a", "b"),
        make.move("x", "b", "c", chart=None),
        make.move("x", "q", "p", chart="other"),
    ]
    checked = check_log(log_of(lines), DOORS)
    assert (checked.found, checked.checked, checked.other_charts) == ({}, 2, {"other": 2})


@pytest.mark.parametrize(
    ("fallback", "early"), [(None, ["slow"]), (4, ["slow"]), (9, ["slow", "unknown"])]
)
def test_agents_time_out_by_the_limit_that_they_joined_with(
    fallback: int | None, early: list[str], log_of: LogOf
) -> None:
    """Each agent's own limit applies; without one, the given limit does."""
    agents = {"quick": 2, "slow": 8, "unknown": None}
    lines = [make.joined(name, "b", timeout_threshold=limit) for name, limit in agents.items()]
    lines += [make.move(name, "b", "a", "timeout", ticks_in_state=5) for name in agents]
    checked = check_log(log_of(lines), WITH_TIMEOUT, timeout_threshold=fallback)
    assert sorted(checked.violations.project("kind, agent_id").fetchall()) == [
        *(("early_timeout", name) for name in early),
        ("overstayed", "quick"),
    ]


@pytest.mark.parametrize("ready_after", [0, 6])
def test_agent_whose_guard_blocks_its_time_out_is_allowed(ready_after: int, tmp_path: Path) -> None:
    """An agent whose guard blocks its time-out may stay, as the engine itself logs it."""
    move = Transition("timeout", Door("a"), Door("b"), guard=lambda agent, context: agent.ready)
    chart = Statechart(Door, [move], Door("a"), name="held", timeouts={Door("a"): 2})
    agent = SimpleNamespace(agent_id="x", state=Door("a"), ticks_in_state=0, ready=False)
    with configure(tmp_path / "log.jsonl"):
        for number in range(9):
            agent.ready = number >= ready_after
            chart.tick(agent)
    checked = check_log(read_log(tmp_path / "log.jsonl"), chart)
    assert agent.state == "b"
    assert (checked.checked, checked.found) == (2, {})


Day: Any = state_enum(
    "Day", ["asleep", "awake", "phone", "idle", "used", "read", "write", "body", "up", "sat"]
)
USED = State(Day("used"), [Day("read"), Day("write")])
REGIONS = [State(Day("phone"), [Day("idle"), USED]), State(Day("body"), [Day("up"), Day("sat")])]
DAY = Statechart(
    [Day("asleep"), State(Day("awake"), REGIONS, parallel=True)],
    [
        Transition("wakes", Day("asleep"), Day("awake")),
        Transition("resumes", Day("asleep"), History(Day("awake"), deep=True)),
        Transition("picks", Day("idle"), Day("read")),
        Transition("picks", Day("idle"), History(Day("used"))),
        Transition("sits", Day("up"), Day("sat")),
        Transition("writes", Day("read"), Day("write")),
        Transition("puts", Day("used"), Day("idle")),
        Transition("sleeps", Day("awake"), Day("asleep")),
    ],
    Day("asleep"),
    name="day",
    decision_states=[Day("idle")],
)


async def test_what_the_engine_does_in_regions_is_allowed(tmp_path: Path) -> None:
    """Histories stand for whatever was active, also among the options of a decision."""
    agent, triggers = DAY.adopt(SimpleNamespace(agent_id="x")), Random(1)
    with configure(tmp_path / "log.jsonl") as log:
        for _ in range(300):
            event = triggers.choice(DAY.triggers)
            await DAY.afire(agent, event, reasoner=PolicyReasoner(1))
        keys = {"trigger": "picks", "options": ["read+up"], "chosen": "read+up", "agent_id": "x"}
        log.logger.info("reasoner.decision", state="nowhere", **keys)
    found = check_log(read_log(tmp_path / "log.jsonl"), DAY)
    assert (found.checked > 100, found.found) == (True, {"unknown_state": 1})


def test_a_trigger_of_scxml_allows_each_event_that_it_describes(log_of: LogOf) -> None:
    """``knock`` is the event ``knock.loudly``, too."""
    move = '<state id="a"><transition event="knock" target="b"/></state><state id="b"/>'
    chart = Statechart.from_scxml(f'<scxml xmlns="http://www.w3.org/2005/07/scxml">{move}</scxml>')
    lines = [make.move("x", "a", "b", each, chart=chart.name) for each in ("knock.loudly", "bell")]
    assert check_log(log_of(lines[:1]), chart).found == {}
    assert check_log(log_of(lines[1:]), chart).found == {"unknown_trigger": 1}


def test_an_agent_whose_time_out_leads_back_may_stay(log_of: LogOf) -> None:
    """Such a time-out ends no visit."""
    again = Transition("timeout", Door("a"), Door("a"))
    chart = Statechart(Door, [*MOVES, again], Door("a"), name="c", timeouts={Door("a"): 2})
    log = log_of([make.move("x", "a", "b", ticks_in_state=9)])
    assert check_log(log, chart).found == {}
