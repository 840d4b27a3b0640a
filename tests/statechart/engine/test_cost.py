"""What a fire of a flat chart costs, in instructions, which no other program disturbs."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Any

import pytest

from prism.agents import StatechartMixin
from prism.statechart import State, Statechart, Transition
from tests.kit.attributes import has_dict


class Lamp(StrEnum):
    """The states of a lamp."""

    OFF = "off"
    ON = "on"


class Bulb(StatechartMixin):
    """What the chart drives."""

    state_type = Lamp


@pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="a dict beside the attributes slows newer Pythons no more"
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_no_event_asks_for_the_dict_of_a_chart_or_an_agent(is_nested: bool) -> None:
    """What is made, begins, fires and ticks keeps its attributes where they are read fastest."""

    def act(agent: Any, _context: Any) -> None:
        chart.is_in(agent, Lamp.ON)

    states = [State(Lamp.OFF, entry=act, exit=act), Lamp.ON] if is_nested else [*Lamp]
    chart: Statechart[Lamp] = Statechart(
        states,
        [
            Transition("press", Lamp.OFF, Lamp.ON, lambda _agent, _context: True),
            Transition("press", Lamp.ON, Lamp.OFF, action=act),
            Transition("timeout", Lamp.ON, Lamp.OFF),
        ],
        initial=Lamp.OFF,
        timeouts={Lamp.ON: 1},
    )
    bulb = Bulb()
    chart.begin(bulb)
    for _ in range(3):
        chart.fire(bulb, "press")
        chart.tick(bulb)

    assert not has_dict(chart, "_rows")
    assert not has_dict(bulb, "_state")
    assert vars(chart).keys() >= {"_rows"}
    assert has_dict(chart, "_rows")
