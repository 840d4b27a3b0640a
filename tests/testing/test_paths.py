"""Asserting which way an agent went."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents import SocialAgent
from prism.errors import AgentError, FieldValueError
from prism.statechart import AgentState, Statechart, Transition, social_media_chart
from prism.testing import assert_path

CHART = social_media_chart()


def sent(*events: Any, **fields: Any) -> SocialAgent:
    """Make an agent and send it events, each a trigger or a trigger with its context."""
    agent = SocialAgent("ada", **fields)
    for event in events:
        trigger, context = event if isinstance(event, tuple) else (event, None)
        CHART.fire(agent, trigger, context)
    return agent


def complaint(check: Callable[[], None]) -> str:
    """Give the message with which an assertion fails."""
    with pytest.raises(AssertionError) as caught:
        check()
    return str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "idle > scrolling > evaluating",
        "idle>scrolling>evaluating",
        ["idle", "scrolling", "evaluating"],
        [AgentState.IDLE, AgentState.SCROLLING, AgentState.EVALUATING],
        "... > scrolling > evaluating",
        "... > evaluating",
        ["...", AgentState.EVALUATING],
    ],
)
def test_path_that_was_taken_passes(path: Any) -> None:
    """A path is given as text or as a list, whole or from somewhere on to its end."""
    assert_path(sent("feed_ready", "sees_post"), path)


def test_agent_that_has_not_moved_has_a_path_of_one_state() -> None:
    """Where an agent began is the first state of its path."""
    assert_path(SocialAgent("ada"), "idle")
    assert_path(SimpleNamespace(state="idle"), "idle")


def test_failure_shows_where_paths_part_and_which_guard_said_no() -> None:
    """Both paths are shown above each other, the place where they part, the events for the missing move, the guards."""
    agent = sent("feed_ready", "sees_post", ("decides", {"relevance": 0.1}), "timeout")
    shown = complaint(
        lambda: assert_path(agent, "idle > scrolling > evaluating > engaging_like > resting", chart=CHART)
    )
    assert shown.splitlines() == [
        "agent 'ada' took another path:",
        "  expected  idle > scrolling > evaluating > engaging_like > resting",
        "  actual    idle > scrolling > evaluating > scrolling     > resting",
        "                                            ^ here they part",
        "instead, 'decides' led to 'scrolling'; 'evaluating' leads to 'engaging_like' by 'decides'",
        "asked now, with the recorded context {'relevance': 0.1}:",
        "agent 'ada' in 'evaluating', event 'decides', chart 'social_media':",
        "  failed     evaluating --decides--> composing [should_engage]",
        "  failed     evaluating --decides--> engaging_like [should_engage]",
        "  passed     evaluating --decides--> scrolling",
        "  fire moves the agent to 'scrolling'",
    ]


def test_failure_names_all_events_for_a_move_that_is_yet_to_come() -> None:
    """Where the path ended too early, every event that makes the next move is explained."""
    shown = complaint(lambda: assert_path(sent("feed_ready"), "idle > scrolling > idle > scrolling", chart=CHART))
    assert "'scrolling' leads to 'idle' by 'round_ends'\n" in shown
    assert "passed     scrolling --round_ends--> idle" in shown


def test_given_context_is_put_to_the_guards() -> None:
    """The context that the caller names takes the place of the recorded one."""
    agent = sent("feed_ready", "sees_post")
    path = "idle > scrolling > evaluating > composing"
    assert "failed     evaluating --decides--> composing" in complaint(lambda: assert_path(agent, path, chart=CHART))
    shown = complaint(lambda: assert_path(agent, path, chart=CHART, context=0.9))
    assert "asked now, with the context 0.9:" in shown
    assert "passed     evaluating --decides--> composing" in shown


def test_end_of_a_path_is_compared_from_its_end() -> None:
    """Where only the end is given, the record and the events shown are those of that place."""
    agent = sent("feed_ready", "sees_post", ("decides", {"relevance": 0.1}), "timeout")
    shown = complaint(lambda: assert_path(agent, "... > evaluating > composing > resting", chart=CHART))
    assert shown.splitlines()[1:6] == [
        "  expected  ... > evaluating > composing > resting",
        "  actual    ... > evaluating > scrolling > resting",
        "                               ^ here they part",
        "instead, 'decides' led to 'scrolling'; 'evaluating' leads to 'composing' by 'decides'",
        "asked now, with the recorded context {'relevance': 0.1}:",
    ]


def test_charts_that_look_alike_are_one() -> None:
    """Several charts with the same name and transitions, such as one for each test, leave no doubt."""
    charts = [social_media_chart(), social_media_chart()]
    shown = complaint(lambda: assert_path(sent("feed_ready"), "idle > scrolling > evaluating"))
    assert f"chart {charts[0].name!r}:" in shown


def test_chart_is_found_among_the_living() -> None:
    """Without a chart, the one that has the agent's states and moves is found by itself."""
    assert "chart 'social_media'" in complaint(lambda: assert_path(sent("feed_ready"), "idle > scrolling > evaluating"))


