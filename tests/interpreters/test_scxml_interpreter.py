"""An exported SCXML document, run by an independent interpreter: python-statemachine."""

import keyword
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statemachine import StateChart
from statemachine.io import load

from prism.statechart import Statechart

TAKEN_BY_THE_INTERPRETER = frozenset(dir(StateChart))
"""Its own attributes cannot be states, as it makes each state an attribute of the machine."""

NAMES = st.text("abcxyz_", min_size=1, max_size=4).filter(
    lambda text: text not in TAKEN_BY_THE_INTERPRETER and not keyword.iskeyword(text)
)
OUTCOMES = st.sampled_from([True, False, "raise", "yes", "", 0, 2, None, [0]])


class Raises:
    """An outcome that cannot be had: reading its truth raises, as the guard does."""

    def __bool__(self) -> bool:
        raise LookupError


def interpreter_of(chart: Statechart[Any]) -> Any:
    """Load the document of a chart; conditions read the outcomes of guards from the event."""
    guards = dict.fromkeys(item.guard.__name__ for item in chart.transitions if item.guard)
    text = format(chart, "scxml")
    for number, name in enumerate(guards):
        text = text.replace(f'cond="{name}"', f'cond="_event.data.guard{number}"')
    return load(text, format="scxml")()


def state_in(interpreter: Any) -> str:
    (state,) = interpreter.configuration
    return str(state.id)


def send(interpreter: Any, chart: Statechart[Any], trigger: str, outcomes: dict[str, Any]) -> None:
    """Send an event with the outcomes of the chart's guards as its data."""
    guards = dict.fromkeys(item.guard.__name__ for item in chart.transitions if item.guard)
    data = {
        f"guard{number}": Raises() if outcomes[name] == "raise" else outcomes[name]
        for number, name in enumerate(guards)
    }
    interpreter.send(trigger, **data)


@pytest.mark.usefixtures("_faults_unheard")
@given(data=st.data())
def test_the_interpreter_moves_through_the_same_states(
    random_charts: Any, data: st.DataObject
) -> None:
    """Over random charts, events and guard outcomes, both go through the same states."""
    chart = data.draw(random_charts.charts(NAMES))
    lenient = {**chart.to_dict(), "strict": False}
    chart = Statechart.from_dict(
        lenient, guards=random_charts.guards, actions=random_charts.actions
    )
    interpreter, agent = interpreter_of(chart), SimpleNamespace(state=chart.initial)
    assert state_in(interpreter) == agent.state
    triggers = st.sampled_from([*{item.trigger: None for item in chart.transitions}, "unheard_of"])
    outcomes = st.fixed_dictionaries(dict.fromkeys(random_charts.guards, OUTCOMES))
    for trigger, given_ in data.draw(st.lists(st.tuples(triggers, outcomes), max_size=10)):
        send(interpreter, chart, trigger, given_)
        chart.fire(agent, trigger, given_)
        assert state_in(interpreter) == agent.state
        assert interpreter.is_terminated == (agent.state in chart.final_states)
