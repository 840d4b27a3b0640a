"""A chart with composites as a real Machine of the `transitions` package."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import DefinitionError
from prism.statechart import History, Transition, done
from tests.statechart.nested.phone import Phone, day, phone
from tests.statechart.nested.random_charts import EVENTS, Kinds, make_twins

FLATTENED = Kinds(regions=False, histories=False, eventless=False, dones=False, targets=False)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled(20)
def test_the_machine_reaches_the_same_states_by_the_same_actions(seed: int) -> None:
    """Exit actions, the transition's own and entry actions run in the order of `fire`."""
    ours, stock = make_twins(seed, FLATTENED), make_twins(seed, FLATTENED)
    ours.agent.state = stock.agent.state = ours.chart.initial
    # what is active at each instant is the interpreter's to know
    stock.agent.shown = ours.agent.shown = lambda: ""
    events: dict[str, Any] = stock.chart.machine.events
    rng = Random(seed)
    for _ in range(30):
        event = rng.choice([each for each in EVENTS if each in events] or ["none"])
        ours.chart.fire(ours.agent, event)
        if event in events:
            events[event].trigger(stock.agent, None)
        assert stock.agent.state == ours.agent.state
        assert stock.trace == ours.trace


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (Transition("x", Phone.POCKET, History(Phone.ENGAGING)), "support histories"),
        (Transition(None, Phone.READING, Phone.POCKET, lambda a, c: False), "support eventless"),
        (
            Transition(done(Phone.ENGAGING), Phone.ENGAGING, Phone.POCKET),
            "support transitions on done",
        ),
        (Transition("x", Phone.POCKET, Phone.READING, probability=0.5), "support probabilities"),
    ],
)
def test_a_chart_without_a_machine_says_why(item: Any, reason: str) -> None:
    """The error names what a flat Machine has not, and the chart runs all the same."""
    chart = phone(item)
    with pytest.raises(DefinitionError, match=reason):
        _ = chart.machine
    assert chart.fire(SimpleNamespace(state=Phone.POCKET, state_memory=None), "opens")
    with pytest.raises(DefinitionError, match="support regions"):
        _ = day().machine
