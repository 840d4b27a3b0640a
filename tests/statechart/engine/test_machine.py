"""The adapter onto the transitions package."""

from types import SimpleNamespace
from typing import Any

import pytest
from transitions import Machine

from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState, state_enum
from prism.statechart.transitions import Transition

S = AgentState


def pause(agent: Any, context: Any) -> None:
    """Note that the action ran."""
    agent.notes.append(("pause", context))


def is_tired(agent: Any, context: Any) -> Any:
    return agent.tired


def fails(agent: Any, context: Any) -> bool:
    raise LookupError("no such post")


@pytest.fixture
def chart() -> Statechart[S]:
    return Statechart(
        S,
        [
            Transition("go", S.IDLE, S.RESTING, is_tired, pause),
            Transition("go", S.IDLE, S.SCROLLING),
            Transition("back", "*", S.IDLE),
        ],
        S.IDLE,
        name="small",
    )


def test_chart_exposes_a_real_machine(chart: Statechart[S]) -> None:
    """The chart's machine is a stock Machine with its states, triggers and initial state."""
    assert type(chart.machine) is Machine
    assert [state.value for state in chart.machine.states.values()] == list(S)
    assert list(chart.machine.events) == ["go", "back"]
    assert chart.machine.initial == "IDLE"


@pytest.mark.parametrize(
    ("tired", "target"), [(False, S.SCROLLING), ([], S.SCROLLING), (True, S.RESTING)]
)
@pytest.mark.parametrize("keyword", [True, False])
def test_stock_event_makes_the_same_move(
    chart: Statechart[S], tired: Any, target: S, keyword: bool
) -> None:
    """A stock event on a plain object uses guard, action and context as fire does."""
    stock, fired = (SimpleNamespace(state=S.IDLE, tired=tired, notes=[]) for _ in range(2))
    event = chart.machine.events["go"]
    assert event.trigger(stock, context="p1") if keyword else event.trigger(stock, "p1")
    assert chart.fire(fired, "go", "p1") is target
    assert stock == fired


def test_stock_event_leaves_an_agent_alone_where_it_does_not_apply(chart: Statechart[S]) -> None:
    """An event that does not apply in a state is false and changes nothing."""
    agent = SimpleNamespace(state=S.RESTING)
    assert not chart.machine.events["go"].trigger(agent)
    assert agent.state is S.RESTING


def test_stock_event_reports_faults_as_fire_does(logger: Any, capture: Any) -> None:
    """Guards and actions that raise are logged by the stock way exactly as by fire."""
    moves = [
        Transition("go", S.IDLE, S.RESTING, fails),
        Transition("go", S.IDLE, S.SCROLLING, None, fails),
    ]
    chart = Statechart(S, moves, S.IDLE, logger=logger)
    faults = []
    for drive in (chart.machine.events["go"].trigger, lambda agent: chart.fire(agent, "go")):
        drive(SimpleNamespace(state=S.IDLE, agent_id="x"))
        faults.append(
            [
                {**entry, "exc_info": str(entry["exc_info"])}
                for entry in capture.entries
                if "error" in entry
            ]
        )
        capture.entries.clear()
    stock, fired = faults
    assert [entry["event"] for entry in stock] == [
        "statechart.guard_failed",
        "statechart.action_failed",
    ]
    assert fired == stock


@pytest.mark.parametrize("text", ["*", "=", "mro", "initial", "state", "two words"])
def test_any_text_is_an_ordinary_state(text: str) -> None:
    """A state is only a state, even where its text means something to the transitions package."""
    odd = state_enum("Odd", ["here", text, "there"])
    here, state, there = odd
    chart = Statechart(odd, [Transition("on", here, state), Transition("on", state, there)], here)
    fired, stock = SimpleNamespace(state=here), SimpleNamespace(state=here)
    for expected in (state, there):
        assert chart.fire(fired, "on") is expected
        chart.machine.events["on"].trigger(stock)
        assert stock.state is expected
    assert chart.fire(fired, "on") is None
