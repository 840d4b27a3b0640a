"""What went wrong in a run, who was stuck, and what agents said to each other."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism.analysis import read_log
from prism.runlog import configure
from prism.statechart import Statechart, Transition, state_enum
from tests.kit import make
from tests.kit.logs import LogOf

COLUMNS = "fault, from_state, to_state, trigger, error, count, agents, line"


def breaks(agent: Any, context: Any) -> bool:
    raise KeyError("budget")


def test_guards_and_actions_that_raise_are_counted(tmp_path: Path) -> None:
    """Faults of a loop of one's own are rows, alike ones together, and notes of every table."""
    door = state_enum("Door", ["closed", "open"])
    moves = [
        Transition("push", door("closed"), door("open"), guard=breaks),
        Transition("pull", door("closed"), door("open"), action=breaks),
    ]
    chart = Statechart(door, moves, initial=door("closed"), name="door")
    with configure(tmp_path / "door.jsonl"):
        for number in range(3):
            agent = SimpleNamespace(agent_id=f"a{number}", state=door("closed"))
            assert chart.fire(agent, "push") is None
            assert chart.fire(agent, "push") is None
        assert chart.fire(agent, "pull") is door("open")

    log = read_log(tmp_path / "door.jsonl")
    assert log.sql(f"select {COLUMNS} from faults").fetchall() == [
        ("guard_failed", "closed", "open", "push", "KeyError: 'budget'", 6, 3, 2),
        ("action_failed", "closed", "open", "pull", "KeyError: 'budget'", 1, 1, 11),
    ]
    more = "; `prism log faults` has more"
    assert [(note.kind, note.line, note.message.removesuffix(more)) for note in log.notes] == [
        ("guard_failed", 2, "a guard raised an exception 6 times, and counted as false"),
        ("action_failed", 11, "an action raised an exception once, but its transition took place"),
    ]


ANN = {"agent_id": "ann", "state": "a"}
ABOUT = {"chart": "c", "agent_id": "ann", "trigger": "go"}
STEP = {**ANN, "turn": 2, "step": "see"}
CYCLE = {**ANN, "cycle": 2}
TEXT = {"agent_id": "ann", "key": "2:see", "text": "t"}
DISCARDED = {**ABOUT, "asked_in": "a"}
REASONS = ["ReplyError: says 'a'", "ReplyError: says 'b'", "timed out", "late"]


@pytest.mark.parametrize(
    ("lines", "columns", "rows"),
    [
        # every kind, the gravest first
        (
            [
                make.decision("ann", ["a", "b"], "b", source="fallback", reason="timed out"),
                *[make.decision("ann", ["a", "b"], "b")] * 2,
                make.event("statechart.answer_discarded", **DISCARDED, now_in="z", chosen="b"),
                make.event(
                    *("statechart.answer_discarded",),
                    **{**DISCARDED, "now_in": "a", "chosen": "c", "reason": "not_enabled"},
                ),
                make.event("workflow.refused", **STEP, target="b", reason="'x' is false"),
                make.event("workflow.run_if_failed", **STEP, reason="'x' failed: y"),
                make.event("cognition.reset", agent_id="ann", from_state="old", to_state="a"),
                make.event("cognition.refused", **CYCLE, type="burn", reason="E: r"),
                make.event("cognition.cycle", **CYCLE, outcome="unusable", reason="E: u"),
                make.event("cognition.cycle", **CYCLE, outcome="done", reason=None),
                make.event("text.written", **TEXT, source="failed", reason="E: t"),
                make.event("text.written", **TEXT, source="model", reason=None),
                make.event("workflow.step", **STEP, outcome="skipped", reason="E: s"),
                make.event("workflow.step", **STEP, outcome="done", unknown_variables=["m", "x"]),
                make.event(
                    "statechart.action_failed", **ABOUT, from_state="a", to_state="b", error="E: a"
                ),
                make.event(
                    "statechart.guard_failed", **ABOUT, from_state="a", to_state="b", error="E: g"
                ),
            ],
            COLUMNS,
            [
                ("guard_failed", "a", "b", "go", "E: g", 1, 1, 17),
                ("action_failed", "a", "b", "go", "E: a", 1, 1, 16),
                ("step_failed", "a", None, "see", "E: s", 1, 1, 14),
                ("variable_unknown", "a", None, "see", "nobody provides m, x", 1, 1, 15),
                ("text_failed", None, None, None, "E: t", 1, 1, 12),
                ("reply_unusable", "a", None, None, "E: u", 1, 1, 10),
                ("action_refused", "a", None, "burn", "E: r", 1, 1, 9),
                ("state_reset", "old", "a", None, "there is no such state", 1, 1, 8),
                ("transition_refused", "a", "b", "see", "'x' is false", 1, 1, 6),
                ("answer_discarded", "a", "b", "go", "the agent was already in z", 1, 1, 4),
                ("answer_discarded", "a", "c", "go", "its guard no longer passed", 1, 1, 5),
                ("run_if_failed", "a", None, "see", "'x' failed: y", 1, 1, 7),
                ("fallback", "a", "b", "go", "timed out", 1, 1, 1),
            ],
        ),
        # exceptions of one name are one kind
        (
            [make.decision("x", ["a"], "a", source="fallback", reason=why) for why in REASONS],
            "error, count, line",
            [("ReplyError: says 'a'", 2, 1), ("timed out", 1, 3), ("late", 1, 4)],
        ),
    ],
)
def test_faults(lines: list[make.Event], columns: str, rows: Any, log_of: LogOf) -> None:
    """Each fault names where the agent was, what it was about, and why."""
    assert log_of(lines).sql(f"select {columns} from faults").fetchall() == rows


