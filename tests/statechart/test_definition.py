"""What a chart is, and what must hold before one is built."""

from typing import Any

import pytest

from prism.errors import DefinitionError
from prism.statechart import Definition
from prism.statechart.states import AgentState, state_enum
from prism.statechart.transitions import Transition

S = AgentState
OTHER = state_enum("Other", ["idle", "elsewhere"])


def problems(**given: Any) -> list[str]:
    """Return what the error says of a definition that differs from a sound one."""
    parts: dict[str, Any] = {"states": S, "transitions": (), "initial": S.IDLE, **given}
    with pytest.raises(DefinitionError) as caught:
        Definition(**parts, name="c")
    text = str(caught.value)
    assert text.startswith("chart 'c': ")
    return text.removeprefix("chart 'c': ").split("; ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"states": ("idle", 3)},
            "states must be members of an Enum, such as a StrEnum, got 'idle', 3",
        ),
        (
            {"states": (S.IDLE, OTHER("elsewhere"))},
            "states must all come from one enum, got members of AgentState, Other",
        ),
        ({"initial": OTHER("idle")}, "initial state <Other.IDLE: 'idle'> is not among the states"),
        (
            {"timeouts": {S.IDLE: 0}},
            "timeouts[idle] must be a whole number of ticks, 1 or more, got 0",
        ),
        ({"transitions": ["go"]}, "transition 1 must be a Transition, got 'go'"),
        (
            {"transitions": [Transition("go", OTHER("idle"), S.RESTING)]},
            "transition 1 (idle --go--> resting): "
            "source <Other.IDLE: 'idle'> is not among the states",
        ),
    ],
)
def test_a_problem_names_its_offender(given: dict[str, Any], message: str) -> None:
    """Each thing that keeps a chart from being built is one message that names the offender."""
    (found,) = problems(**given)
    assert message in found
