"""Charts with composites as SCXML, and back."""

from __future__ import annotations

from typing import Any

import pytest

from prism.errors import DefinitionError
from prism.statechart import (
    Statechart,
)
from tests.statechart.nested.phone import day, whole_phone
from tests.statechart.nested.random_charts import Kinds, make_twins
from tests.statechart.nested.test_json import everything, functions_of, speed


@pytest.mark.parametrize("chart", [everything(), whole_phone(), day()], ids=["all", "phone", "day"])
def test_a_chart_comes_back_equal(chart: Statechart[Any]) -> None:
    """By SCXML with the names of its functions, and over its own enum."""
    actions = functions_of(chart)
    text = format(chart, "scxml")
    again = Statechart.from_scxml(text, guards={"speed": speed}, actions=actions)
    assert again == chart
    assert format(again, "scxml") == text
    same = Statechart.from_scxml(
        text, guards={"speed": speed}, actions=actions, states=chart.state_type
    )
    assert same.definition.tree == chart.definition.tree


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled(20)
def test_a_random_chart_comes_back_equal(seed: int) -> None:
    """Whatever it has."""
    try:
        chart = make_twins(seed, Kinds()).chart
    except DefinitionError:
        return
    actions = functions_of(chart)
    text = chart.to_scxml()
    assert Statechart.from_scxml(text, actions=actions) == chart
