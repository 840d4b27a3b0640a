"""What a fire of a flat chart costs, in instructions, which no other program disturbs."""

from __future__ import annotations

import sys
from enum import StrEnum
from types import FrameType
from typing import Any

import pytest

from prism.agents import StatechartMixin
from prism.statechart import Statechart, Transition


class Lamp(StrEnum):
    """The states of a lamp."""

    OFF = "off"
    ON = "on"


class Bulb(StatechartMixin):
    """What the chart drives."""

    state_type = Lamp


def instructions(guard: Any, action: Any) -> int:
    """Return the instructions of one fire whose history is full."""
    chart = Statechart(
        Lamp,
        [
            Transition("press", Lamp.OFF, Lamp.ON, guard, action),
            Transition("press", Lamp.ON, Lamp.OFF, guard, action),
        ],
        initial=Lamp.OFF,
    )
    bulb, made = Bulb(), 0
    for _ in range(60):
        chart.fire(bulb, "press")

    def count(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal made
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        made += event == "opcode"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        chart.fire(bulb, "press")
    finally:
        sys.settrace(before)
    return made


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="each version has other instructions")
@pytest.mark.parametrize(("action", "most"), [(None, 163), (lambda _agent, _context: None, 282)])
def test_charts_with_states_inside_states_cost_flat_ones_nothing(action: Any, most: int) -> None:
    """A guarded fire executes no more instructions than before there were any."""
    assert instructions(lambda _agent, _context: True, action) <= most
