"""Tests of the coverage of charts, recorded and reported."""

import asyncio
import gc
import pickle
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents import SocialAgent
from prism.statechart import AgentState, Statechart, Transition, social_media_chart
from prism.telemetry import instrumented
from prism.testing import ScriptedReasoner
from prism.testing._coverage import (
    ChartUse,
    Recorder,
    percent_of,
    report_lines,
)

IDLE, SCROLLING, RESTING = AgentState.IDLE, AgentState.SCROLLING, AgentState.RESTING


def says(agent: Any, context: Any) -> object:
    """Guard: what the event says; raises where it is an exception."""
    if isinstance(context, Exception):
        raise context
    return context


def make_chart(
    *, action: Any = None, strict: bool = False, decides: bool = False
) -> Statechart[AgentState]:
    """Make a chart of two moves from IDLE, the first guarded, and one of a state to itself."""
    return Statechart(
        [IDLE, SCROLLING, RESTING],
        [
            Transition("go", IDLE, SCROLLING, says, action),
            Transition("go", IDLE, RESTING),
            Transition("again", IDLE, IDLE),
            Transition("timeout", SCROLLING, RESTING),
        ],
        IDLE,
        name="small",
        strict=strict,
        decision_states=[IDLE] if decides else [],
    )


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Install a recorder for one test."""
    recorder = Recorder()
    with instrumented(recorder):
        yield recorder


@pytest.fixture
def recorded(recorder: Recorder) -> Callable[..., tuple[Statechart[AgentState], ChartUse]]:
    """Return a maker of the test's one chart and its record."""

    def make(**settings: Any) -> tuple[Statechart[AgentState], ChartUse]:
        chart = make_chart(**settings)
        (use,) = recorder.charts.values()
        return chart, use

    return make


def missing(use: ChartUse) -> list[str]:
    """List everything that was never exercised."""
    return [text for share in use.shares().values() for text in share.missing]


def test_moves_and_guard_outcomes_count(recorded: Any) -> None:
    """A move counts with both its states, and each outcome of its guard by itself."""
    chart, use = recorded()
    chart.fire(SocialAgent("ada"), "go", True)
    assert missing(use) == [
        "resting",
        "idle --go--> resting",
        "idle --again--> idle",
        "scrolling --timeout--> resting",
        "idle --go--> scrolling [says]: never failed",
    ]
    chart.fire(SocialAgent("bo"), "go", False)
    assert missing(use) == ["idle --again--> idle", "scrolling --timeout--> resting"]


def test_guard_that_raised_has_shown_no_outcome(recorded: Any) -> None:
    """A guard that raises has neither passed nor failed; the report says so."""
    chart, use = recorded(strict=True)
    with pytest.raises(LookupError):
        chart.fire(SocialAgent("ada"), "go", LookupError("x"))
    assert use.shares()["guards"].missing == [
        "idle --go--> scrolling [says]: never passed (raised 1 x)",
        "idle --go--> scrolling [says]: never failed (raised 1 x)",
    ]


def fails(agent: Any, context: Any) -> None:
    """Action: fail."""
    raise LookupError("x")


def test_move_that_a_strict_action_prevents_does_not_count(recorder: Recorder) -> None:
    """Where the action of a strict chart raises, nothing was exercised."""
    agent = SocialAgent("ada")
    chart = Statechart(
        [IDLE, RESTING], [Transition("go", IDLE, RESTING, action=fails)], IDLE, strict=True
    )
    with pytest.raises(LookupError):
        chart.fire(agent, "go")
    assert agent.state is IDLE
    assert recorder.used() == []


def test_every_way_to_fire_counts(recorded: Any) -> None:
    """Fires through fire_to, afire and tick count as those through fire do."""
    chart, use = recorded(decides=True)
    chart.fire_to(SocialAgent("ada"), "go", RESTING, True)
    asyncio.run(
        chart.afire(SocialAgent("bo"), "go", True, reasoner=ScriptedReasoner(["scrolling"]))
    )
    tired = SocialAgent("cy", state=SCROLLING, timeout_threshold=1, ticks_in_state=1)
    assert chart.tick(tired) is RESTING
    assert [use.counts[place, "made"] for place in range(4)] == [1, 1, 0, 1]


def test_charts_of_one_definition_are_one(recorder: Recorder) -> None:
    """Charts that look alike are counted together; another name is another chart."""
    charts = [make_chart(), make_chart()]
    charts.append(pickle.loads(pickle.dumps(charts[0])))
    social_media_chart()
    for chart in charts:
        chart.fire(SocialAgent("ada"), "again")
    assert [chart.name for chart in recorder.charts.values()] == ["small", "social_media"]
    (use,) = recorder.used()
    assert use.counts[2, "made"] == 3


def test_other_processes_add_up() -> None:
    """One recorder can load what another dumped: counts add up, and new charts come along."""
    whole = Recorder()
    for context in (True, False):
        recorder = Recorder()
        with instrumented(recorder):
            make_chart().fire(SocialAgent("ada"), "go", context)
            if context:
                social_media_chart()
        whole.load(recorder.dump())
    small, social = whole.charts.values()
    assert small.counts == {(0, "made"): 1, (0, "passed"): 1, (0, "failed"): 1, (1, "made"): 1}
    assert (social.name, dict(social.counts)) == ("social_media", {})


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
    moves = [
        (record.from_state, record.trigger, record.to_state, record.context)
        for record in one.state_history
    ]
    assert moves == [
        (each.from_state, each.trigger, each.to_state, each.context) for each in other.state_history
    ]
    made = sum(use.counts[number, "made"] for use in recorder.used() for number in range(99))
    assert made == len(moves)


def is_late(agent: object, context: object) -> bool:
    """Guard: the event says so."""
    return bool(context)


def make_small_chart(name: str = "small") -> Statechart[AgentState]:
    """Make a chart of two states."""
    moves = [Transition("go", IDLE, RESTING, is_late), Transition("back", RESTING, IDLE)]
    return Statechart([IDLE, RESTING], moves, IDLE, name=name)


def record(*events: tuple[str, str, object]) -> Recorder:
    """Record charts by name, each with an event and its context for a new agent."""
    recorder = Recorder()
    with instrumented(recorder):
        for name, trigger, context in events:
            make_small_chart(name).fire(SocialAgent("ada"), trigger, context)
    return recorder


def test_several_charts_are_added_up() -> None:
    """Several charts have a line each, and one for all of them."""
    recorder = record(("small", "go", True), ("other", "go", False))
    lines = list(report_lines(recorder))
    assert [line.split()[0] for line in lines[:4]] == ["chart", "small", "other", "all"]
    assert lines[3].split() == ["all", "3/4", "75%", "1/4", "25%", "2/4", "50%", "50%"]
    assert percent_of(recorder.used()) == 50.0


def test_charts_that_were_only_built_are_named() -> None:
    """A chart that nothing was fired on is named, and does not count."""
    recorder = record(("small", "go", True), ("idle_one", "unknown", None))
    with instrumented(recorder):
        social_media_chart()
    assert list(report_lines(recorder))[-1] == "built but never used: idle_one, social_media"
    assert percent_of(recorder.used()) == 66.6


def test_a_terminal_is_not_told_what_to_do() -> None:
    """Control characters in names are not printed, and each entry stays on its line."""
    lines = list(report_lines(record(("a\x1b[2Jb\nc", "go", True))))
    assert len(lines) == 5
    assert all(line.isprintable() for line in lines)
