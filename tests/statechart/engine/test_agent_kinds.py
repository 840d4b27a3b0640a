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

S = AgentState


@dataclass
class Post:
    post_id: str


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


class StateOnly:
    def __init__(self, **more: Any) -> None:
        self.state = S.IDLE
        vars(self).update(more)


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


def chart_of(*moves: Transition[S], **options: Any) -> Statechart[S]:
    return Statechart(S, moves, S.IDLE, **options)


def moves_of(agent: Any) -> list[tuple[str, str, str]]:
    return [
        (entry.from_state.value, entry.trigger, entry.to_state.value)
        for entry in agent.state_history
    ]


def test_adopt_refuses_an_unknown_state() -> None:
    """An object in a state outside the chart is not adopted; the message lists the states."""
    with pytest.raises(
        UnknownStateError, match=r"in state 'flying', which is not in chart .* use one of idle"
    ):
        chart_of().adopt(SimpleNamespace(state="flying"))


@pytest.mark.parametrize("make", [Record, SlotRecord, Model, OwnAgent])
def test_ticks_are_counted_on_any_object_that_has_them(make: Any) -> None:
    """Ticks are counted on every object that has them; without a limit there is no time-out."""
    agent = make()
    assert chart_of(Transition("timeout", S.IDLE, S.SCROLLING)).tick(agent) is None
    assert agent.ticks_in_state == 4
    assert (
        chart_of(Transition("timeout", S.IDLE, S.SCROLLING), timeouts={S.IDLE: 4}).tick(agent)
        is S.SCROLLING
    )


def test_an_object_without_ticks_never_times_out() -> None:
    """An object that counts no ticks is left alone."""
    agent = StateOnly()
    assert (
        chart_of(Transition("timeout", S.IDLE, S.SCROLLING), timeouts={S.IDLE: 1}).tick(agent)
        is None
    )
    assert vars(agent) == {"state": S.IDLE}
    agent.state = ["idle"]  # type: ignore[assignment]
    with pytest.raises(UnknownStateError, match=r"is in state \['idle'\]"):
        chart_of().tick(agent)


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


def test_a_state_given_as_text_is_understood() -> None:
    """An agent whose state is plain text is driven like any other, and gets members as states."""
    chart = chart_of(Transition("again", S.IDLE, S.IDLE), Transition("go", S.IDLE, S.RESTING))
    agent = Text()
    assert chart.enabled_targets(agent, "go") == [S.RESTING]
    assert chart.fire(agent, "again") is S.IDLE
    assert chart.fire_to(agent, "go", S.RESTING) is S.RESTING


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


def test_what_begins_needs_a_state_that_can_be_set() -> None:
    """A transition_to is not enough: no transition leads to the initial state."""

    class Kept:
        state = property(lambda _self: S.IDLE)

        def transition_to(self, new_state: S, trigger: str, context: Any = None) -> None:
            pass

    with pytest.raises(AgentError, match="Kept takes no new values"):
        chart_of().begin(Kept())


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


@pytest.mark.parametrize("state", ["scrolling", S.SCROLLING])
def test_adopt_keeps_the_state_an_object_is_in(state: Any) -> None:
    """An adopted object keeps its state, be it a member or a text."""
    agent = SimpleNamespace(state=state)
    chart_of().adopt(agent)
    assert agent.state is state


def test_adopt_refuses_an_object_without_room() -> None:
    """An object whose class takes no fields is refused with a list of the fields."""
    with pytest.raises(
        AgentError, match=r"Slots has no fields engagement_threshold, .*: declare them"
    ):
        chart_of().adopt(Slots())


def test_a_forgotten_state_type_is_told() -> None:
    """A mixin without its states, or an agent of another chart, is told what to set."""

    class Forgetful(StatechartMixin):
        """Has the default states."""

    work = StrEnum("Work", ["OPEN", "DONE"])
    desk = Statechart(work, [Transition("go", work.OPEN, work.DONE)], work.OPEN, name="desk")
    with pytest.raises(UnknownStateError, match=r"not of .*Work .* not in chart 'desk'") as caught:
        desk.fire(Forgetful(), "go")
    assert "set  state_type = chart.state_type  in the agent's class" in str(caught.value)


class Patched(StatechartMixin):
    """Keeps its ticks itself, as a class attribute that instances shadow."""

    ticks_in_state = 0


def test_a_mixin_class_with_a_field_of_its_own_is_written_whole() -> None:
    """A mixin class that keeps one field itself has that field written like the others."""
    agent: Any = Patched()
    agent.ticks_in_state = 4
    assert chart_of(Transition("go", S.IDLE, S.SCROLLING)).fire(agent, "go") is S.SCROLLING
    assert agent.ticks_in_state == 0
    assert moves_of(agent) == [("idle", "go", "scrolling")]


@pytest.mark.parametrize("make", [Slots, Record, Model, OwnAgent, Text])
def test_moves_of_every_kind_of_agent_are_announced(make: Any, events: list[Any]) -> None:
    """Whatever an agent is made of, each of its moves is one event in plain texts."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE))
    agent = make()
    for _ in range(3):
        chart.fire(agent, "go")
    assert [(entry["from_state"], entry["to_state"]) for entry in events] == [
        ("idle", "scrolling"),
        ("scrolling", "idle"),
        ("idle", "scrolling"),
    ]
    assert all(type(entry["to_state"]) is str for entry in events)
