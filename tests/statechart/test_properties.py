"""Laws that hold for every chart, every record and every stream."""

import copy
import pickle
import string
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.agents import StatechartMixin
from prism.statechart import (
    AgentState,
    Statechart,
    StateTransition,
    Transition,
)
from prism.statechart.states import state_enum
from tests.kit.charts import ANY

FEW = settings(max_examples=3 * settings().max_examples // 2)

GUARDS = st.integers(0, 3)
TRIGGERS = st.sampled_from(["go", "on", "off", "timeout"])
TRUTHS = st.sampled_from([True, False, "raise", "yes", "", 0, 2, None, [0]])
EVENTS = st.tuples(TRIGGERS, st.lists(TRUTHS, min_size=4, max_size=4))
TEXTS = st.text(ANY, min_size=1, max_size=6) | st.sampled_from(
    ["*", "=", "mro", "name", "state", "initial"]
)


pytestmark = pytest.mark.usefixtures("_faults_unheard")


@dataclass
class Move:
    """A transition of a random chart, by numbers; source None is the wildcard."""

    trigger: str
    source: int | None
    target: int
    guard: int | None
    acts: bool


@dataclass
class Case:
    """A random chart in plain data, and the engine's chart made of it."""

    states: list[Any]
    moves: list[Move]
    chart: Statechart[Any]


def guard_of(number: int | None) -> Any:
    """Make a guard that reads its truth, or that it must raise, from the event's data."""
    if number is None:
        return None

    def guard(agent: Any, context: Any) -> Any:
        truth = context["guards"][number]
        if truth == "raise":
            raise LookupError(number)
        return truth

    return guard


def note(agent: Any, context: Any) -> None:
    """Note in which state the action ran."""
    agent.ran.append(agent.state)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    texts = draw(st.lists(TEXTS, min_size=1, max_size=5, unique=True))
    states = list(state_enum("Random", texts))
    number = st.integers(0, len(states) - 1)
    moves = draw(
        st.lists(
            st.builds(
                Move, TRIGGERS, st.none() | number, number, st.none() | GUARDS, st.booleans()
            ),
            max_size=12,
        )
    )
    chart = Statechart(
        states,
        [
            Transition(
                move.trigger,
                "*" if move.source is None else states[move.source],
                states[move.target],
                guard_of(move.guard),
                note if move.acts else None,
            )
            for move in moves
        ],
        states[0],
    )
    return Case(states, moves, chart)


def step(case: Case, state: Any, trigger: str, guards: list[Any]) -> Any:
    """Interpret one event on the plain data: the next state, or None."""
    for move in case.moves:
        if move.trigger == trigger and (move.source is None or case.states[move.source] is state):
            truth = True if move.guard is None else guards[move.guard]
            if truth != "raise" and truth:
                return case.states[move.target]
    return None


def agent_in(state: Any) -> Any:
    """Make a mixin agent with the state's own enum."""
    cls = type("Agent", (StatechartMixin,), {"state_type": type(state)})
    agent = cls()
    agent.state, agent.ran, agent.max_history_depth = state, [], 4
    return agent


@FEW
@given(cases(), st.lists(EVENTS, max_size=12))
def test_fire_agrees_with_the_reference_interpreter(case: Case, events: list[Any]) -> None:
    """Over random charts and events, fire does what ten lines of plain Python say."""
    kept, plain = agent_in(case.states[0]), SimpleNamespace(state=case.states[0], ran=[])
    for trigger, guards in events:
        expected = step(case, plain.state, trigger, guards)
        before = plain.state
        for agent in (kept, plain):
            assert case.chart.fire(agent, trigger, {"guards": guards}) is expected
            assert agent.state is (before if expected is None else expected)
    assert kept.ran == plain.ran


@FEW
@given(cases(), EVENTS)
def test_what_is_possible_agrees_with_what_happens(case: Case, event: Any) -> None:
    """fire leads to the first enabled target; enabled targets are valid, in the same order."""
    trigger, guards = event
    context = {"guards": guards}
    for state in case.states:
        agent = SimpleNamespace(state=state, ran=[])
        enabled = case.chart.enabled_targets(agent, trigger, context)
        valid = case.chart.valid_targets(state, trigger)
        assert (trigger in case.chart.valid_triggers(state)) == bool(valid)
        assert len(set(enabled)) == len(enabled)
        assert set(enabled) <= set(valid)
        assert agent == SimpleNamespace(state=state, ran=[])
        for target in valid:
            twin = SimpleNamespace(state=state, ran=[])
            assert case.chart.fire_to(twin, trigger, target, context) is (
                target if target in enabled else None
            )
        assert case.chart.fire(agent, trigger, context) is next(iter(enabled), None)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(ANY, max_size=8)
)
CONTEXTS = st.recursive(
    SCALARS
    | st.sampled_from(AgentState)
    | st.builds(SimpleNamespace, post_id=st.text(ANY, max_size=4)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(ANY, max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
STATES = st.sampled_from(AgentState)
RECORDS = st.builds(
    StateTransition, STATES, STATES, st.text(string.printable, max_size=6), MOMENTS, CONTEXTS
)


@FEW
@given(RECORDS)
def test_records_survive_copying_and_pickling(entry: StateTransition) -> None:
    """A record that is pickled, copied or rebuilt equals itself and hashes alike."""
    fields = (entry.from_state, entry.to_state, entry.trigger, entry.timestamp, entry.context)
    for twin in (pickle.loads(pickle.dumps(entry)), copy.deepcopy(entry), StateTransition(*fields)):
        assert twin == entry
        assert hash(twin) == hash(entry)
        assert twin.to_dict() == entry.to_dict()
