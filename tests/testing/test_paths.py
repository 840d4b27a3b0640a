"""Which paths `assert_path` accepts, and what it cannot read."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents import SocialAgent
from prism.errors import AgentError, FieldValueError
from prism.statechart import AgentState
from prism.testing import assert_path
from tests.testing.paths import CHART, Mood, Plain, complaint, moods, regions, sent

EVALUATING = sent("feed_ready", "sees_post")
FULL = sent("feed_ready", "timeout", "timeout", "feed_ready", max_history_depth=2)
IGNORED = sent("feed_ready", "sees_post", ("decides", {"relevance": 0.1}), "timeout")


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        (EVALUATING, "idle > scrolling > evaluating"),
        (EVALUATING, "idle>scrolling>evaluating"),
        (EVALUATING, ["idle", "scrolling", "evaluating"]),
        (EVALUATING, [AgentState.IDLE, AgentState.SCROLLING, AgentState.EVALUATING]),
        (EVALUATING, "... > scrolling > evaluating"),
        (EVALUATING, "... > evaluating"),
        (EVALUATING, ["...", AgentState.EVALUATING]),
        (FULL, "... > resting > idle > scrolling"),
        (SocialAgent("ada"), "idle"),
        (SimpleNamespace(state="idle"), "idle"),
    ],
)
def test_path_that_was_taken_passes(agent: Any, path: Any) -> None:
    """A path is given as text or as a list, whole or from somewhere on to its end."""
    assert_path(agent, path)


@pytest.mark.parametrize(
    ("agent", "path", "options", "parts"),
    [
        (sent("feed_ready"), "idle > resting", {}, ["to see which guard failed, pass chart="]),
        (SimpleNamespace(state="idle"), "resting > idle", {}, ["it keeps no state_history"]),
        (
            FULL,
            "resting > idle > scrolling",
            {},
            [
                "may have taken another path",
                "may have lost what came before these 2 transitions: raise max_history_depth",
            ],
        ),
        (
            IGNORED,
            "... > evaluating > composing > resting",
            {"chart": CHART},
            [
                "instead, 'decides' led to 'scrolling'",
                "'evaluating' leads to 'composing' by 'decides'",
            ],
        ),
        (
            sent("feed_ready"),
            "idle > scrolling > idle > scrolling",
            {"chart": CHART},
            [
                "'scrolling' leads to 'idle' by 'round_ends'\n",
                "passed     scrolling --round_ends--> idle",
            ],
        ),
        (
            EVALUATING,
            "idle > scrolling > evaluating > composing",
            {"chart": CHART, "context": 0.9},
            [
                "evaluated now, with the given context 0.9:",
                "passed     evaluating --decides--> composing",
            ],
        ),
        (
            SocialAgent("ada"),
            "idle > resting",
            {"chart": CHART},
            ["'idle' leads to 'resting' by no event: the chart has no such transition"],
        ),
    ],
)
def test_a_failure_says_where_the_paths_part(
    agent: Any, path: str, options: dict[str, Any], parts: list[str]
) -> None:
    """The record and the events of that place, with every event that makes the next move."""
    shown = complaint(lambda: assert_path(agent, path, **options))
    assert [part for part in parts if part not in shown] == []


def test_plain_list_is_bounded_by_the_engine() -> None:
    """To 50 records, which are not the whole path; one that an agent keeps itself has no bound."""
    walker, chart = Plain(), moods()
    way = [Mood.CALM, *(chart.fire(walker, trigger) for trigger in ["bumped", "soothed"] * 30)]
    assert_path(walker, ["...", *way[-51:]])
    for path in (way[-51:], way):
        shown = complaint(lambda path=path: assert_path(walker, path))
        assert "lost what came before these 50 transitions: raise max_history_depth" in shown

    class Own:
        def __init__(self) -> None:
            self.state, self.state_history = Mood.CALM, []

        def transition_to(self, new_state: Mood, trigger: str, context: Any = None) -> None:
            self.state_history.append(
                SimpleNamespace(from_state=self.state, to_state=new_state, trigger=trigger)
            )
            self.state = new_state

    own = Own()
    assert way[1:] == [chart.fire(own, trigger) for trigger in ["bumped", "soothed"] * 30]
    assert_path(own, way)


def test_states_set_by_hand_are_part_of_the_path() -> None:
    """A state that was set by hand, without a record, is seen all the same."""
    agent = sent("feed_ready")
    agent.state = AgentState.RESTING
    CHART.fire(agent, "timeout")
    assert_path(agent, "idle > scrolling > resting > idle")
    agent.state = AgentState.COMPOSING
    assert_path(agent, "idle > scrolling > resting > idle > composing")


@pytest.mark.parametrize(
    ("path", "problem"),
    [("idle > scroling", "names 'scroling': use the states idle, scrolling"), ([], "is empty")],
)
def test_empty_path_or_unknown_state_is_refused(path: Any, problem: str) -> None:
    """A state that does not exist is the test's own mistake, and so is an empty path."""
    with pytest.raises(FieldValueError, match=problem):
        assert_path(SocialAgent("ada"), path)


@pytest.mark.parametrize(
    "record", ["idle", ("idle", "feed_ready", "scrolling"), {"to_state": "scrolling"}]
)
def test_history_without_transitions_is_refused(record: Any) -> None:
    """Without transitions, or a state, there is no path; the error says what can be asserted."""
    agent = Plain(AgentState.SCROLLING, [record])
    for path in ("idle > scrolling", "scrolling", "... > idle > scrolling"):
        with pytest.raises(AgentError, match="cannot read the path of Plain") as caught:
            assert_path(agent, path)
        assert "transition_log.transitions(agent)" in str(caught.value)
    with pytest.raises(AgentError, match=r"cannot read the path of Simple.*'state'"):
        assert_path(SimpleNamespace(), "idle")


@given(
    st.lists(
        st.sampled_from(["feed_ready", "sees_post", "ignores", "timeout", "round_ends"]),
        max_size=15,
    )
)
def test_an_agents_own_path_is_the_only_one_that_passes(events: list[str]) -> None:
    """An agent's own states are its path; one more or one less is another path."""
    agent = SocialAgent("ada")
    way = [agent.state]
    for event in events:
        moved = CHART.fire(agent, event)
        way += [] if moved is None else [moved]
    assert_path(agent, way)
    for wrong in ([*way, AgentState.COMPOSING], way[1:], [AgentState.COMPOSING, *way]):
        if wrong:
            complaint(lambda path=wrong: assert_path(agent, path, chart=CHART))


def test_a_recorded_number_is_given_to_guards() -> None:
    """A record keeps a number or a text under the key value; the guards get the number itself."""
    chart, walker = moods(lambda _agent, context: context > 3), Plain()
    chart.fire(walker, "bumped", 5)
    shown = complaint(lambda: assert_path(walker, "calm > angry > gone", chart=chart))
    assert "5:" in shown
    assert "passed     angry --bumped--> gone" in shown


def test_a_path_may_go_through_regions() -> None:
    """A configuration is a step of the path, also once the agent has left it."""
    chart = regions()
    agent = chart.adopt(SimpleNamespace())
    chart.begin(agent)
    for event, path in (("x", "a+c > b+c"), ("o", "a+c > b+c > out")):
        chart.fire(agent, event)
        assert_path(agent, path, chart=chart)
