"""Frozen values stay values."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from types import ModuleType
from typing import Any, NamedTuple

import attrs
import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from prism.agents import StatechartMixin
from prism.errors import AgentError
from prism.statechart import AgentState, Statechart, Transition, social_media_chart

Load = Callable[..., ModuleType]


@pytest.fixture
def guide(load: Load) -> ModuleType:
    """Import the guide's code."""
    return load("frozen")


@dataclass(frozen=True)
class Stone:
    """A frozen value with a state."""

    state: AgentState = AgentState.IDLE
    ticks_in_state: int = 0


@attrs.frozen
class Rock:
    """A frozen attrs class with a state."""

    state: AgentState = AgentState.IDLE


class Granite(BaseModel, frozen=True):
    """A frozen model with a state."""

    state: AgentState = AgentState.IDLE
    ticks_in_state: int = 0


class Pair(NamedTuple):
    """A tuple with a state."""

    state: AgentState = AgentState.IDLE


class Fixed:
    """A class whose state is read only."""

    state = property(lambda fixed: AgentState.IDLE)


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))]
)
def test_a_frozen_class_may_define_transition_to(
    clone: Callable[[Any], Any], guide: ModuleType
) -> None:
    """With transition_to, a frozen agent keeps equality and hash, and stays frozen."""
    agent, unmoved = guide.Porter("Cy"), guide.Porter("Cy")
    hashed = hash(agent)
    guide.chart.fire(agent, "bumped")
    assert agent == unmoved
    assert hash(agent) == hash(unmoved) == hashed
    with pytest.raises(FrozenInstanceError):
        agent.state = guide.Mood.CALM
    assert clone(agent).state is agent.state is guide.Mood.ANGRY


@pytest.mark.parametrize(
    "agent", [Stone(), Pair(), Fixed(), Rock()], ids=["dataclass", "tuple", "property", "attrs"]
)
def test_firing_on_a_frozen_object_says_what_to_do(agent: Any) -> None:
    """Firing on a frozen object raises an error with its reason and two solutions."""
    name = type(agent).__name__
    message = rf"{name} takes no new values \(.+\): keep the frozen value .* or give the class a t"
    with pytest.raises(AgentError, match=message) as caught:
        social_media_chart().fire(agent, "feed_ready")
    assert isinstance(caught.value.__cause__, AttributeError)
    assert agent.state is AgentState.IDLE


class Counting(BaseModel):
    """A model whose ticks begin at 1."""

    model_config = ConfigDict(validate_assignment=True)

    state: AgentState = AgentState.IDLE
    ticks_in_state: int = Field(1, ge=1)


class Clocked:
    """A class whose ticks are read only."""

    state = AgentState.IDLE
    ticks_in_state = property(lambda clocked: 3)


@pytest.mark.parametrize(
    "agent", [Stone(), Pair(), Fixed(), Rock(), Granite(), Counting(), Clocked()]
)
@pytest.mark.parametrize("by_machine", [False, True])
def test_a_frozen_object_is_refused_before_an_action_runs(agent: Any, by_machine: bool) -> None:
    """What cannot be recorded is not begun."""
    ran: list[Any] = []
    go = Transition(
        "go", AgentState.IDLE, AgentState.RESTING, action=lambda agent, context: ran.append(1)
    )
    chart = Statechart(AgentState, [go], AgentState.IDLE)
    with pytest.raises((AgentError, ValidationError)):
        chart.machine.events["go"].trigger(agent) if by_machine else chart.fire(agent, "go")
    assert (ran, agent.state) == ([], AgentState.IDLE)


def test_a_tick_of_a_frozen_object_says_what_to_do() -> None:
    """A tick of a frozen object with a tick count raises an error; without one, nothing."""
    with pytest.raises(
        AgentError, match=r"Stone takes no new values \(.+\): keep the frozen value"
    ) as caught:
        social_media_chart().tick(Stone())
    assert isinstance(caught.value.__cause__, FrozenInstanceError)
    assert [social_media_chart().tick(Pair()) for _ in range(20)] == [None] * 20


@pytest.mark.parametrize(
    "agent", [Stone(), Pair(), Rock(), Granite()], ids=["dataclass", "tuple", "attrs", "pydantic"]
)
def test_adopting_a_frozen_object_says_what_to_do(agent: Any) -> None:
    """Adopting a frozen object raises an error that says to put it into an agent."""

    class Holder(StatechartMixin):
        def __init__(self, held: Any) -> None:
            self.held = held

    with pytest.raises(
        AgentError,
        match=r"has no fields .+: declare them in the class",
    ):
        social_media_chart().adopt(agent)
    assert social_media_chart().fire(Holder(agent), "feed_ready") is AgentState.SCROLLING


def test_a_frozen_model_raises_its_own_error() -> None:
    """A frozen pydantic model raises its own error."""
    chart = social_media_chart()
    for drive in (lambda: chart.fire(Granite(), "feed_ready"), lambda: chart.tick(Granite())):
        with pytest.raises(ValidationError, match="Instance is frozen"):
            drive()
