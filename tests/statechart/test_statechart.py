"""The chart as a value: states, copies, formats, what is possible in it, and populations."""

import asyncio
import copy
import pickle
from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.agents import StatechartMixin
from prism.errors import UnknownStateError
from prism.statechart import State, Statechart, Transition, state_enum
from prism.statechart.queries import agents_in_state, state_distribution
from prism.statechart.states import AgentState
from prism.testing import ScriptedReasoner
from tests.statechart.nested.phone import Day, day


def test_states_made_at_run_time_keep_their_texts_and_can_be_pickled_and_copied() -> None:
    """Any text can be a state, also one that no member could be named after."""
    texts = ["calm", "mro", "two words", "*", "=", "name", "_x_", "0"]
    made = state_enum("Odd", texts)
    assert ([state.value for state in made], made.__name__) == (texts, "Odd")
    for state in made:
        assert made(state.value) is copy.deepcopy(state) is copy.copy(state) is state
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(state, protocol)) is state


Mood = state_enum("Mood", ["calm", "angry"])


def is_strong(agent: Any, force: Any) -> bool:
    return bool(force > 3)


def moods(enum: Any = Mood, **options: Any) -> Statechart[Any]:
    """Make a chart over an enum with the same texts."""
    calm, angry = enum
    moves = [Transition("bumped", calm, angry, is_strong)]
    limits = {"decision_states": [calm], "timeouts": {angry: 2}}
    return Statechart(enum, moves, calm, name="moods", **limits, **options)


def test_charts_of_one_definition_are_equal() -> None:
    """Charts defined alike are equal and hash alike, whatever their clock, logger or enum class."""
    twin = state_enum("Twin", ["calm", "angry"])
    for other in (moods(), moods(clock=lambda: 0.0), moods(twin), copy.deepcopy(moods())):
        assert other == moods()
        assert hash(other) == hash(moods())
    assert {moods(): 1}[moods(twin)] == 1


