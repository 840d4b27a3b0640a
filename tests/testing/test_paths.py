"""Asserting which way an agent went."""

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents import SocialAgent
from prism.errors import AgentError, DefinitionError, FieldValueError
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


class Mood(StrEnum):
    """States that are equal to those of other enums, but are not theirs."""

    CALM = "calm"
    ANGRY = "angry"
    GONE = "gone"


@dataclass
class Plain:
    """An agent whose history is a plain list."""

    state: str = Mood.CALM
    state_history: list[Any] = field(default_factory=list)


def exceeds(limit: float) -> Callable[[Any, Any], bool]:
    """Make a guard: the context is a number above the limit."""
    return lambda agent, context: context > limit


def is_urgent(agent: Any, post: Any) -> bool:
    """Guard: the post says so."""
    return bool(post.urgent)


def moods(guard: Any = None, **settings: Any) -> Statechart[Mood]:
    """Make a chart of moods in which one is guarded."""
    moves = [
        Transition("bumped", Mood.CALM, Mood.ANGRY, guard),
        Transition("soothed", Mood.ANGRY, Mood.CALM),
        Transition("bumped", Mood.ANGRY, Mood.GONE, guard),
    ]
    return Statechart(Mood, moves, Mood.CALM, name="moods", **settings)


def complaint(check: Callable[[], None]) -> str:
    """Return the message with which an assertion fails."""
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
        lambda: assert_path(
            agent, "idle > scrolling > evaluating > engaging_like > resting", chart=CHART
        )
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
    shown = complaint(
        lambda: assert_path(sent("feed_ready"), "idle > scrolling > idle > scrolling", chart=CHART)
    )
    assert "'scrolling' leads to 'idle' by 'round_ends'\n" in shown
    assert "passed     scrolling --round_ends--> idle" in shown


def test_given_context_is_put_to_the_guards() -> None:
    """The context that the caller names takes the place of the recorded one."""
    agent = sent("feed_ready", "sees_post")
    path = "idle > scrolling > evaluating > composing"
    assert "failed     evaluating --decides--> composing" in complaint(
        lambda: assert_path(agent, path, chart=CHART)
    )
    shown = complaint(lambda: assert_path(agent, path, chart=CHART, context=0.9))
    assert "asked now, with the context 0.9:" in shown
    assert "passed     evaluating --decides--> composing" in shown


def test_number_is_put_to_the_guards_as_it_was() -> None:
    """A record keeps a number or a text under the key value; the guards get the number itself."""
    chart, walker = moods(exceeds(3)), Plain(Mood.ANGRY)
    chart.fire(walker, "soothed", 1)
    shown = complaint(lambda: assert_path(walker, "angry > gone", chart=chart))
    assert "asked now, with the context of that move, 1:" in shown
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
    assert "asked now, with the recorded context 1:" in shown
    assert "failed     calm --go--> angry" in shown


def test_what_a_record_cannot_tell_is_asked_for() -> None:
    """A guard that raises, since a record keeps only what identifies a post, is not taken to have raised then."""
    chart, walker = moods(is_urgent), Plain()
    chart.fire(walker, "bumped", SimpleNamespace(id="p0", urgent=True))
    chart.fire(walker, "bumped", SimpleNamespace(id="p1", urgent=False))
    last = complaint(lambda: assert_path(walker, "calm > angry > gone", chart=chart)).splitlines()[
        -1
    ]
    assert last.startswith(
        "asked now, with the context of the last move, {'simple_namespace_id': 'p0'}, the guard of "
        "angry --bumped--> gone raises AttributeError: 'dict' object has no attribute 'urgent': "
    )
    assert last.endswith("cannot be told; give context=")
    given = SimpleNamespace(urgent=False)
    shown = complaint(
        lambda: assert_path(walker, "calm > angry > gone", chart=chart, context=given)
    )
    assert "failed     angry --bumped--> gone [is_urgent]" in shown
    wrong = complaint(lambda: assert_path(walker, "calm > angry > gone", chart=chart, context=5))
    assert "raised     angry --bumped--> gone [is_urgent]: AttributeError" in wrong


