"""How a failed `assert_path` explains the path that an agent took."""

import gc
import weakref
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest

from prism.agents import SocialAgent
from prism.errors import DefinitionError
from prism.statechart import AgentState, Statechart, Transition, social_media_chart
from prism.testing import assert_path
from tests.testing.paths import CHART, Mood, Plain, complaint, exceeds, is_urgent, moods, sent

pytestmark = pytest.mark.usefixtures("no_other_charts")


class Once(StrEnum):
    """States of which no other test has a chart."""

    NOW = "now"
    THEN = "then"


def test_failure_shows_the_difference_and_the_failed_guard() -> None:
    """A failure shows both paths, where they differ, and the events and guards in between."""
    agent = sent("feed_ready", "sees_post", ("decides", {"relevance": 0.1}), "timeout")
    shown = complaint(
        lambda: assert_path(
            agent, "idle > scrolling > evaluating > engaging_like > resting", chart=CHART
        )
    )
    assert shown.splitlines() == [
        "agent 'ada' took another path:",
        "  expected  idle > scrolling > evaluating > engaging_like > resting",
        "  actual    idle > scrolling > evaluating > scrolling     > resting",
        "                                            ^ they differ here",
        "instead, 'decides' led to 'scrolling'; 'evaluating' leads to 'engaging_like' by 'decides'",
        "evaluated now, with the recorded context {'relevance': 0.1}:",
        "agent 'ada' in 'evaluating', event 'decides', chart 'social_media':",
        "  failed     evaluating --decides--> composing [should_engage]",
        "  failed     evaluating --decides--> engaging_like [should_engage]",
        "  passed     evaluating --decides--> scrolling",
        "  fire moves the agent to 'scrolling'",
    ]


def test_failure_names_all_events_for_a_missing_transition() -> None:
    """Where the path ended too early, every event that makes the next move is explained."""
    shown = complaint(
        lambda: assert_path(sent("feed_ready"), "idle > scrolling > idle > scrolling", chart=CHART)
    )
    assert "'scrolling' leads to 'idle' by 'round_ends'\n" in shown
    assert "passed     scrolling --round_ends--> idle" in shown


def test_guards_are_evaluated_with_the_given_context() -> None:
    """The context that the caller names takes the place of the recorded one."""
    agent = sent("feed_ready", "sees_post")
    path = "idle > scrolling > evaluating > composing"
    assert "failed     evaluating --decides--> composing" in complaint(
        lambda: assert_path(agent, path, chart=CHART)
    )
    shown = complaint(lambda: assert_path(agent, path, chart=CHART, context=0.9))
    assert "evaluated now, with the context 0.9:" in shown
    assert "passed     evaluating --decides--> composing" in shown


def test_guards_are_evaluated_with_a_recorded_number() -> None:
    """A record keeps a number or a text under the key value; the guards get the number itself."""
    chart, walker = moods(exceeds(3)), Plain(Mood.ANGRY)
    chart.fire(walker, "soothed", 1)
    shown = complaint(lambda: assert_path(walker, "angry > gone", chart=chart))
    assert "evaluated now, with the context of that transition, 1:" in shown
    assert "failed     angry --bumped--> gone" in shown
    chart = Statechart(
        Mood,
        [
            Transition("go", Mood.CALM, Mood.ANGRY, exceeds(3)),
            Transition("go", Mood.CALM, Mood.GONE),
        ],
        Mood.CALM,
    )
    chart.fire(walker, "go", 1)
    shown = complaint(lambda: assert_path(walker, "angry > calm > angry", chart=chart))
    assert "evaluated now, with the recorded context 1:" in shown
    assert "failed     calm --go--> angry" in shown


def test_failure_asks_for_a_context_that_a_record_lacks() -> None:
    """A guard that raises on a recorded context is not taken to have raised at the event."""
    chart, walker = moods(is_urgent), Plain()
    chart.fire(walker, "bumped", SimpleNamespace(id="p0", urgent=True))
    chart.fire(walker, "bumped", SimpleNamespace(id="p1", urgent=False))
    last = complaint(lambda: assert_path(walker, "calm > angry > gone", chart=chart)).splitlines()[
        -1
    ]
    assert last.startswith(
        "evaluated now, with the context of the last transition, {'simple_namespace_id': 'p0'}, "
        "the guard of "
        "angry --bumped--> gone raises AttributeError: 'dict' object has no attribute 'urgent': "
    )
    assert last.endswith("is unknown; pass context=")
    given = SimpleNamespace(urgent=False)
    shown = complaint(
        lambda: assert_path(walker, "calm > angry > gone", chart=chart, context=given)
    )
    assert "failed     angry --bumped--> gone [is_urgent]" in shown
    wrong = complaint(lambda: assert_path(walker, "calm > angry > gone", chart=chart, context=5))
    assert "raised     angry --bumped--> gone [is_urgent]: AttributeError" in wrong


