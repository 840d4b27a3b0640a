"""Logs against a chart: its rules, and every step that it does not allow."""

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from prism.analysis import check_log, read_log
from prism.reasoner import PolicyReasoner
from prism.runlog import configure
from prism.statechart import History, Statechart, Transition, social_media_chart, state_enum
from tests.kit import make
from tests.kit.days import Day, person
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
FROM_ANGRY = "angry allows timeout to calm, leave to gone"


def stepped(agent: str, line: str) -> make.Event:
    """Return the step that a line says: where an agent joins, what it decides, or how it moves."""
    kind, *words = line.split()
    if kind == "joins":
        return make.joined(agent, words[0])
    if kind == "chooses":
        chosen, *options = words
        return make.decision(agent, options or None, chosen)
    source, target, trigger, *ticks = words
    dwelt = int(ticks[0]) if ticks else None
    return make.move(agent, source, target, trigger, ticks_in_state=dwelt, chart=kind)


@pytest.mark.parametrize(
    ("chart", "faults"),
    [
        (
            MOOD,
            {
                "mood calm angry bump 1": None,
                "mood calm gone leave": None,
                "mood calm gone bump 99": None,
                "mood angry calm timeout 3": None,
                "mood angry gone leave 3": None,
                "mood calm mad bump 1": "unknown_state: mad; the states calm, angry, gone",
                "mood angry calm soothe 1": f"unknown_trigger: soothe; {FROM_ANGRY}",
                "mood angry calm leave 1": f"unknown_move: angry to calm on leave; {FROM_ANGRY}",
                "mood angry gone leave 4": "overstayed: 4 ticks in angry; a time-out after 3",
                "mood angry calm timeout 2": "early_timeout: 2 ticks in angry; a time-out after 3",
            },
        ),
        (
            DOORS,
            {
                "joins d": "unknown_state: d; the states a, b, c",
                "chooses b b": None,
                "chooses c": None,
                "chooses b b c": "unknown_option: c offered on go; a allows b",
                "chooses c b": "not_an_option: c chosen; its options b",
            },
        ),
    ],
)
def test_each_step_has_its_faults(
    chart: Statechart[Any], faults: dict[str, str | None], log_of: LogOf
) -> None:
    """Each comes with what the chart would allow, and there is no other."""
    # each line is an agent's only one
    checked = check_log(log_of([stepped(line, line) for line in faults]), chart)
    columns = "agent_id, format('{}: {}; {}', kind, logged, allowed)"
    assert checked.violations.project(columns).fetchall() == [
        (line, fault) for line, fault in faults.items() if fault is not None
    ]
    assert checked.checked == len(faults)


def test_a_step_begins_where_the_last_one_ended(log_of: LogOf) -> None:
    """The fault names the line of that."""
    checked = check_log(log_of([make.joined("x", "b"), make.move("x", "a", "b")]), DOORS)
    ((line, kind, allowed),) = checked.violations.project("line, kind, allowed").fetchall()
    assert (line, kind) == (2, "broken_chain")
    assert allowed == "a transition from b, entered in line 1"


def test_real_run_agrees_with_its_chart(folder: Path, events: list[dict[str, Any]]) -> None:
    """Every step of a simulation is checked, and its chart allows it."""
    checked = check_log(read_log(folder), social_media_chart())
    steps = ("agent.joined", "statechart.transition", "reasoner.decision")
    assert checked.checked == sum(event["event"] in steps for event in events)
    assert (checked.counts, checked.violations.fetchall(), checked.other_charts) == ({}, [], {})


def test_transitions_of_other_charts_are_left_out(log_of: LogOf) -> None:
    """Transitions of another chart are counted, not checked; those that name none are checked."""
    lines = [
        make.move("x", "p", "q", chart="other"),
        make.move("x", "a", "b"),
        make.move("x", "b", "c", chart=None),
        make.move("x", "q", "p", chart="other"),
    ]
    checked = check_log(log_of(lines), DOORS)
    assert (checked.counts, checked.checked, checked.other_charts) == ({}, 2, {"other": 2})


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
    chart = DOORS.extended(transitions=[Transition("timeout", "*", Door("a"))])
    checked = check_log(log_of(lines), chart, timeout_threshold=fallback)
    assert sorted(checked.violations.project("kind, agent_id").fetchall()) == [
        *(("early_timeout", name) for name in early),
        ("overstayed", "quick"),
    ]


@pytest.mark.parametrize(("target", "found"), [("c", {"overstayed": 1}), ("b", {})])
def test_what_leads_back_to_its_state_begins_the_limit_anew(
    target: str, found: dict[str, int], log_of: LogOf
) -> None:
    """A stay may be longer than its time-out where the time can begin anew in it."""
    ends = [Transition("go", Door("b"), Door("a")), Transition("timeout", Door("b"), Door("c"))]
    knock = Transition("knock", Door("b"), Door(target))
    chart = Statechart(Door, [*ends, knock], Door("b"), timeouts={Door("b"): 3}, name="doors")
    line = make.move("x", "b", "a", "go", ticks_in_state=9, chart="doors")
    checked = check_log(log_of([make.joined("x", "b"), line]), chart)
    assert checked.counts == found


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
    assert (checked.checked, checked.counts) == (2, {})


async def test_what_the_engine_does_in_regions_is_allowed(tmp_path: Path) -> None:
    """Histories stand for whatever was active, also among the options of a decision."""
    chart = person(
        Transition("closes", Day.FEED, Day.POCKET),
        Transition("closes", Day.FEED, History(Day.PHONE)),
        decision_states=[Day.FEED],
    ).chart
    agent, triggers = chart.adopt(SimpleNamespace(agent_id="x")), Random(1)
    with configure(tmp_path / "log.jsonl") as log:
        for _ in range(500):
            event = triggers.choice(chart.triggers)
            await chart.afire(agent, event, reasoner=PolicyReasoner(1))
        choice = {"trigger": "closes", "options": ["home+feed"], "chosen": "home+feed"}
        log.logger.info("reasoner.decision", state="nowhere", agent_id="x", **choice)
    found = check_log(read_log(tmp_path / "log.jsonl"), chart)
    assert (found.checked > 100, found.counts) == (True, {"unknown_state": 1})


def test_an_agent_whose_time_out_leads_back_may_stay(log_of: LogOf) -> None:
    """Such a time-out ends no visit."""
    again = Transition("timeout", Door("a"), Door("a"))
    chart = Statechart(Door, [*MOVES, again], Door("a"), name="c", timeouts={Door("a"): 2})
    log = log_of([make.move("x", "a", "b", ticks_in_state=9)])
    assert check_log(log, chart).counts == {}