class Limited(Statechart[Any]):
    """A chart with a constructor of its own."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(Mood, moods().transitions, Mood.CALM)
        self.bumps = [limit]


@pytest.mark.parametrize("way", ["pickle", "copy", "bound"])
def test_a_chart_of_a_class_with_its_own_constructor_is_copied_with_its_fields(way: str) -> None:
    """A copy runs by itself, and has what the class added."""
    chart = Limited(3)
    if way == "bound":
        twin = chart.bound("other", None, lambda: 7.0)
    else:
        twin = copy.copy(chart) if way == "copy" else pickle.loads(pickle.dumps(chart))
    assert (type(twin), twin.limit, twin.bumps) == (Limited, 3, [3])
    assert twin.machine is not chart.machine
    assert twin.states == chart.states
    assert (twin.name == "other") is (twin != chart)
    agent = twin.adopt(SimpleNamespace())
    assert twin.fire(agent, "bumped", 5) is Mood.ANGRY
    assert twin.name != "other" or agent.state_history[-1].timestamp.timestamp() == 7.0


Plain = Enum("Plain", ["calm", "angry"], start=0)
Number = IntEnum("Number", ["calm", "angry"], start=0)


@pytest.mark.parametrize("enum", [Plain, Number])
def test_states_may_be_of_any_enum(enum: Any) -> None:
    """An agent keeps the members it has; files and logs have their names where values are no texts.

    Mesa's examples have numbers as states, the first of which is 0.
    """
    agent = SimpleNamespace(state=enum.calm, ticks_in_state=0, state_history=[], agent_id="a")
    chart = pickle.loads(pickle.dumps(moods(enum)))
    assert chart.fire(agent, "bumped", 5) is agent.state is enum.angry
    assert [chart.tick(agent) for _ in range(2)] == [None, None]
    assert chart.history(agent)[0].to_dict()["to_state"] == "angry"
    assert "'angry' does not react to it" in str(chart.explain(agent, "bumped"))
    assert chart.state_of("calm") is enum.calm
    text = SimpleNamespace(state="calm", ticks_in_state=0, state_history=[], agent_id="b")
    assert (chart.fire(text, "bumped", 5), text.state) == (enum.angry, "angry")
    written, guards = chart.to_dict(), {"is_strong": is_strong}
    assert written == moods().to_dict()
    assert Statechart.from_dict(written, guards=guards, states=enum) == chart
    assert "lost" in chart.extended(states=["lost"]).states


@pytest.mark.parametrize("enum", [Mood, Plain, Number, Enum("Text", {"calm": "c", "angry": "a"})])
def test_limits_and_decisions_hold_over_any_enum(enum: Any) -> None:
    """In states with texts, numbers or other values; states with one number keep their names."""
    calm, angry = enum
    moves = [Transition("bumped", calm, each) for each in enum]
    late, ends = Transition("timeout", angry, calm), {"decision_states": [calm]}
    chart = Statechart(enum, [*moves, late], calm, timeouts={angry: 1}, **ends)
    agent = chart.adopt(SimpleNamespace())
    assert chart.explain(agent, "bumped").options == (calm, angry)
    assert asyncio.run(chart.afire(agent, "bumped", reasoner=ScriptedReasoner([angry]))) is angry
    assert [chart.tick(agent), chart.tick(agent)] == [None, calm]
    assert chart.extended(timeouts={angry: None}).definition.timeouts == {}
    door = IntEnum("Door", ["shut", "open"], start=0)
    assert str(Transition("turn", door.shut, door.open)) == "shut --turn--> open"
    nested = Statechart([State(door.shut, [door.open])], [], door.shut)
    assert nested.can_be_in(door.open) > nested.can_be_in(Number.angry)


FEW = settings(max_examples=3 * settings().max_examples // 2)
TRUTHS = st.sampled_from([True, False, "raise", "yes", "", 0, 2, None, [0]])


class Agent(StatechartMixin):
    """An agent that the engine writes directly."""


def agents_in(state: Any) -> list[Any]:
    """Return an agent with the mixin and a plain one in a state."""
    kept = type("Kept", (Agent,), {"state_type": type(state)})()
    kept.state = state
    return [kept, SimpleNamespace(state=state)]


@pytest.mark.usefixtures("_faults_unheard")
@FEW
@given(data=st.data())
def test_fire_makes_the_first_transition_whose_guard_passes(
    random_charts: Any, data: st.DataObject
) -> None:
    """What is enabled is valid, in the same order, and ``fire_to`` leads there and nowhere else."""
    chart = data.draw(random_charts.charts().filter(lambda chart: not chart.definition.strict))
    truths = data.draw(st.fixed_dictionaries(dict.fromkeys(random_charts.guards, TRUTHS)))
    for state in chart.definition.states:
        for trigger in chart.triggers:
            reacting = [
                item
                for item in chart.transitions
                if (item.source, item.trigger) == (state, trigger)
            ]
            passing = [
                item.target
                for item in reacting
                if item.guard is None
                or ((truth := truths[item.guard.__name__]) != "raise" and truth)
            ]
            assert (trigger in chart.valid_triggers(state)) == bool(reacting)
            valid = chart.valid_targets(state, trigger)
            assert valid == [*dict.fromkeys(item.target for item in reacting)]
            for agent in agents_in(state):
                assert chart.enabled_targets(agent, trigger, truths) == [*dict.fromkeys(passing)]
                assert agent.state is state
                made = chart.fire(agent, trigger, truths)
                assert made is next(iter(passing), None)
                assert agent.state is (state if made is None else made)
            # nothing leaves a final state
            assert not (reacting and state in chart.final_states)
            for target in valid:
                agent = SimpleNamespace(state=state)
                made = chart.fire_to(agent, trigger, target, truths)
                assert made is (target if target in passing else None)


S = AgentState


def population(*states: Any) -> list[Any]:
    return [
        SimpleNamespace(state=state, agent_id=f"a{number}") for number, state in enumerate(states)
    ]


def test_every_state_is_in_the_distribution() -> None:
    """In definition order, also those without an agent; an agent in another one is an error."""
    counts = state_distribution(iter(population(S.RESTING, S.IDLE, S.RESTING)))
    assert list(counts) == list(S)
    assert (counts[S.IDLE], counts[S.RESTING], counts[S.COMPOSING]) == (1, 2, 0)
    assert sum(counts.values()) == 3
    message = r"agent 'a1' is in state .*resting.* not among those counted \(idle\): name all in"
    with pytest.raises(UnknownStateError, match=message):
        state_distribution(population(S.IDLE, S.RESTING), [S.IDLE])


def test_composites_count_with_all_that_is_inside() -> None:
    """With their chart, agents count in every state that is active and counted."""
    chart, agents = day(), population(*[Day.ASLEEP] * 3)
    for agent in agents[1:]:
        chart.fire(agent, "wakes")
    chart.fire(agents[2], "opens")
    assert agents_in_state(Day.AWAKE, agents, chart=chart) == 2
    assert agents_in_state(Day.FEED, agents, chart=chart) == 1
    tops = [Day.ASLEEP, Day.AWAKE]
    assert state_distribution(agents, tops, chart=chart) == {Day.ASLEEP: 1, Day.AWAKE: 2}
    leaves = state_distribution(agents, chart=chart)
    assert [*leaves] == [*chart.definition.states] == [*state_distribution([], chart=chart)]
    counted = {Day.ASLEEP: 1, Day.IDLE: 1, Day.FEED: 1, Day.FRESH: 2}
    assert {state: count for state, count in leaves.items() if count} == counted