def test_event_without_a_context_is_evaluated_without_one() -> None:
    """A guard that raised without a context is shown if the event came, else it is unknown."""
    chart = Statechart(
        Mood,
        [
            Transition("go", Mood.CALM, Mood.ANGRY, exceeds(3)),
            Transition("go", Mood.CALM, Mood.GONE),
        ],
        Mood.CALM,
    )
    walker = Plain()
    never = complaint(lambda: assert_path(walker, "calm > angry", chart=chart)).splitlines()[-1]
    assert never.startswith(
        "evaluated now, with no context, the guard of calm --go--> angry raises TypeError: "
    )
    assert never.endswith("pass context=")
    chart.fire(walker, "go")
    shown = complaint(lambda: assert_path(walker, "calm > angry", chart=chart))
    assert "evaluated now, with no context:\n" in shown
    assert "raised     calm --go--> angry [guard]: TypeError" in shown


def test_context_of_another_transition_is_named_so() -> None:
    """For a missing event the context of the last transition stands in, and is named so."""
    chart, walker = moods(lambda agent, post: post["topic"] == "music"), Plain()
    chart.fire(walker, "bumped", {"topic": "music"})
    chart.fire(walker, "bumped", {"topic": "dogs"})
    shown = complaint(lambda: assert_path(walker, "calm > angry > gone", chart=chart))
    assert "evaluated now, with the context of the last transition, {'topic': 'music'}:" in shown


def test_charts_of_one_definition_count_as_one() -> None:
    """Several charts with the same name and transitions, one for each test, count as one."""
    charts = [social_media_chart(), social_media_chart()]
    shown = complaint(lambda: assert_path(sent("feed_ready"), "idle > scrolling > evaluating"))
    assert f"chart {charts[0].name!r}:" in shown


@pytest.mark.slow
def test_a_chart_is_found_after_its_equal_is_gone() -> None:
    """Of two equal charts the one that is left is found, whichever was made first."""
    first, second = (Statechart(Once, [Transition("go", *Once)], Once.NOW) for _ in range(2))
    del first
    gc.collect()
    shown = complaint(lambda: assert_path(Plain(Once.NOW), "now > then"))
    assert f"chart {second.name!r}:" in shown


@pytest.mark.parametrize(
    "settings",
    [{"guard": exceeds(9)}, {"decision_states": [Mood.CALM]}, {"strict": True}],
    ids=lambda each: next(iter(each)),
)
@pytest.mark.slow
def test_charts_that_differ_in_what_they_allow_are_ambiguous(settings: Any) -> None:
    """If living charts of the same name differ in what they allow, none is chosen."""
    guard = exceeds(3)
    charts, walker = [moods(guard), moods(guard), moods(**{"guard": guard, **settings})], Plain()
    charts[0].fire(walker, "bumped", 1)
    shown = complaint(lambda: assert_path(walker, "calm > angry", context=1))
    assert (
        "to see which guard failed, pass chart=; of the charts in memory, 'moods' (2 charts) "
        "could be" in shown
    )
    assert "failed" in complaint(
        lambda: assert_path(walker, "calm > angry", context=1, chart=charts[0])
    )


@pytest.mark.slow
def test_charts_of_another_enum_are_not_candidates() -> None:
    """A chart of another enum with the same texts is not a candidate."""
    others: Any = StrEnum("Mood", {state.name: state.value for state in Mood})
    other = Statechart(others, [Transition("bumped", others.CALM, others.ANGRY)], others.CALM)
    chart, walker = moods(exceeds(3)), Plain()
    shown = complaint(lambda: assert_path(walker, "calm > angry", context=5))
    assert walker.state in other.states
    assert f"event 'bumped', chart {chart.name!r}" in shown


