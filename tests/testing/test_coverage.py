"""The coverage of charts, as it is recorded and reported."""

import asyncio
import gc
import pickle
from collections.abc import Iterator
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents import SocialAgent
from prism.statechart import AgentState, Statechart, Transition, social_media_chart
from prism.telemetry import instrumented
from prism.testing import ScriptedReasoner
from prism.testing._coverage import Recorder, percent_of, report_lines

IDLE, SCROLLING, RESTING = AgentState.IDLE, AgentState.SCROLLING, AgentState.RESTING


def says(agent: Any, context: Any) -> object:
    """Guard: what the event says; raises where it is an exception."""
    if isinstance(context, Exception):
        raise context
    return context


def fails(agent: Any, context: Any) -> None:
    """Action: fail."""
    raise LookupError("x")


def make_chart(name: str = "small", **settings: Any) -> Statechart[AgentState]:
    """Make a chart of two moves from IDLE, the first guarded, and of three others."""
    moves = [
        Transition("go", IDLE, SCROLLING, says),
        Transition("go", IDLE, RESTING),
        Transition("again", IDLE, IDLE),
        Transition("timeout", SCROLLING, RESTING),
        Transition("fail", IDLE, RESTING, action=fails),
    ]
    return Statechart([IDLE, SCROLLING, RESTING], moves, IDLE, name=name, **settings)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Install a recorder for one test."""
    recorder = Recorder()
    with instrumented(recorder):
        yield recorder


def missing(recorder: Recorder) -> list[str]:
    """List everything of the used charts that was never exercised."""
    return [
        text for use in recorder.used() for share in use.shares().values() for text in share.missing
    ]


def test_moves_and_guard_outcomes_count(recorder: Recorder) -> None:
    """A move counts with both its states, and each outcome of its guard by itself."""
    chart = make_chart()
    chart.fire(SocialAgent("ada"), "go", True)
    others = ["idle --again--> idle", "scrolling --timeout--> resting", "idle --fail--> resting"]
    unmade = ["idle --go--> resting", *others]
    guard = "idle --go--> scrolling [says]: never "
    assert missing(recorder) == ["resting", *unmade, f"{guard}failed"]
    chart.fire(SocialAgent("bo"), "go", False)
    assert missing(recorder) == others


def test_what_raised_was_not_exercised(recorder: Recorder) -> None:
    """A guard that raises has no outcome, as the report says; a strict action prevents the move."""
    chart = make_chart(strict=True)
    with pytest.raises(LookupError):
        chart.fire(SocialAgent("ada"), "fail")
    assert recorder.used() == []
    with pytest.raises(LookupError):
        chart.fire(SocialAgent("ada"), "go", LookupError("x"))
    guard = "idle --go--> scrolling [says]: never "
    assert missing(recorder)[-2:] == [f"{guard}passed (raised 1 x)", f"{guard}failed (raised 1 x)"]


def test_every_way_to_fire_counts(recorder: Recorder) -> None:
    """Fires through fire_to, afire and tick count as those through fire do."""
    chart = make_chart(decision_states=[IDLE])
    chart.fire_to(SocialAgent("ada"), "go", RESTING, True)
    script = ScriptedReasoner(["scrolling"])
    asyncio.run(chart.afire(SocialAgent("bo"), "go", True, reasoner=script))
    tired = SocialAgent("cy", state=SCROLLING, timeout_threshold=1, ticks_in_state=1)
    assert chart.tick(tired) is RESTING
    (use,) = recorder.used()
    assert [use.counts[place, "made"] for place in range(5)] == [1, 1, 0, 1, 0]


def test_charts_of_one_definition_are_one(recorder: Recorder) -> None:
    """Charts that look alike are counted together, also those of other processes."""
    charts = [make_chart(), make_chart()]
    charts.append(pickle.loads(pickle.dumps(charts[0])))
    for chart in charts:
        chart.fire(SocialAgent("ada"), "again")
    whole = Recorder()
    for _ in range(2):
        whole.load(recorder.dump())
    assert [use.counts[2, "made"] for use in (*recorder.used(), *whole.used())] == [3, 6]


@pytest.mark.slow
def test_a_recorder_keeps_no_chart_alive(recorder: Recorder) -> None:
    """The definition of a recorded chart, and what its guards hold, goes with the chart."""
    chart = make_chart()
    definition = ref(chart.definition)
    chart.fire(SocialAgent("ada"), "again")
    del chart
    gc.collect()
    assert definition() is None
    assert [use.name for use in recorder.used()] == ["small"]


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["feed_ready", "sees_post", "decides", "ignores", "compose_done", "timeout", "unknown"]
        ),
        st.none() | st.floats(0, 1),
    ),
    max_size=20,
)


@given(EVENTS)
def test_recorded_chart_behaves_as_ever(events: list[tuple[str, Any]]) -> None:
    """A recorded chart behaves as an unrecorded one, and the history agrees with the counts."""
    recorder, chart = Recorder(), social_media_chart()
    one, other = SocialAgent("ada"), SocialAgent("ada")

    def drive(agent: SocialAgent) -> list[Any]:
        return [
            (chart.fire(agent, trigger, context), chart.tick(agent), agent.ticks_in_state)
            for trigger, context in events
        ]

    with instrumented(recorder):
        seen = drive(one)
    assert drive(other) == seen
    moves, others = (
        [(each.from_state, each.trigger, each.to_state, each.context) for each in at.state_history]
        for at in (one, other)
    )
    assert moves == others
    made = sum(use.counts[number, "made"] for use in recorder.used() for number in range(99))
    assert made == len(moves)


def test_several_charts_are_added_up(recorder: Recorder) -> None:
    """Each has a line, and all have one; those that nothing was fired on are only named."""
    for name, context in (("a\x1b[2Jb\nc", True), ("other", False)):
        make_chart(name).fire(SocialAgent("ada"), "go", context)
    social_media_chart()
    lines = list(report_lines(recorder))
    assert lines[3].split() == ["all", "4/6", "67%", "2/10", "20%", "2/4", "50%", "40%"]
    assert lines[-1] == "built but never used: social_media"
    assert percent_of(recorder.used()) == 40.0
    # names do not tell a terminal what to do
    assert all(line.isprintable() for line in lines)
