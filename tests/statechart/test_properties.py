"""Laws that hold for every chart and every record."""

import copy
import pickle
import string
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.agents import StatechartMixin
from prism.statechart import AgentState, StateTransition
from tests.kit.charts import ANY

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