@pytest.mark.slow
def test_unreferenced_charts_are_not_candidates() -> None:
    """A chart of an earlier test, which only waits for the garbage collector, leaves no doubt."""
    gc.disable()
    try:
        moods(exceeds(9))
        chart, walker = moods(exceeds(3)), Plain()
        shown = complaint(lambda: assert_path(walker, "calm > angry", context=5))
    finally:
        gc.enable()
    assert f"event 'bumped', chart {chart.name!r}" in shown
    assert "passed     calm --bumped--> angry" in shown


def test_dead_proxies_and_refused_charts_are_ignored() -> None:
    """A dead proxy and a chart whose definition was refused do not disturb the search."""
    gone = Plain()
    proxy = weakref.proxy(gone)
    del gone
    with pytest.raises(DefinitionError) as refused:
        Statechart(Mood, [], AgentState.IDLE)
    chart = social_media_chart()
    shown = complaint(lambda: assert_path(sent("feed_ready"), "idle > scrolling > evaluating"))
    assert f"chart {chart.name!r}:" in shown
    assert type(proxy) is weakref.ProxyType
    assert refused.traceback


def test_chart_is_found_among_the_living() -> None:
    """Without a chart, the one that has the agent's states and moves is found by itself."""
    chart = social_media_chart()
    assert f"chart {chart.name!r}" in complaint(
        lambda: assert_path(sent("feed_ready"), "idle > scrolling > evaluating")
    )


@pytest.mark.slow
def test_several_fitting_charts_are_named() -> None:
    """Where several living charts could be the agent's, none is guessed at."""
    states = [AgentState.IDLE, AgentState.COMPOSING]
    other = Statechart(AgentState, [Transition("go", *states)], AgentState.IDLE, name="other")
    chart = social_media_chart()
    shown = complaint(lambda: assert_path(SocialAgent("ada"), "idle > scrolling"))
    assert "pass chart=; of the charts in memory," in shown
    assert repr(other.name) in shown
    assert repr(chart.name) in shown


def test_transition_that_no_event_causes_is_reported() -> None:
    """A path with a move that the chart does not have says so."""
    shown = complaint(lambda: assert_path(SocialAgent("ada"), "idle > resting", chart=CHART))
    assert "'idle' leads to 'resting' by no event: the chart has no such transition" in shown


def test_path_longer_than_expected_shows_the_rest() -> None:
    """An agent that went on after the end of the path fails, too."""
    shown = complaint(lambda: assert_path(sent("feed_ready", "sees_post"), "idle > scrolling"))
    assert shown.splitlines()[1:] == [
        "  expected  idle > scrolling",
        "  actual    idle > scrolling > evaluating",
        "                               ^ they differ here",
    ]


def test_long_paths_are_cut_around_the_difference() -> None:
    """Long paths are shown only around the place where they differ."""
    rest = "> resting > idle > scrolling > ..."
    round_of = ["feed_ready", "timeout", "timeout"]
    agent = sent(*round_of * 5)
    way = ["idle", "scrolling", "resting"] * 5 + ["idle"]
    shown = complaint(lambda: assert_path(agent, [*way[:7], "composing", *way[8:]]))
    assert shown.splitlines()[1:4] == [
        f"  expected  ... > idle > scrolling > resting > idle > composing {rest}",
        f"  actual    ... > idle > scrolling > resting > idle > scrolling {rest}",
        "                                                      ^ they differ here",
    ]


def test_path_longer_than_the_history_shows_where_it_began() -> None:
    """A path longer than the agent's is compared end to end, and shown in full."""
    shown = complaint(
        lambda: assert_path(sent("feed_ready"), "... > scrolling > resting > idle > scrolling")
    )
    assert shown.splitlines() == [
        "agent 'ada' took another path:",
        "  expected  ... > scrolling > resting > idle > scrolling",
        "  actual                                idle > scrolling",
        "                              ^ they differ here",
        "its history is complete: it began in 'idle'",
    ]
    shown = complaint(
        lambda: assert_path(sent("feed_ready"), "... > resting > idle > composing", chart=CHART)
    )
    assert shown.splitlines()[1:5] == [
        "  expected  ... > resting > idle > composing",
        "  actual                    idle > scrolling",
        "                                   ^ they differ here",
        "its history is complete: it began in 'idle'",
    ]
    assert "instead, 'feed_ready' led to 'scrolling'" in shown