def test_several_charts_that_fit_are_named() -> None:
    """Where several living charts could be the agent's, none is guessed at."""
    states = [AgentState.IDLE, AgentState.COMPOSING]
    other = Statechart(AgentState, [Transition("go", *states)], AgentState.IDLE, name="other")
    shown = complaint(lambda: assert_path(SocialAgent("ada"), "idle > scrolling"))
    assert "give chart=; of the living charts," in shown
    assert repr(other.name) in shown
    assert "'social_media'" in shown


def test_move_that_no_event_makes_is_told() -> None:
    """A path with a move that the chart does not have says so."""
    shown = complaint(lambda: assert_path(SocialAgent("ada"), "idle > resting", chart=CHART))
    assert "'idle' leads to 'resting' by no event: the chart has no such transition" in shown


def test_path_longer_than_expected_shows_the_rest() -> None:
    """An agent that went on after the end of the path fails, too."""
    shown = complaint(lambda: assert_path(sent("feed_ready", "sees_post"), "idle > scrolling"))
    assert shown.splitlines()[1:] == [
        "  expected  idle > scrolling",
        "  actual    idle > scrolling > evaluating",
        "                               ^ here they part",
    ]


def test_long_paths_are_cut_around_the_place_where_they_part() -> None:
    """Far from where they part, long paths are left out."""
    round_of = ["feed_ready", "timeout", "timeout"]
    agent = sent(*round_of * 5)
    way = ["idle", "scrolling", "resting"] * 5 + ["idle"]
    shown = complaint(lambda: assert_path(agent, [*way[:7], "composing", *way[8:]]))
    assert shown.splitlines()[1:4] == [
        "  expected  ... > idle > scrolling > resting > idle > composing > resting > idle > scrolling > ...",
        "  actual    ... > idle > scrolling > resting > idle > scrolling > resting > idle > scrolling > ...",
        "                                                      ^ here they part",
    ]


def test_full_history_is_not_taken_for_the_whole_path() -> None:
    """Where the history may have lost its beginning, a whole path cannot be asserted, but its end can."""
    agent = sent("feed_ready", "timeout", "timeout", "feed_ready", max_history_depth=2)
    assert_path(agent, "... > resting > idle > scrolling")
    shown = complaint(lambda: assert_path(agent, "resting > idle > scrolling"))
    assert "may have taken another path" in shown
    assert "may have lost what came before these 2 moves: raise max_history_depth" in shown
    assert "here they part" not in shown


def test_full_history_is_compared_from_its_end() -> None:
    """A path longer than a full history is compared with what the history still has."""
    agent = sent("feed_ready", "timeout", "timeout", "feed_ready", max_history_depth=2)
    shown = complaint(lambda: assert_path(agent, "idle > scrolling > resting > idle > composing", chart=CHART))
    assert shown.splitlines()[1:4] == [
        "  expected  ... > resting > idle > composing",
        "  actual    ... > resting > idle > scrolling",
        "                                   ^ here they part",
    ]
    assert "instead, 'feed_ready' led to 'scrolling'" in shown


def test_moves_by_hand_are_part_of_the_path() -> None:
    """A state that was set by hand, without a record, is seen all the same."""
    agent = sent("feed_ready")
    agent.state = AgentState.RESTING
    CHART.fire(agent, "timeout")
    assert_path(agent, "idle > scrolling > resting > idle")
    agent.state = AgentState.COMPOSING
    assert_path(agent, "idle > scrolling > resting > idle > composing")


def test_agent_without_history_is_told() -> None:
    """An object that keeps no history has only its present state, and the failure says so."""
    shown = complaint(lambda: assert_path(SimpleNamespace(state="scrolling", name="bo"), "idle > scrolling"))
    assert "it keeps no state_history" in shown


@pytest.mark.parametrize(
    ("path", "problem"), [("idle > scroling", "names 'scroling': use the states idle, scrolling"), ([], "is empty")]
)
def test_path_that_cannot_be_meant_is_refused(path: Any, problem: str) -> None:
    """A state that does not exist is the test's own mistake, and so is an empty path."""
    with pytest.raises(FieldValueError, match=problem):
        assert_path(SocialAgent("ada"), path)


@dataclass
class Odd:
    """An agent whose history holds something else."""

    state: AgentState
    state_history: list[str]


def test_history_of_something_else_is_refused() -> None:
    """A history that does not hold transitions is told apart from another path."""
    with pytest.raises(AgentError, match="cannot read the path of Odd"):
        assert_path(Odd(AgentState.IDLE, ["scrolling"]), "idle")


@given(st.lists(st.sampled_from(["feed_ready", "sees_post", "ignores", "timeout", "round_ends"]), max_size=15))
def test_an_agents_own_path_is_the_only_one_that_passes(events: list[str]) -> None:
    """The states an agent was in, written down as it went, are its path; with one more or one less they are not."""
    agent = SocialAgent("ada")
    way = [agent.state]
    for event in events:
        moved = CHART.fire(agent, event)
        way += [] if moved is None else [moved]
    assert_path(agent, way)
    for wrong in ([*way, AgentState.COMPOSING], way[1:], [AgentState.COMPOSING, *way]):
        if wrong:
            complaint(lambda path=wrong: assert_path(agent, path, chart=CHART))
