"""Explanations of what an event would do in a chart with composites."""

from __future__ import annotations

from random import Random

import pytest

from prism.errors import DefinitionError
from tests.statechart.nested.phone import Owner, Phone, whole_phone
from tests.statechart.nested.random_charts import EVENTS, Kinds, make_twins


def test_each_candidate_names_the_state_it_belongs_to() -> None:
    """A composite's transition stands behind the leaf's, and a history leads where it would."""
    chart, agent = whole_phone(), Owner()
    chart.begin(agent)
    for event in ("opens", "writes"):
        chart.fire(agent, event)
    found = chart.explain(agent, "rings")
    assert found.candidates == ("passed     engaging --rings--> pocket",)
    chart.fire(agent, "rings")
    assert chart.explain(agent, "resumes").target is Phone.REPLYING
    assert "pocket --resumes--> engaging.H" in str(chart.explain(agent, "resumes"))


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sampled(20)
def test_an_explanation_says_what_the_first_step_does(seed: int) -> None:
    """In random charts, where nothing follows of itself."""
    kinds = Kinds(eventless=False, dones=False)
    try:
        twins = make_twins(seed, kinds)
    except DefinitionError:
        return
    chart, agent, rng = twins.chart, twins.agent, Random(seed)
    chart.begin(agent)
    for _ in range(20):
        event = rng.choice([each for each in EVENTS if each in chart.triggers] or ["a"])
        expected = chart.explain(agent, event)
        made = chart.fire(agent, event)
        assert (made is not None) == (expected.outcome in ("moves", "stays"))
        assert made is None or made == expected.target
