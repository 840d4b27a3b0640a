"""What is decided where documents and other engines differ, each point by its name."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

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


def test_each_guard_is_asked_once_a_step() -> None:
    """A guard of what lies around both regions is asked once, not once in each."""
    asked: list[int] = []
    chart = day(
        Transition("checks", Day.AWAKE, Day.ASLEEP, lambda a, c: asked.append(1)),
        Transition("checks", Day.IDLE, Day.FEED, lambda a, c: False),
    )
    assert chart.fire(begun(chart, Sleeper(), "wakes"), "checks") is None
    assert len(asked) == 1


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


@pytest.mark.parametrize("left", [["reading", "sent"], ["broken"], ["gone"], ["engaging"], []])
def test_a_remembered_history_that_the_chart_rules_out_counts_as_none(left: list[str]) -> None:
    """An agent may have been saved under a former chart, in which states lay elsewhere."""
    chart = phone(Transition("resumes", Phone.POCKET, History(Phone.ENGAGING, deep=True)))
    agent = begun(chart)
    agent.state_memory = {"history": {"engaging": left, "gone": ["reading"]}, "mine": 1}
    assert chart.fire(agent, "resumes") is Phone.READING
    # and who begins again remembers nothing but the application's own
    chart.begin(agent)
    assert agent.state_memory == {"mine": 1}


# Final


def test_a_parallel_is_done_once_all_its_regions_are() -> None:
    """Each region is done when a final state inside it is entered."""
    chart = day(
        Transition("ends", Day.IDLE, Day.WRITING),
        Transition(done(Day.PHONE), Day.FRESH, Day.TIRED),
        Transition(done(Day.AWAKE), Day.AWAKE, Day.ASLEEP),
        final_states=[Day.WRITING, Day.TIRED],
    )
    agent = begun(chart, Sleeper(), "wakes")
    assert chart.fire(agent, "ends") is Day.ASLEEP
    agent = begun(chart, agent, "wakes", "opens", "tires")
    assert agent.state == "feed+tired"


# Settling


def test_a_tick_settles_once_too() -> None:
    """A guard of an eventless transition reads what others have changed meanwhile."""
    chart = phone(Transition(None, Phone.ENGAGING, Phone.POCKET, lambda a, c: a.is_busy))
    agent = Owner()
    agent.is_busy = False  # type: ignore[attr-defined]
    begun(chart, agent, "opens")
    assert chart.tick(agent) is None
    agent.is_busy = True  # type: ignore[attr-defined]
    assert chart.tick(agent) is Phone.POCKET


def test_eventless_transitions_follow_what_is_done() -> None:
    """They come before whatever else was raised."""
    chart = phone(
        Transition(done(Phone.ENGAGING), Phone.ENGAGING, Phone.BROKEN),
        Transition(None, Phone.BROKEN, Phone.POCKET),
        final_states=[Phone.SENT],
    )
    assert chart.fire(begun(chart, None, "opens", "writes"), "sends") is Phone.POCKET


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


def test_a_guard_that_fails_behind_an_action_propagates_from_a_strict_chart() -> None:
    """Its event waited for the transition of which the action fired it."""
    chart = phone(
        Transition("lifts", Phone.POCKET, Phone.READING, None, lambda a, c: chart.fire(a, "calls")),
        Transition("calls", Phone.READING, Phone.SENT, failing),
        strict=True,
    )
    agent = begun(chart)
    with pytest.raises(ValueError, match="no"):
        chart.fire(agent, "lifts")
    assert agent.state is Phone.READING


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


STEPS = [
    Transition("thinks", Day.FEED, Day.FEED, action=note("reads on")),
    Transition("thinks", Day.FEED, Day.WRITING, action=note("writes")),
    Transition("closes", Day.FEED, Day.IDLE),
    Transition("opens", Day.IDLE, Day.FEED),
    Transition("tires", Day.FRESH, Day.TIRED),
]
STAYS, WRITES = "feed+fresh", "writing+fresh"


@pytest.mark.parametrize("has_history", [True, False])
@pytest.mark.parametrize(
    ("choice", "meanwhile", "state", "done"),
    [
        (STAYS, ["tires"], "feed+tired", ["reads on@feed+tired"]),
        (WRITES, ["tires"], "writing+tired", ["writes@feed+tired"]),
        (STAYS, ["tires", "closes"], "idle+tired", []),
        (WRITES, ["tires", "closes"], "idle+tired", []),
        # its own region is back where it was, which the history tells
        (STAYS, ["tires", "closes", "opens"], "feed+tired", []),
        (WRITES, ["tires", "closes", "opens"], "feed+tired", []),
    ],
)
async def test_an_answer_holds_unless_its_own_region_has_moved(
    choice: str,
    meanwhile: list[str],
    state: str,
    done: list[str],
    has_history: bool,
    events: list[Any],
) -> None:
    """Whether it leads elsewhere or stays, and whatever another region has done."""
    if "opens" in meanwhile and not has_history:
        return
    chart = Statechart([AWAKE], STEPS, (Day.FEED, Day.FRESH), decision_states=[Day.FEED])
    agent: Any = Sleeper() if has_history else SimpleNamespace(agent_id="a1", notes=[])

    class Chooser:
        async def decide(self, *question: Any) -> Any:
            for trigger in meanwhile:
                chart.fire(agent, trigger)
            return next(option for option in question[3] if option == choice)

    assert chart.begin(agent) == STAYS
    if not has_history:
        # as one that was read from a table
        agent.state = str(agent.state)
    made = await chart.afire(agent, "thinks", reasoner=Chooser())
    assert (made, agent.state, agent.notes) == (state if done else None, state, done)
    reasons = [each["reason"] for each in events if each["event"] == "statechart.answer_discarded"]
    assert reasons == ([] if done else ["moved"])
