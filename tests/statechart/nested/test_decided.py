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
from tests.statechart.nested.phone import AWAKE, Day, Owner, Phone, Sleeper, day, note, phone


def begun(chart: Statechart[Any], agent: Any = None, *events: str) -> Any:
    """Return an agent that has begun, and to which events have happened."""
    agent = agent or Owner()
    chart.begin(agent)
    for event in events:
        assert chart.fire(agent, event) is not None, event
    agent.notes.clear()
    return agent


# Which transition


def test_inner_transitions_come_before_outer_ones() -> None:
    """Of an event that a leaf and its composite react to, the leaf's transition is made."""
    chart = phone(Transition("rings", Phone.READING, Phone.REPLYING))
    agent = begun(chart, None, "opens")
    assert chart.fire(agent, "rings") is Phone.REPLYING
    assert chart.fire(agent, "rings") is Phone.POCKET


def test_each_guard_is_asked_once_a_step() -> None:
    """A guard of what lies around both regions is asked once, not once in each."""
    asked: list[int] = []
    chart = day(
        Transition("checks", Day.AWAKE, Day.ASLEEP, lambda a, c: asked.append(1)),
        Transition("checks", Day.IDLE, Day.FEED, lambda a, c: False),
    )
    assert chart.fire(begun(chart, Sleeper(), "wakes"), "checks") is None
    assert len(asked) == 1


def test_of_regions_in_conflict_the_inner_source_wins() -> None:
    """Though the outer transition is that of an earlier region, too."""
    chart = day(Transition("noon", Day.AWAKE, Day.ASLEEP), Transition("noon", Day.FRESH, Day.TIRED))
    assert chart.fire(begun(chart, Sleeper(), "wakes"), "noon") == "idle+tired"


# Order


def test_exits_run_innermost_first_and_entries_outermost_first() -> None:
    """Between them runs the transition's own action, still in the old state."""
    inner = State(Phone.READING, entry=note("+reading"), exit=note("-reading"))
    used = State(Phone.ENGAGING, [inner, Phone.SENT], entry=note("+used"), exit=note("-used"))
    chart = Statechart(
        [Phone.POCKET, used],
        [
            Transition("opens", Phone.POCKET, Phone.ENGAGING, None, note("opening")),
            Transition("rings", Phone.ENGAGING, Phone.POCKET, None, note("closing")),
        ],
        initial=Phone.POCKET,
    )
    agent = begun(chart)
    chart.fire(agent, "opens")
    assert agent.notes == ["opening@pocket", "+used@reading", "+reading@reading"]
    agent.notes.clear()
    chart.fire(agent, "rings")
    assert agent.notes == ["-reading@reading", "-used@reading", "closing@reading"]


# Internal


def test_an_internal_transition_does_not_leave_its_composite() -> None:
    """The same transition, not internal, leaves and enters the composite."""
    chart = phone(
        Transition("swipes", Phone.ENGAGING, Phone.REPLYING, internal=True),
        Transition("restarts", Phone.ENGAGING, Phone.REPLYING),
    )
    agent = begun(chart, None, "opens")
    assert chart.fire(agent, "swipes") is Phone.REPLYING
    assert agent.notes == []
    chart.fire(agent, "restarts")
    assert agent.notes == ["lock@replying", "unlock@replying"]


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


def test_a_history_leads_back_to_where_the_composite_was_left() -> None:
    """Before it was left for the first time it leads to the default, else the initial state."""
    chart = phone(
        Transition("resumes", Phone.POCKET, History(Phone.ENGAGING)),
        Transition("jumps", Phone.POCKET, History(Phone.ENGAGING, default=Phone.REPLYING)),
    )
    agent = begun(chart)
    assert chart.fire(agent, "jumps") is Phone.REPLYING
    chart.fire(agent, "rings")
    assert chart.fire(agent, "resumes") is Phone.REPLYING
    assert chart.fire(begun(chart), "resumes") is Phone.READING


@pytest.mark.parametrize("left", [["reading", "sent"], ["broken"], ["gone"], ["engaging"], []])
def test_a_remembered_history_that_the_chart_rules_out_counts_as_none(left: list[str]) -> None:
    """An agent may have been saved under a former chart, in which states lay elsewhere."""
    chart = phone(Transition("resumes", Phone.POCKET, History(Phone.ENGAGING, deep=True)))
    agent = begun(chart)
    agent.state_memory = {"history": {"engaging": left, "gone": ["reading"]}}
    assert chart.fire(agent, "resumes") is Phone.READING


# Final


def test_a_final_state_inside_raises_done_of_its_parent() -> None:
    """The step behind it is made at once, and logged as one of its own."""
    chart = phone(Transition(done(Phone.ENGAGING), Phone.ENGAGING, Phone.POCKET))
    agent = begun(chart, None, "opens", "writes")
    assert chart.fire(agent, "sends") is Phone.POCKET
    assert [entry.trigger for entry in agent.state_history][-2:] == ["sends", "done.state.engaging"]


def test_a_parallel_state_is_done_when_all_its_regions_are() -> None:
    """The first region alone raises only its own end."""
    ended = Statechart(
        [Day.ASLEEP, AWAKE],
        [
            Transition("wakes", Day.ASLEEP, Day.AWAKE),
            Transition("posts", Day.IDLE, Day.WRITING),
            Transition("tires", Day.FRESH, Day.TIRED),
            Transition(done(Day.AWAKE), Day.AWAKE, Day.ASLEEP),
        ],
        initial=Day.ASLEEP,
        final_states=[Day.WRITING, Day.TIRED],
    )
    agent = begun(ended, Sleeper(), "wakes")
    assert ended.fire(agent, "tires") == "idle+tired"
    assert ended.fire(agent, "posts") is Day.ASLEEP


def test_a_final_state_at_the_top_ends_the_agent() -> None:
    """It reacts to nothing, and no tick moves it."""
    chart = phone(Transition("falls", Phone.ENGAGING, Phone.BROKEN))
    agent = begun(chart, None, "opens", "falls")
    assert chart.final_states == {Phone.BROKEN}
    assert chart.fire(agent, "opens") is None
    assert all(chart.tick(agent) is None for _ in range(20))


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


# When it commits


def test_an_action_may_know_the_chart_that_a_run_has_bound() -> None:
    """What it fires there waits until the step is made."""
    seen: list[Any] = []

    def goes_on(agent: Any, _context: Any) -> None:
        seen.append(declared.fire(agent, "writes"))

    used = State(Phone.ENGAGING, [Phone.READING, Phone.REPLYING, Phone.SENT], entry=goes_on)
    declared = phone(states=[Phone.POCKET, used, Phone.BROKEN])
    owner = Owner()
    assert declared.bound("run", None, lambda: 0.0).fire(owner, "opens") is Phone.REPLYING
    assert seen == [None]
    assert [each.trigger for each in owner.state_history] == ["opens", "writes"]


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
