"""Logs against a chart: its rules, and every step that it does not allow."""

from collections.abc import Callable
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
from tests.kit.tables import violations_of

S: Any = state_enum("S", ["calm", "angry", "gone"])
CHART = Statechart(
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
WriteLog = Callable[..., Path]
Door: Any = state_enum("S", ["a", "b", "c"])
MOVES = [
    Transition("go", Door("a"), Door("b")),
    Transition("go", Door("b"), Door("c")),
    Transition("back", "*", Door("a")),
]
DOORS = Statechart(Door, MOVES, Door("a"), name="c")


@pytest.mark.parametrize(
    ("move", "found"),
    [
        (("calm", "angry", "bump", 1), []),
        (("calm", "gone", "leave", None), []),
        (("calm", "gone", "bump", 99), []),
        (("angry", "calm", "timeout", 3), []),
        (("calm", "mad", "bump", 1), [("unknown_state", "mad", "the states calm, angry, gone")]),
        (
            ("angry", "calm", "soothe", 1),
            [("unknown_trigger", "soothe", "angry allows timeout to calm, leave to gone")],
        ),
        (
            ("calm", "angry", "leave", 1),
            [
                (
                    *("unknown_move", "calm to angry on leave"),
                    "calm allows bump to angry, bump to gone, leave to gone",
                )
            ],
        ),
        (("angry", "gone", "leave", 3), []),
        (("angry", "gone", "leave", 4), [("overstayed", "4 ticks in angry", "a time-out after 3")]),
        (
            ("angry", "calm", "timeout", 2),
            [("early_timeout", "2 ticks in angry", "a time-out after 3")],
        ),
    ],
)
def test_a_transition_has_each_of_its_faults(
    move: tuple[Any, ...], found: list[Any], write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Each comes with what the chart would allow, and there is no other."""
    source, target, trigger, ticks = move
    line = make.move("x", source, target, trigger, ticks_in_state=ticks, chart="mood")
    table = violations_of(check_log(read_log(write_log([line])), CHART))
    assert table.select("kind", "found", "allowed").rows() == found


def test_real_run_agrees_with_its_chart(folder: Path, events: list[dict[str, Any]]) -> None:
    """Every step of a simulation is checked, and its chart allows it."""
    found = check_log(read_log(folder), social_media_chart())
    steps = ("agent.joined", "statechart.transition", "reasoner.decision")
    assert found.checked == sum(event["event"] in steps for event in events)
    assert (found.found, violations_of(found).height, found.other_charts) == ({}, 0, {})


def test_path_begins_where_the_agent_joined(write_log: WriteLog, make: SimpleNamespace) -> None:
    """An agent's first transition starts where it joined; an unknown state is reported."""
    lines = [make.joined("x", "b"), make.move("x", "a", "b"), make.joined("y", "nowhere")]
    found = violations_of(check_log(read_log(write_log(lines)), DOORS))
    assert found.select("line", "agent_id", "kind", "allowed").rows() == [
        (2, "x", "broken_chain", "a transition from b, entered in line 1"),
        (3, "y", "unknown_state", "the states a, b, c"),
    ]


def test_decisions_are_checked(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Options that the chart lacks and choices that were not offered are reported."""
    lines = [
        make.decision("x", ["b"], "b"),
        make.decision("x", ["b", "c"], "b"),
        make.decision("x", ["b"], "c"),
        make.decision("x", None, "c"),  # type: ignore[arg-type]
    ]
    found = check_log(read_log(write_log(lines)), DOORS)
    assert violations_of(found).select("line", "kind").rows() == [
        (2, "unknown_option"),
        (3, "not_an_option"),
    ]
    assert found.checked == 4


def test_transitions_of_other_charts_are_left_out(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Transitions of another chart are counted, not checked; those that name none are checked."""
    lines = [
        make.move("x", "p", "q", chart="other"),
        make.move("x", "a", "b"),
        make.move("x", "b", "c", chart=None),
        make.move("x", "q", "p", chart="other"),
    ]
    found = check_log(read_log(write_log(lines)), DOORS)
    assert (found.found, found.checked, found.other_charts) == ({}, 2, {"other": 2})


@pytest.mark.slow
def test_agents_time_out_by_the_limit_that_they_joined_with(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Each agent's own limit applies, across blocks; without one, the given limit does."""
    chart = Statechart(Door, [*MOVES, Transition("timeout", "*", Door("a"))], Door("a"), name="c")
    agents = {"quick": 2, "slow": 8, "unknown": None}
    lines = [make.joined(name, "b", timeout_threshold=limit) for name, limit in agents.items()]
    stay = [
        make.move(name, "b", "b", "stay", padding="x" * 200, ticks_in_state=1) for name in agents
    ] * 30
    lines += [*stay, *(make.move(name, "b", "a", "timeout", ticks_in_state=5) for name in agents)]
    log = read_log(write_log(lines))
    for fallback, early in ((None, ["slow"]), (4, ["slow"]), (9, ["slow", "unknown"])):
        found = violations_of(check_log(log, chart, timeout_threshold=fallback))
        assert found.filter(kind="overstayed")["agent_id"].to_list() == ["quick"]
        assert found.filter(kind="early_timeout")["agent_id"].to_list() == early


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
    found = check_log(read_log(tmp_path / "log.jsonl"), chart)
    assert agent.state == "b"
    assert (found.checked, found.found) == (2, {})


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


def test_a_trigger_of_scxml_allows_each_event_that_it_describes(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """``knock`` is the event ``knock.loudly``, too."""
    move = '<state id="a"><transition event="knock" target="b"/></state><state id="b"/>'
    chart = Statechart.from_scxml(f'<scxml xmlns="http://www.w3.org/2005/07/scxml">{move}</scxml>')
    lines = [make.move("x", "a", "b", each, chart=chart.name) for each in ("knock.loudly", "bell")]
    assert check_log(read_log(write_log(lines[:1])), chart).found == {}
    assert check_log(read_log(write_log(lines[1:])), chart).found == {"unknown_trigger": 1}
