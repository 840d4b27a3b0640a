"""Explanations of what an event would do in a chart with composites."""

from __future__ import annotations

from random import Random

import pytest

from prism.errors import DefinitionError
from tests.statechart.nested.random_charts import EVENTS, Kinds, make_twins


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
