"""What went wrong in a run."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from prism.analysis import read_log
from prism.runlog import configure
from prism.statechart import Statechart, Transition, state_enum
from tests.kit.tables import faults, transition_counts

WriteLog = Callable[..., Path]


class Agent:
    """An agent that is in a state, and nothing else."""

    def __init__(self, agent_id: str, state: Any) -> None:
        self.agent_id = agent_id
        self.state = state


def breaks(agent: Any, context: Any) -> bool:
    raise KeyError("budget")


def test_guards_and_actions_that_raise_are_counted(tmp_path: Path) -> None:
    """Faults of a loop of one's own are rows, alike ones together, and notes of every table."""
    door = state_enum("Door", ["closed", "open"])
    chart = Statechart(
        door,
        [
            Transition("push", door("closed"), door("open"), guard=breaks),
            Transition("pull", door("closed"), door("open"), action=breaks),
        ],
        initial=door("closed"),
        name="door",
    )
    with configure(tmp_path / "door.jsonl"):
        for number in range(3):
            agent = Agent(f"a{number}", door("closed"))
            assert chart.fire(agent, "push") is None
            assert chart.fire(agent, "push") is None
        assert chart.fire(agent, "pull") is door("open")

    logs = read_log(tmp_path / "door.jsonl")
    shown = ("fault", "chart", "from_state", "to_state", "trigger", "error", "count", "agents")
    ends = ("door", "closed", "open")
    assert faults(logs).select(*shown, "line").rows() == [
        ("guard_failed", *ends, "push", "KeyError: 'budget'", 6, 3, 2),
        ("action_failed", *ends, "pull", "KeyError: 'budget'", 1, 1, 11),
    ]

    transition_counts(logs)
    assert [(note.kind, note.line, note.message) for note in logs.notes] == [
        (
            "guard_failed",
            2,
            "a guard raised an exception 6 times, and counted as false; "
            "`prism log faults` has more",
        ),
        (
            "action_failed",
            11,
            "an action raised an exception once, but its transition took place; `prism log "
            "faults` has more",
        ),
    ]


def test_every_kind_of_fault_has_its_row(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Each fault names where the agent was, what it was about, and why; the gravest come first."""
    about = {"chart": "c", "agent_id": "ann", "trigger": "go"}
    step = {"agent_id": "ann", "turn": 2, "step": "see", "state": "a"}
    cycle = {"agent_id": "ann", "cycle": 2, "state": "a"}
    text = {"agent_id": "ann", "key": "2:see", "text": "t"}
    lines = [
        make.decision("ann", ["a", "b"], "b", source="fallback", reason="timed out"),
        make.decision("ann", ["a", "b"], "b"),
        make.decision("ann", ["a", "b"], "b"),
        make.event("statechart.answer_discarded", **about, asked_in="a", now_in="z", chosen="b"),
        make.event(
            "statechart.answer_discarded",
            **{**about, "asked_in": "a", "now_in": "a", "chosen": "c", "reason": "not_enabled"},
        ),
        make.event("workflow.refused", **step, target="b", reason="the condition 'x' is false"),
        make.event("workflow.run_if_failed", **step, reason="'x' failed: y"),
        make.event("cognition.reset", agent_id="ann", cycle=2, from_state="old", to_state="a"),
        make.event("cognition.refused", **cycle, type="burn", reason="E: r"),
        make.event("cognition.cycle", **cycle, outcome="unusable", reason="E: u"),
        make.event("cognition.cycle", **cycle, outcome="done", reason=None),
        make.event("text.written", **text, source="failed", reason="E: t"),
        make.event("text.written", **text, source="model", reason=None),
        make.event("workflow.step", **step, outcome="skipped", moved_to=None, reason="E: s"),
        make.event("workflow.step", **step, outcome="done", moved_to=None, reason="no"),
        make.event("statechart.action_failed", **about, from_state="a", to_state="b", error="E: a"),
        make.event("statechart.guard_failed", **about, from_state="a", to_state="b", error="E: g"),
    ]
    table = faults(read_log(write_log(lines)))
    shown = ("fault", "from_state", "to_state", "trigger", "error", "count", "agents", "line")
    assert table.select(shown).rows() == [
        ("guard_failed", "a", "b", "go", "E: g", 1, 1, 17),
        ("action_failed", "a", "b", "go", "E: a", 1, 1, 16),
        ("step_failed", "a", None, "see", "E: s", 1, 1, 14),
        ("text_failed", None, None, None, "E: t", 1, 1, 12),
        ("reply_unusable", "a", None, None, "E: u", 1, 1, 10),
        ("action_refused", "a", None, "burn", "E: r", 1, 1, 9),
        ("state_reset", "old", "a", None, "there is no such state", 1, 1, 8),
        ("transition_refused", "a", "b", "see", "the condition 'x' is false", 1, 1, 6),
        ("answer_discarded", "a", "b", "go", "the agent was already in z", 1, 1, 4),
        ("answer_discarded", "a", "c", "go", "its guard no longer passed", 1, 1, 5),
        ("run_if_failed", "a", None, "see", "'x' failed: y", 1, 1, 7),
        ("fallback", "a", "b", "go", "timed out", 1, 1, 1),
    ]


def test_exceptions_of_one_name_are_one_kind(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """Messages that differ are counted together, by the name of their exception."""
    reasons = ["ReplyError: says 'a'", "ReplyError: says 'b'", "timed out", "late"]
    lines = [make.decision("x", ["a"], "a", source="fallback", reason=reason) for reason in reasons]
    table = faults(read_log(write_log(lines)))
    assert table.select("error", "count", "line").rows() == [
        ("ReplyError: says 'a'", 2, 1),
        ("timed out", 1, 3),
        ("late", 1, 4),
    ]
