"""Final states: an agent that reaches one is done."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transitions import MachineError

from prism.statechart import PolicyReasoner, Statechart


def stock(chart: Statechart[Any]) -> Any:
    """Return what triggers an event of a chart as the transitions package does."""
    return lambda agent, trigger: chart.machine.events[trigger].trigger(agent)


def asked(chart: Statechart[Any]) -> Any:
    """Return what fires an event of a chart with a reasoner."""
    reasoner = PolicyReasoner(seed=1)
    return lambda agent, trigger: asyncio.run(chart.afire(agent, trigger, reasoner=reasoner))


@given(data=st.data())
@pytest.mark.usefixtures("_faults_unheard")
def test_an_agent_in_a_final_state_stays_there(random_charts: Any, data: st.DataObject) -> None:
    """Over random charts, no event and no number of ticks changes an agent in a final state."""
    chart = data.draw(random_charts.charts().filter(lambda chart: chart.final_states))
    for state in chart.final_states:
        agent = SimpleNamespace(
            state=state, ticks_in_state=0, timeout_threshold=1, state_history=[]
        )
        for trigger in chart.triggers:
            for drive in (chart.fire, stock(chart), asked(chart)):
                # a strict chart refuses what a state does not react to
                with pytest.raises(MachineError) if chart.definition.strict else nullcontext():
                    assert not drive(agent, trigger)
            assert chart.explain(agent, trigger).outcome == "no reaction"
        assert [chart.tick(agent) for _ in range(5)] == [None] * 5
        assert (agent.state, agent.state_history, agent.ticks_in_state) == (state, [], 5)
        assert chart.valid_triggers(state) == []