def test_event_without_a_context_is_known_to_have_had_none() -> None:
    """A guard that raised at an event without a context is shown so; for an event that never came it cannot be told."""
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
        "asked now, with no context, the guard of calm --go--> angry raises TypeError: "
    )
    assert never.endswith("give context=")
    chart.fire(walker, "go")
    shown = complaint(lambda: assert_path(walker, "calm > angry", chart=chart))
    assert "asked now, with no context:\n" in shown
    assert "raised     calm --go--> angry [guard]: TypeError" in shown


def test_context_of_another_move_is_called_so() -> None:
    """For a move that was never made the context of the last one stands in, and is named as such."""
    chart, walker = moods(lambda agent, post: post["topic"] == "music"), Plain()
    chart.fire(walker, "bumped", {"topic": "music"})
    chart.fire(walker, "bumped", {"topic": "dogs"})
    shown = complaint(lambda: assert_path(walker, "calm > angry > gone", chart=chart))
    assert "asked now, with the context of the last move, {'topic': 'music'}:" in shown


def test_end_of_a_path_is_compared_from_its_end() -> None:
    """Where only the end is given, the record and the events shown are those of that place."""
    agent = sent("feed_ready", "sees_post", ("decides", {"relevance": 0.1}), "timeout")
    shown = complaint(
        lambda: assert_path(agent, "... > evaluating > composing > resting", chart=CHART)
    )
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


@pytest.mark.parametrize(
    "settings",
    [{"guard": exceeds(9)}, {"decision_states": [Mood.CALM]}, {"strict": True}],
    ids=lambda each: next(iter(each)),
)
def test_charts_that_differ_in_what_they_allow_are_not_one(settings: Any) -> None:
    """Where living charts have the same name and moves but say different things, none is guessed at."""
    guard = exceeds(3)
    charts, walker = [moods(guard), moods(guard), moods(**{"guard": guard, **settings})], Plain()
    charts[0].fire(walker, "bumped", 1)
    shown = complaint(lambda: assert_path(walker, "calm > angry", context=1))
    assert (
        "to learn which guard said no, give chart=; of the living charts, 'moods' (2 charts) could be"
        in shown
    )
    assert "failed" in complaint(
        lambda: assert_path(walker, "calm > angry", context=1, chart=charts[0])
    )


def test_charts_of_other_states_with_the_same_texts_are_no_candidates() -> None:
    """A chart whose enum only looks like the agent's is no candidate beside one that has the very states."""
    others: Any = StrEnum("Mood", {state.name: state.value for state in Mood})
    other = Statechart(others, [Transition("bumped", others.CALM, others.ANGRY)], others.CALM)
    chart, walker = moods(exceeds(3)), Plain()
    shown = complaint(lambda: assert_path(walker, "calm > angry", context=5))
    assert walker.state in other.states
    assert f"event 'bumped', chart {chart.name!r}" in shown


def test_charts_that_nobody_has_any_more_are_no_candidates() -> None:
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


def test_whatever_else_is_alive_does_not_matter() -> None:
    """Neither a proxy of something that is gone nor a chart whose definition was refused gets in the way."""
    gone = Plain()
    proxy = weakref.proxy(gone)
    del gone
    with pytest.raises(DefinitionError) as refused:
        Statechart(Mood, [], AgentState.IDLE)
    shown = complaint(lambda: assert_path(sent("feed_ready"), "idle > scrolling > evaluating"))
    assert f"chart {CHART.name!r}:" in shown
    assert type(proxy) is weakref.ProxyType
    assert refused.traceback


def test_chart_is_found_among_the_living() -> None:
    """Without a chart, the one that has the agent's states and moves is found by itself."""
    assert "chart 'social_media'" in complaint(
        lambda: assert_path(sent("feed_ready"), "idle > scrolling > evaluating")
    )


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
    shown = complaint(
        lambda: assert_path(agent, "idle > scrolling > resting > idle > composing", chart=CHART)
    )
    assert shown.splitlines()[1:4] == [
        "  expected  ... > resting > idle > composing",
        "  actual    ... > resting > idle > scrolling",
        "                                   ^ here they part",
    ]
    assert "instead, 'feed_ready' led to 'scrolling'" in shown


def test_path_shorter_than_a_full_history_is_wrong() -> None:
    """Whatever a full history has lost, a path with fewer states than it still has is another one, and shown so."""
    agent = sent("feed_ready", "timeout", "timeout", "feed_ready", max_history_depth=3)
    shown = complaint(lambda: assert_path(agent, "idle > scrolling"))
    assert shown.splitlines()[:4] == [
        "agent 'ada' took another path:",
        "  expected                              idle > scrolling",
        "  actual    ... > scrolling > resting > idle > scrolling",
        "                              ^ here they part",
    ]