def test_messages_are_in_the_order_of_the_log(log_of: LogOf) -> None:
    """Who said what to whom; the agent that an event is of sent it if no sender is named."""
    said = {"agent_id": "ann", "sender": "ann", "receiver": "di", "content": "Hi"}
    answer = {"agent_id": "di", "receiver": "ann", "content": "Hello"}
    log = log_of([make.event("message.sent", **each) for each in (said, answer)])
    rows = log.sql("select sender, receiver, content from messages").fetchall()
    assert rows == [("ann", "di", "Hi"), ("di", "ann", "Hello")]


def test_stuck_agents_are_counted_until_they_move(log_of: LogOf) -> None:
    """An agent is still there unless it has moved since its event was refused."""
    agents = ("ann", "di", "ed", "flo")
    log = log_of(
        [
            make.started(),
            *(make.joined(agent, "shut") for agent in agents),
            *(make.refused(agent, "shut", "open", "has_key") for agent in (*agents, "ann")),
            *(make.move(agent, "shut", "open", tick=2) for agent in ("di", "flo")),
            # back again, and no event has been refused there since
            make.move("flo", "open", "shut", tick=3),
        ]
    )
    columns = 'state, "trigger", guards, count, agents, still_there'
    stuck = [("shut", "open", ["has_key"], 5, 4, 2)]
    assert log.sql(f"select {columns} from stuck").fetchall() == stuck
    columns = 'agent_id, state, refused, "trigger", guards'
    assert log.sql(f"select {columns} from stuck_agents").fetchall() == [
        ("ann", "shut", 2, "open", ["has_key"]),
        ("ed", "shut", 1, "open", ["has_key"]),
    ]


@pytest.mark.parametrize(
    ("all_runs", "agents", "states"),
    [(False, [("o2", 8, 1)], (9, 1, 1)), (True, [("o1", 2, 1), ("o2", 4, 2)], (3, 2, 2))],
)
def test_who_is_stuck_in_a_service_that_was_restarted(
    all_runs: bool, agents: list[Any], states: tuple[int, ...], log_of: LogOf
) -> None:
    """With all runs, each agent is there since it came, and not since the restart."""
    order = {"chart": "order", "round": None, "tick": None}
    pay, wait = ("new", "paid", "pay"), ("paid", "send", "in_stock")
    timed = [
        (0, make.event("run.started", schema=1)),
        *((1, make.joined(agent, "new", **order)) for agent in ("o1", "o2")),
        *((2, make.move("o1", *pay, **order)), (3, make.refused("o1", *wait, **order))),
        *((4, make.move("o2", *pay, **order)), (5, make.refused("o2", *wait, **order))),
        *((6, make.event("run.ended")), (7, make.event("run.started", schema=1))),
        *((8, make.joined("o2", "paid", **order)), (9, make.refused("o2", *wait, **order))),
        (9, make.event("run.ended")),
    ]
    lines = [{**each, "timestamp": f"2026-01-01T00:0{minute}:00Z"} for minute, each in timed]
    log = log_of(lines, all_runs=all_runs)
    found = log.rows("stuck_agents")
    assert [(row["agent_id"], row["since"].minute, row["refused"]) for row in found] == agents
    (row,) = log.rows("stuck")
    # as long as nothing moves, nothing says that the log has neither rounds nor ticks
    assert {"round", "tick", "chart"}.isdisjoint(row) == all_runs
    assert (row["timestamp"].minute, row["agents"], row["still_there"]) == states
