"""What is decided where documents and other engines differ, each point by its name."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import CapturingLogger

from prism.errors import RunawayError
from prism.statechart import Configuration, History, State, Statechart, Transition, done
from tests.statechart.nested.phone import Day, Owner, Phone, Sleeper, day, note, phone


def begun(chart: Statechart[Any], agent: Any = None, *events: str) -> Any:
    """Return an agent that has begun, and to which events have happened."""
    agent = agent or Owner()
    chart.begin(agent)
    for event in events:
        assert chart.fire(agent, event) is not None, event
    agent.notes.clear()
    return agent


# Which transition


def test_each_guard_is_asked_once_a_step() -> None:
    """A guard of what lies around both regions is asked once, not once in each."""
    asked: list[int] = []
    chart = day(
        Transition("checks", Day.AWAKE, Day.ASLEEP, lambda a, c: asked.append(1)),
        Transition("checks", Day.IDLE, Day.FEED, lambda a, c: False),
    )
    assert chart.fire(begun(chart, Sleeper(), "wakes"), "checks") is None
    assert len(asked) == 1


# Order


# Internal


# Self-transitions


def test_a_self_transition_exits_and_enters_and_is_not_recorded() -> None:
    """Its timers and the ticks in the state begin anew."""
    chart = phone(Transition("again", Phone.ENGAGING, Phone.ENGAGING), timeouts={Phone.ENGAGING: 3})
    agent = begun(chart, None, "opens")
    chart.tick(agent)
    recorded = len(agent.state_history)
    chart.fire(agent, "again")
    assert agent.notes == ["lock@reading", "unlock@reading"]
    assert (agent.ticks_in_state, len(agent.state_history)) == (0, recorded)
    assert agent.state_memory["ticks"] == {"engaging": 0}


# History


@pytest.mark.parametrize(("deep", "end"), [(True, Phone.REPLYING), (False, Phone.READING)])
def test_a_deep_history_leads_to_the_leaf_and_a_shallow_one_inside(deep: bool, end: Phone) -> None:
    """The shallow one enters the child that was active, and begins there anew."""
    inner = State(Phone.SENT, [Phone.READING, Phone.REPLYING])
    chart = Statechart(
        [Phone.POCKET, State(Phone.ENGAGING, [Phone.BROKEN, inner])],
        [
            Transition("opens", Phone.POCKET, Phone.REPLYING),
            Transition("rings", Phone.ENGAGING, Phone.POCKET),
            Transition("resumes", Phone.POCKET, History(Phone.ENGAGING, deep=deep)),
        ],
        initial=Phone.POCKET,
    )
    assert chart.fire(begun(chart, None, "opens", "rings"), "resumes") is end


@pytest.mark.parametrize("left", [["reading", "sent"], ["broken"], ["gone"], ["engaging"], []])
def test_a_remembered_history_that_the_chart_rules_out_counts_as_none(left: list[str]) -> None:
    """An agent may have been saved under a former chart, in which states lay elsewhere."""
    chart = phone(Transition("resumes", Phone.POCKET, History(Phone.ENGAGING, deep=True)))
    agent = begun(chart)
    agent.state_memory = {"history": {"engaging": left, "gone": ["reading"]}}
    assert chart.fire(agent, "resumes") is Phone.READING
    # and who begins again remembers nothing
    chart.begin(agent)
    assert "history" not in agent.state_memory


# Final


# Settling


def test_eventless_transitions_and_what_is_raised_come_before_queued_fires() -> None:
    """Each step is logged on its own, in that order."""
    logger = CapturingLogger()
    chart = phone(
        Transition(done(Phone.ENGAGING), Phone.ENGAGING, Phone.POCKET),
        Transition("sends", Phone.READING, Phone.SENT, None, lambda a, c: chart.fire(a, "opens")),
        Transition(None, Phone.REPLYING, Phone.SENT, lambda a, c: True),
        logger=logger,
    )
    agent = begun(chart, None, "opens")
    logger.calls.clear()
    assert chart.fire(agent, "sends") is Phone.READING
    triggers = [call.kwargs["trigger"] for call in logger.calls]
    assert triggers == ["sends", "done.state.engaging", "opens"]
    logger.calls.clear()
    assert chart.fire(agent, "writes") is Phone.POCKET
    triggers = [call.kwargs["trigger"] for call in logger.calls]
    assert triggers == ["writes", "always", "done.state.engaging"]


def test_a_tick_settles_once_too() -> None:
    """A guard of an eventless transition reads what others have changed meanwhile."""
    chart = phone(Transition(None, Phone.ENGAGING, Phone.POCKET, lambda a, c: a.is_busy))
    agent = Owner()
    agent.is_busy = False  # type: ignore[attr-defined]
    begun(chart, agent, "opens")
    assert chart.tick(agent) is None
    agent.is_busy = True  # type: ignore[attr-defined]
    assert chart.tick(agent) is Phone.POCKET


def test_an_agent_that_never_settles_is_stopped() -> None:
    """A thousand steps of itself are an error that says where it is."""
    chart = phone(
        Transition(None, Phone.READING, Phone.REPLYING, lambda a, c: True),
        Transition(None, Phone.REPLYING, Phone.READING, lambda a, c: True),
    )
    with pytest.raises(RunawayError, match="did not settle within 1000 steps"):
        chart.fire(begun(chart), "opens")


# Context


def test_settling_has_the_context_of_the_event_and_done_has_none() -> None:
    """Eventless guards and actions get what the event was about."""
    seen: list[Any] = []

    def see(_agent: Any, context: Any) -> bool:
        seen.append(context)
        return True

    chart = phone(
        Transition(None, Phone.REPLYING, Phone.SENT, see),
        Transition(done(Phone.ENGAGING), Phone.ENGAGING, Phone.POCKET, see),
    )
    chart.fire(begun(chart, None, "opens"), "writes", {"to": "ada"})
    assert seen == [{"to": "ada"}, None]


# Faults


def failing(agent: Any, context: Any) -> None:
    """Fail, as an action of a user may."""
    raise ValueError("no")


def test_a_failing_action_is_logged_and_the_others_run() -> None:
    """The step is made all the same."""
    logger = CapturingLogger()
    used = State(Phone.ENGAGING, [Phone.READING], exit=[failing, note("lock")])
    chart = Statechart(
        [Phone.POCKET, used],
        [Transition("rings", Phone.ENGAGING, Phone.POCKET)],
        initial=Phone.READING,
        logger=logger,
    )
    agent = begun(chart)
    assert chart.fire(agent, "rings") is Phone.POCKET
    assert agent.notes == ["lock@reading"]
    assert logger.calls[0].kwargs["exc_info"].args == ("no",)


@pytest.mark.parametrize("is_exit", [True, False])
def test_a_strict_chart_changes_nothing_before_the_commit(is_exit: bool) -> None:
    """What fails in an entry action propagates once the others have run."""
    used = State(
        Phone.ENGAGING,
        [Phone.READING],
        entry=[note("x")] if is_exit else [failing, note("x")],
        exit=failing if is_exit else None,
    )
    chart = Statechart(
        [Phone.POCKET, used],
        [
            Transition("rings", Phone.ENGAGING, Phone.POCKET),
            Transition("opens", Phone.POCKET, Phone.ENGAGING),
        ],
        initial=Phone.READING if is_exit else Phone.POCKET,
        strict=True,
    )
    agent = begun(chart)
    with pytest.raises(ValueError, match="no"):
        chart.fire(agent, "rings" if is_exit else "opens")
    assert agent.state is Phone.READING
    assert agent.notes == ([] if is_exit else ["x@reading"])


# Configurations


def test_a_configuration_is_a_text_with_leaves() -> None:
    """It pickles, copies and compares as text, and one that was read as text works."""
    chart = day()
    agent = begun(chart, Sleeper(), "wakes", "opens")
    state = agent.state
    assert isinstance(state, Configuration)
    assert state == "feed+fresh"
    assert state.leaves == (Day.FEED, Day.FRESH)
    assert pickle.loads(pickle.dumps(state)).leaves == state.leaves
    assert copy.deepcopy(state) == state
    restored = SimpleNamespace(state="feed+fresh")
    assert chart.is_in(restored, Day.PHONE)
    assert chart.fire(restored, "posts") == "writing+fresh"
    assert chart.active(state) == (Day.AWAKE, Day.PHONE, Day.FEED, Day.BODY, Day.FRESH)
