"""A law that holds for every chart."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.agents import StatechartMixin

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
