"""Final states: an agent that reaches one is done."""

import asyncio
import json
import logging
import pickle
import xml.etree.ElementTree as ET
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transitions import MachineError

from prism.agents import StatechartMixin
from prism.errors import DefinitionError
from prism.statechart import Definition, PolicyReasoner, Statechart, Transition, state_enum

Order = state_enum("Order", ["open", "paid", "shipped", "lost"])
OPEN, PAID, SHIPPED, LOST = Order
MOVES = [
    Transition("pays", OPEN, PAID),
    Transition("ships", PAID, SHIPPED),
    Transition("timeout", "*", LOST),
]


class Parcel(StatechartMixin):
    """An agent that ends up somewhere."""

    state_type = Order


def orders(**options: Any) -> Statechart[Any]:
    """Return a chart that ends in two states."""
    return Statechart(Order, MOVES, OPEN, final_states=[SHIPPED, LOST], name="orders", **options)


def test_a_wildcard_does_not_stand_for_a_final_state() -> None:
    """The source ``"*"`` becomes one transition for each state that is not final."""
    chart = orders()
    assert [str(item) for item in chart.transitions[2:]] == [
        "open --timeout--> lost",
        "paid --timeout--> lost",
    ]
    assert chart.final_states == chart.definition.final_states == {SHIPPED, LOST}


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (
            {"transitions": [Transition("ships", PAID, SHIPPED), Transition("back", LOST, OPEN)]},
            "transition 2 (lost --back--> open) leaves 'lost', which is a final state: remove it",
        ),
        (
            {"transitions": [Transition("again", LOST, LOST)]},
            "transition 1 (lost --again--> lost) leaves 'lost', which is a final state",
        ),
        ({"decision_states": [LOST]}, "final state 'lost' cannot be a decision state"),
        ({"timeouts": {LOST: 3}}, "final state 'lost' cannot have a limit in timeouts"),
        (
            {"final_states": ["lost"]},
            "final state 'lost' is not among the states (open, paid, shipped, lost)",
        ),
        (
            {"final_states": [state_enum("Other", ["lost"])("lost")]},
            "final state <Other.LOST: 'lost'> is not among the states",
        ),
    ],
)
def test_what_a_final_state_cannot_have_is_refused_at_definition(
    given_: dict[str, Any], message: str
) -> None:
    """A way out, a decision or a limit of a final state is a DefinitionError that names it."""
    with pytest.raises(DefinitionError) as caught:
        Statechart(Order, **{"transitions": [], "final_states": [LOST], **given_}, initial=OPEN)
    assert message in str(caught.value)


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
                with pytest.raises(MachineError) if chart.strict else nullcontext():
                    assert not drive(agent, trigger)
            assert chart.explain(agent, trigger).outcome == "no reaction"
        assert [chart.tick(agent) for _ in range(5)] == [None] * 5
        assert (agent.state, agent.state_history, agent.ticks_in_state) == (state, [], 5)
        assert chart.valid_triggers(state) == chart.enabled_triggers(agent) == []


def test_an_agent_of_the_mixin_never_times_out_in_a_final_state() -> None:
    """The quick way that agents of the mixin take through a tick leaves final states alone, too."""
    chart, parcel = orders(strict=True), Parcel()
    while parcel.state is not LOST:
        chart.tick(parcel)
    assert [chart.tick(parcel) for _ in range(50)] == [None] * 50
    assert (parcel.state, parcel.ticks_in_state, len(parcel.state_history)) == (LOST, 50, 1)


def test_no_trap_and_no_missing_time_out_is_found() -> None:
    """A final state needs no way out and no time-out; the same state would, if it were not one."""
    assert orders().check() == []
    flaws = Statechart(Order, MOVES[:2], OPEN, timeouts={OPEN: 2}).check()
    assert {"no_way_out", "no_timeout"} <= {flaw.kind for flaw in flaws if flaw.state is SHIPPED}


def test_a_final_state_that_nothing_leads_to_is_still_found() -> None:
    """Being final does not excuse a state from being reachable."""
    (flaw,) = Statechart(
        Order, [Transition("pays", OPEN, PAID)], OPEN, final_states=[PAID, SHIPPED, LOST]
    ).check()[:1]
    assert (flaw.kind, flaw.state) == ("unreachable", SHIPPED)


