"""Any kind of object with a state can be driven."""

from dataclasses import dataclass
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pydantic
import pytest

from prism.agents import StatechartMixin
from prism.errors import AgentError, UnknownStateError
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition
from tests.kit.moves import Post, StateOnly, chart_of, moves_of

S = AgentState


class Slots:
    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = S.IDLE


@dataclass
class Record:
    state: S = S.IDLE
    ticks_in_state: int = 3


@dataclass(slots=True)
class SlotRecord:
    state: S = S.IDLE
    ticks_in_state: int = 3


class Text:
    def __init__(self) -> None:
        self.state = "idle"


class Model(pydantic.BaseModel):
    state: S = S.IDLE
    ticks_in_state: int = 3


class OwnAgent:
    """Keeps its own books, as an agent class written before this library may."""

    def __init__(self) -> None:
        self.state: Any = S.IDLE
        self.ticks_in_state = 3
        self.state_history: list[Any] = []
        self.moves: list[Any] = []

    def transition_to(self, new_state: S, trigger: str, context: Any = None) -> None:
        self.moves.append((self.state, new_state, trigger, context))
        self.state = new_state


@pytest.mark.parametrize(
    "make", [Slots, Record, SlotRecord, StateOnly, Text, Model, SimpleNamespace]
)
def test_anything_with_a_state_can_be_driven(make: Any) -> None:
    """Slots, dataclasses, models and plain objects are written in the fields they have."""
    agent = make() if make is not SimpleNamespace else make(state=S.IDLE)
    fields, kind = set(dir(agent)), type(agent.state)
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING),
        Transition("again", S.SCROLLING, S.SCROLLING),
        Transition("go", S.SCROLLING, S.IDLE),
    )
    for expected in (S.SCROLLING, S.IDLE) * 2:
        assert chart.fire(agent, "go") is expected
        assert agent.state == expected
        # text stays text
        assert type(agent.state) is kind
        assert getattr(agent, "ticks_in_state", 0) == 0
    assert set(dir(agent)) == fields


def test_own_transition_to_is_the_only_write_path(events: list[Any]) -> None:
    """A class with its own transition_to is written only through it."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE))
    agent = OwnAgent()
    assert [chart.fire(agent, "go", Post("p1")) for _ in range(2)] == [S.SCROLLING, S.IDLE]
    assert agent.moves == [
        (S.IDLE, S.SCROLLING, "go", {"post_id": "p1"}),
        (S.SCROLLING, S.IDLE, "go", {"post_id": "p1"}),
    ]
    assert (agent.ticks_in_state, agent.state_history) == (3, [])
    assert [entry["ticks_in_state"] for entry in events] == [3, 3]


def test_own_transition_to_must_move() -> None:
    """A transition_to that does not move the agent is an error that names class and cure."""

    class Stubborn(OwnAgent):
        def transition_to(self, new_state: S, trigger: str, context: Any = None) -> None:
            """Stay."""

    with pytest.raises(
        AgentError, match=r"Stubborn.transition_to left the agent in 'idle' .* must set self.state"
    ):
        chart_of(Transition("go", S.IDLE, S.SCROLLING)).fire(Stubborn(), "go")


def test_adopt_adds_what_is_missing() -> None:
    """An adopted object is the same object with all fields of an agent, in the initial state."""
    agent = SimpleNamespace(name="x", timeout_threshold=9)
    chart = Statechart(S, [Transition("go", S.RESTING, S.IDLE)], S.RESTING)
    assert chart.adopt(agent) is agent
    assert (agent.state, agent.ticks_in_state, agent.timeout_threshold, agent.name) == (
        S.RESTING,
        0,
        9,
        "x",
    )
    assert chart.fire(agent, "go") is S.IDLE
    assert moves_of(agent) == [("resting", "go", "idle")]


def test_a_forgotten_state_type_is_told() -> None:
    """A mixin without its states, or an agent of another chart, is told what to set."""

    class Forgetful(StatechartMixin):
        """Has the default states."""

    work = StrEnum("Work", ["OPEN", "DONE"])
    desk = Statechart(work, [Transition("go", work.OPEN, work.DONE)], work.OPEN, name="desk")
    with pytest.raises(UnknownStateError, match=r"no member of .*Work .* chart 'desk'") as caught:
        desk.fire(Forgetful(), "go")
    assert "set  state_type = chart.state_type  in the agent's class" in str(caught.value)
