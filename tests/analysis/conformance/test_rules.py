"""What a chart allows in a log."""

from typing import Any

import pytest

from prism.analysis._conformance.rules import Rules
from prism.statechart import Statechart, Transition, social_media_chart, state_enum

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
RULES = Rules(CHART)


@pytest.mark.parametrize(
    ("move", "faults"),
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
            [("unknown_move", "calm to angry on leave",
               "calm allows bump to angry, bump to gone, leave to gone")],
        ),
        (("angry", "gone", "leave", 4), [("overstayed", "4 ticks in angry", "a time-out after 3")]),
        (("angry", "calm", "timeout", 2),
         [("early_timeout", "2 ticks in angry", "a time-out after 3")]),
        (("mad", "mad", None, None), [("unknown_state", "mad", "the states calm, angry, gone")] * 2
         + [("unknown_trigger", "None", "mad allows no transition")]),
    ],
)  # fmt: skip
def test_transitions_are_checked(move: tuple[Any, ...], faults: list[tuple[str, str, str]]) -> None:
    """A transition has each of its faults, with what the chart would allow, and no other."""
    assert [tuple(fault) for fault in RULES.transition_faults(*move, None)] == faults


@pytest.mark.parametrize(
    ("decision", "faults"),
    [
        (("calm", "bump", ["angry", "gone"], "gone"), []),
        (("calm", "bump", ["gone"], "gone"), []),
        (("calm", "bump", None, "gone"), []),
        (
            ("calm", "bump", ["angry", "calm"], "angry"),
            [("unknown_option", "calm offered on bump", "calm allows angry, gone")],
        ),
        (
            ("gone", "bump", ["calm"], "calm"),
            [("unknown_option", "calm offered on bump", "gone allows no bump")],
        ),
        (
            ("calm", "bump", ["angry", "gone"], "calm"),
            [("not_an_option", "calm chosen", "its options angry, gone")],
        ),
        (
            ("mad", "bump", ["angry"], "angry"),
            [("unknown_state", "mad", "the states calm, angry, gone")],
        ),
    ],
)
def test_decisions_are_checked_by_the_rules(
    decision: tuple[Any, ...], faults: list[tuple[str, str, str]]
) -> None:
    """A decision may offer some or all targets of its trigger, and choose one it offered."""
    assert [tuple(fault) for fault in RULES.decision_faults(*decision)] == faults


def test_agents_threshold_is_the_limit_of_states_without_one() -> None:
    """A state without a limit takes the agent's own, if known and if a time-out leaves it."""
    chart = social_media_chart()
    rules = Rules(chart)
    assert not list(rules.transition_faults("scrolling", "resting", "timeout", 40, None))
    assert [
        fault.kind for fault in rules.transition_faults("scrolling", "resting", "timeout", 40, 5)
    ] == ["overstayed"]
    assert [
        fault.kind for fault in rules.transition_faults("resting", "idle", "timeout", 2, 5)
    ] == ["early_timeout"]
    assert not list(rules.transition_faults("resting", "idle", "timeout", 3, 5))
    assert not list(rules.transition_faults("idle", "scrolling", "feed_ready", 40, 5))


def is_ready(agent: Any, context: Any) -> bool:
    return bool(agent.ready)


CALM, ANGRY = S("calm"), S("angry")
GUARDED, SURE = (
    Transition("timeout", ANGRY, CALM, guard=is_ready),
    Transition("timeout", ANGRY, S("gone")),
)
STAYING = Transition("timeout", ANGRY, ANGRY, guard=is_ready)


@pytest.mark.parametrize(
    ("timeouts", "kinds"),
    [
        ([GUARDED], []),
        ([SURE], ["overstayed"]),
        ([GUARDED, SURE], ["overstayed"]),
        ([STAYING, SURE], []),
        ([Transition("timeout", ANGRY, ANGRY)], []),
        ([], []),
    ],
)
def test_agent_overstays_only_if_its_time_out_is_sure(
    timeouts: list[Any], kinds: list[str]
) -> None:
    """More ticks than the limit are no fault if a guard can block the time-out or it loops."""
    moves = [*timeouts, Transition("leave", ANGRY, CALM)]
    rules = Rules(Statechart(S, moves, CALM, name="mood", timeouts={ANGRY: 2}))
    assert [
        fault.kind for fault in rules.transition_faults("angry", "calm", "leave", 7, None)
    ] == kinds


@pytest.mark.parametrize("timeouts", [[GUARDED], [GUARDED, SURE], [SURE]])
def test_early_time_out_is_a_fault_with_a_guard_too(timeouts: list[Any]) -> None:
    """A time-out before the limit is a fault, whether it has a guard or not."""
    rules = Rules(Statechart(S, timeouts, CALM, name="mood", timeouts={ANGRY: 2}))
    target = "calm" if GUARDED in timeouts else "gone"
    assert [
        fault.kind for fault in rules.transition_faults("angry", target, "timeout", 2, None)
    ] == ["early_timeout"]
    assert not list(rules.transition_faults("angry", target, "timeout", 3, None))