def test_plain_list_is_known_to_be_bounded() -> None:
    """The engine keeps 50 records of an agent that sets no depth; what it has left is not the whole path."""
    walker, chart = Plain(), moods()
    way = [Mood.CALM, *(chart.fire(walker, trigger) for trigger in ["bumped", "soothed"] * 30)]
    assert_path(walker, ["...", *way[-51:]])
    for path in (way[-51:], way):
        shown = complaint(lambda path=path: assert_path(walker, path))
        assert "agent 'Plain@" in shown
        assert "may have taken another path" in shown
        assert (
            "lost what came before these 50 moves: raise max_history_depth (50 where it is not set)"
            in shown
        )
        assert "here they part" not in shown


def test_history_that_an_agent_keeps_itself_has_no_bound() -> None:
    """An agent with a transition_to of its own keeps what it likes, and its path can be long."""

    class Own:
        def __init__(self) -> None:
            self.state, self.state_history = Mood.CALM, []

        def transition_to(self, new_state: Mood, trigger: str, context: Any = None) -> None:
            self.state_history.append(
                SimpleNamespace(from_state=self.state, to_state=new_state, trigger=trigger)
            )
            self.state = new_state

    walker, chart = Own(), moods()
    way = [Mood.CALM, *(chart.fire(walker, trigger) for trigger in ["bumped", "soothed"] * 30)]
    assert_path(walker, way)


def test_path_longer_than_the_whole_way_shows_where_that_began() -> None:
    """An end that goes back further than the agent's whole way is compared from its end, and nothing is left out."""
    shown = complaint(
        lambda: assert_path(sent("feed_ready"), "... > scrolling > resting > idle > scrolling")
    )
    assert shown.splitlines() == [
        "agent 'ada' took another path:",
        "  expected  ... > scrolling > resting > idle > scrolling",
        "  actual                                idle > scrolling",
        "                              ^ here they part",
        "its history is whole: it began in 'idle'",
    ]
    shown = complaint(
        lambda: assert_path(sent("feed_ready"), "... > resting > idle > composing", chart=CHART)
    )
    assert shown.splitlines()[1:5] == [
        "  expected  ... > resting > idle > composing",
        "  actual                    idle > scrolling",
        "                                   ^ here they part",
        "its history is whole: it began in 'idle'",
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
    shown = complaint(
        lambda: assert_path(SimpleNamespace(state="scrolling", name="bo"), "idle > scrolling")
    )
    assert "it keeps no state_history" in shown


@pytest.mark.parametrize(
    ("path", "problem"),
    [("idle > scroling", "names 'scroling': use the states idle, scrolling"), ([], "is empty")],
)
def test_path_that_cannot_be_meant_is_refused(path: Any, problem: str) -> None:
    """A state that does not exist is the test's own mistake, and so is an empty path."""
    with pytest.raises(FieldValueError, match=problem):
        assert_path(SocialAgent("ada"), path)


@pytest.mark.parametrize(
    "record", ["idle", ("idle", "feed_ready", "scrolling"), {"to_state": "scrolling"}]
)
def test_history_of_something_else_is_refused(record: Any) -> None:
    """A history that does not hold transitions is told apart from another path, with what can be asserted instead."""
    agent = Plain(AgentState.SCROLLING, [record])
    for path in ("idle > scrolling", "scrolling", "... > idle > scrolling"):
        with pytest.raises(AgentError, match="cannot read the path of Plain") as caught:
            assert_path(agent, path)
        assert "transition_log.moves(agent)" in str(caught.value)
        assert "'... > scrolling'" in str(caught.value)
    assert_path(agent, "... > scrolling")
    assert "took another path" in complaint(lambda: assert_path(agent, "... > idle"))


def test_object_without_a_state_is_refused() -> None:
    """What has no state has no path, either."""
    with pytest.raises(
        AgentError, match=r"cannot read the path of SimpleNamespace .*no attribute 'state'"
    ):
        assert_path(SimpleNamespace(), "idle")


@given(
    st.lists(
        st.sampled_from(["feed_ready", "sees_post", "ignores", "timeout", "round_ends"]),
        max_size=15,
    )
)
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