def test_documents_and_pickles_keep_final_states() -> None:
    """JSON and pickles bring final states back; a document without them has none."""
    chart = orders()
    data = json.loads(chart.to_json())
    assert data["final_states"] == ["shipped", "lost"]
    assert Statechart.from_dict(data, states=Order) == chart
    assert pickle.loads(pickle.dumps(chart)) == chart
    assert pickle.loads(pickle.dumps(chart.definition)) == chart.definition
    older = {key: value for key, value in data.items() if key != "final_states"}
    older["transitions"] = data["transitions"][:2]
    assert Statechart.from_dict(older).final_states == frozenset()
    assert Definition(Order, MOVES[:2], OPEN) != Definition(
        Order, MOVES[:2], OPEN, final_states=[LOST]
    )


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"final_states": "lost"}, "final_states: must be a list, got 'lost'"),
        (
            {"final_states": ["gone"]},
            "final_states[0]: names 'gone', which is not among the states",
        ),
        ({"final_states": [["lost"]]}, "final_states[0]: must be text, got ['lost']"),
        ({"decision_states": ["lost"]}, "decision_states[0]: names 'lost', which is a final state"),
        ({"timeouts": {"lost": 2}}, "timeouts.lost: names 'lost', which is a final state"),
        (
            {"transitions": [{"trigger": "back", "source": "lost", "target": "open"}]},
            "transitions[0].source: names 'lost', which is a final state",
        ),
    ],
)
def test_a_document_is_refused_as_a_definition_is(given_: dict[str, Any], message: str) -> None:
    """What a definition refuses of final states is refused in a document, by its keys."""
    data = {**orders().to_dict(), **given_}
    with pytest.raises(DefinitionError) as caught:
        Statechart.from_dict(data)
    assert message in str(caught.value)


def test_a_wildcard_of_a_document_leaves_final_states_out() -> None:
    """The source ``"*"`` in a document stands for the states that are not final."""
    data = {
        **orders().to_dict(),
        "transitions": [{"trigger": "timeout", "source": "*", "target": "lost"}],
    }
    assert [item.source for item in Statechart.from_dict(data).transitions] == ["open", "paid"]


def test_pictures_show_final_states() -> None:
    """Mermaid, DOT and SVG each have their sign for a final state, SCXML its element."""
    chart = orders()
    assert "    s2 --> [*]\n    s3 --> [*]\n" in f"{chart:mermaid}"
    assert "    s2 -> end;\n    s3 -> end;\n" in f"{chart:dot}"
    assert f"{chart:svg}".count('class="ring"') == 2
    root = ET.fromstring(f"{chart:scxml}".encode())
    names = [(element.tag.partition("}")[2], element.get("id")) for element in root]
    assert names == [("state", "open"), ("state", "paid"), ("final", "shipped"), ("final", "lost")]


def test_a_transition_of_every_state_that_is_not_final_is_one_arrow() -> None:
    """An event that all states but the final ones react to alike is one arrow in a picture."""
    states = state_enum("Work", ["a", "b", "c", "failed", "done"])
    A, _B, _C, FAILED, DONE = states
    chart = Statechart(states, [Transition("fails", "*", FAILED)], A, final_states=[FAILED, DONE])
    assert "    any --> s3 : fails\n" in f"{chart:mermaid}"


def test_nothing_is_logged_of_an_agent_that_is_done(caplog: pytest.LogCaptureFixture) -> None:
    """Events and ticks of a chart without time-outs leave no more than details of a refusal."""
    chart = Statechart(Order, MOVES[:2], OPEN, final_states=[SHIPPED, LOST])
    caplog.set_level(logging.DEBUG)
    parcel = Parcel()
    parcel.state = SHIPPED
    parcel.agent_id = "p1"
    chart.fire(parcel, "pays")
    chart.tick(parcel)
    assert [each.prism["event"] for each in caplog.records] == ["statechart.event_refused"]
