"""A pydantic model keeps its validation, serialisation, schema, equality and copies."""

import copy
import json
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError

from prism.agents import StatechartMixin
from prism.errors import AgentError
from prism.statechart import AgentState, StateTransition, social_media_chart
from prism.testing._transition_log import transition_log

Load = Callable[..., ModuleType]


@pytest.fixture
def guide(load: Load) -> ModuleType:
    """Import the guide's code."""
    return load("pydantic")


def moved(guide: ModuleType, agent: Any) -> Any:
    """Move an agent, and let a tick pass."""
    assert guide.chart.fire(agent, "bumped", 9) is guide.Mood.ANGRY
    guide.chart.tick(agent)
    return agent


def test_what_the_model_had_is_as_before(guide: ModuleType, load: Load) -> None:
    """A moved agent prints, dumps and describes the fields it had as before, with the declared ones after them."""
    before, agent = load("pydantic", "-").Walker(name="Ada"), moved(guide, guide.Walker(name="Ada"))
    own = set(type(before).model_fields)
    assert agent.model_dump(include=own) == before.model_dump()
    assert agent.model_dump_json().startswith(before.model_dump_json()[:-1])
    assert repr(agent).startswith(repr(before)[:-1])
    described, schema = type(before).model_json_schema(), type(agent).model_json_schema()
    assert schema["required"] == described["required"]
    assert {name: schema["properties"][name] for name in own} == described["properties"]


def test_the_history_is_kept_and_not_dumped(guide: ModuleType) -> None:
    """The three-line model has prism's records, which stay out of its dump and its repr."""
    agent = moved(guide, guide.Walker(name="Ada"))
    assert [type(record) for record in agent.state_history] == [StateTransition]
    assert agent.ticks_in_state == 1
    assert "history" not in repr(agent) + agent.model_dump_json()


def test_what_is_saved_is_validated_when_read(guide: ModuleType) -> None:
    """State and ticks survive a round trip, and what the model does not allow is refused with their names."""
    agent = moved(guide, guide.Walker(name="Ada"))
    again = guide.Walker.model_validate_json(agent.model_dump_json())
    assert (again.state, again.ticks_in_state) == (guide.Mood.ANGRY, 1)
    with pytest.raises(ValidationError) as caught:
        guide.Walker.model_validate({"name": "Ada", "state": "furious", "ticks_in_state": -1})
    assert [error["loc"] for error in caught.value.errors()] == [("state",), ("ticks_in_state",)]


def test_a_model_with_its_own_moves_survives_json(guide: ModuleType) -> None:
    """State and history survive JSON, dict and pickle, as an equal model that goes on from there."""
    agent = moved(guide, guide.Porter(name="Bo"))
    for again in (
        guide.Porter.model_validate_json(agent.model_dump_json()),
        guide.Porter.model_validate(agent.model_dump()),
        pickle.loads(pickle.dumps(agent)),
    ):
        assert again == agent
        assert guide.chart.fire(again, "timeout") is guide.Mood.CALM
        assert [move.trigger for move in again.state_history] == ["bumped", "timeout"]
        assert len(agent.state_history) == 1
    assert json.loads(agent.model_dump_json())["state_history"] == [
        {"from_state": "calm", "to_state": "angry", "trigger": "bumped", "context": {"value": 9}}
    ]


def test_assignment_is_validated_by_the_model(guide: ModuleType) -> None:
    """With validate_assignment a wrong state is refused, the chart's writes pass, and both are noted as set."""
    agent = guide.Walker(name="Ada")
    with pytest.raises(ValidationError, match="Input should be 'calm' or 'angry'"):
        agent.state = "furious"
    assert agent.model_fields_set == {"name"}
    moved(guide, agent)
    assert agent.model_fields_set == {"name", "state", "ticks_in_state"}


def test_a_move_that_a_validator_refuses_is_not_made(guide: ModuleType) -> None:
    """A validator's refusal reaches the caller, and neither state nor history nor ticks have changed."""

    class Placid(guide.Walker):  # type: ignore[misc,name-defined]
        @pydantic.field_validator("state")
        @classmethod
        def stay_calm(cls, state: Any) -> Any:
            if state == "angry":
                raise ValueError("never angry")
            return state

    agent = Placid(name="Ada", ticks_in_state=3)
    with pytest.raises(ValidationError, match="never angry"):
        guide.chart.fire(agent, "bumped", 9)
    assert (agent.state, agent.ticks_in_state, agent.state_history) == (guide.Mood.CALM, 3, [])


@pytest.mark.parametrize("mode", ["field", "model"])
def test_a_refusal_halfway_takes_the_whole_move_back(mode: str, guide: ModuleType) -> None:
    """Where the ticks, or a look at the whole model, refuse a move, the agent is as it was and no event is logged."""

    class Impatient(guide.Walker):  # type: ignore[misc,name-defined]
        ticks_in_state: int = pydantic.Field(4, ge=1)

    class Placid(guide.Walker):  # type: ignore[misc,name-defined]
        @pydantic.model_validator(mode="after")
        def stay_calm(self) -> Any:
            if self.state == "angry":
                raise ValueError("never angry")
            return self

    agent = Impatient(name="Ada") if mode == "field" else Placid(name="Ada", ticks_in_state=4)
    with (
        transition_log() as log,
        pytest.raises(ValidationError, match=r"greater than or equal to 1|never angry") as caught,
    ):
        guide.chart.fire(agent, "bumped", 9)
    assert (agent.state, agent.ticks_in_state, agent.state_history) == (guide.Mood.CALM, 4, [])
    assert log.events == []
    assert "is as it was before" in caught.value.__notes__[0]


def test_a_frozen_model_refuses_to_move() -> None:
    """A frozen model refuses the move with pydantic's own error and stays as it was."""

    class Stone(BaseModel, frozen=True):
        state: AgentState = AgentState.IDLE

    agent = Stone()
    with pytest.raises(ValidationError, match="frozen"):
        social_media_chart().fire(agent, "feed_ready")
    assert agent == Stone()


def test_equality_takes_in_what_is_declared(guide: ModuleType) -> None:
    """A model that moved differs from one that did not, and models that moved alike are equal."""
    first, second = guide.Walker(name="Ada"), guide.Walker(name="Ada")
    assert first == second
    guide.chart.fire(first, "bumped", 9)
    assert first != second
    second.state, second.state_history = first.state, first.state_history
    assert first == second


@pytest.mark.parametrize("name", ["Walker", "Porter"])
def test_copies_are_as_the_guide_says(name: str, guide: ModuleType) -> None:
    """A shallow copy shares the history, a deep one does not; all have the state."""
    agent = moved(guide, getattr(guide, name)(name="Ada"))
    shallow, deep, own = agent.model_copy(), agent.model_copy(deep=True), copy.deepcopy(agent)
    assert shallow == deep == own == agent
    assert shallow.state_history is agent.state_history
    for twin in (deep, own):
        assert twin.state_history is not agent.state_history


def test_states_may_be_kept_as_text(guide: ModuleType) -> None:
    """A model that keeps the values of enums is driven like any other, and its text stays text."""

    class Plain(guide.Walker):  # type: ignore[misc,name-defined]
        model_config = ConfigDict(use_enum_values=True, validate_default=True)

    agent = Plain(name="Ada")
    assert type(agent.state) is str
    assert guide.chart.fire(agent, "bumped", 9) is guide.Mood.ANGRY
    assert (type(agent.state), agent.state) == (str, "angry")
    assert guide.chart.fire(agent, "timeout") is guide.Mood.CALM


def test_private_attributes_may_hold_the_state() -> None:
    """A private state behind a property stays out of dump, schema and repr, though not out of equality."""

    class Secretive(BaseModel):
        name: str
        _state: AgentState = PrivateAttr(AgentState.IDLE)

        @property
        def state(self) -> AgentState:
            return self._state

        @state.setter
        def state(self, value: AgentState) -> None:
            self._state = value

    agent = Secretive(name="Ada")
    assert social_media_chart().fire(agent, "feed_ready") is agent.state is AgentState.SCROLLING
    assert (agent.model_dump(), repr(agent)) == ({"name": "Ada"}, "Secretive(name='Ada')")
    assert set(Secretive.model_json_schema()["properties"]) == {"name"}
    assert agent != Secretive(name="Ada")


@pytest.mark.parametrize("bases", [(StatechartMixin, BaseModel), (BaseModel, StatechartMixin)])
def test_the_mixin_on_a_model_says_what_to_do(bases: tuple[type, ...]) -> None:
    """A model derived from the mixin is refused when it is defined, with the fields to declare instead."""
    with pytest.raises(
        AgentError,
        match=r"Walker is a pydantic model, .*: leave StatechartMixin out and declare 'state'",
    ):
        type(BaseModel)("Walker", bases, {"__module__": __name__})


def test_the_mixin_on_a_pydantic_dataclass_is_refused_at_the_first_move() -> None:
    """A pydantic dataclass drops what the mixin keeps, and the first move says that its state cannot be read."""

    @pydantic.dataclasses.dataclass
    class Walker(StatechartMixin):
        name: str

    with pytest.raises(AgentError, match="cannot drive 'Walker': its 'state' cannot be read"):
        social_media_chart().fire(Walker("Ada"), "feed_ready")


def test_a_pydantic_dataclass_declares_the_fields() -> None:
    """A pydantic dataclass with the fields is driven, validated and saved."""

    @pydantic.dataclasses.dataclass(config=ConfigDict(validate_assignment=True), slots=True)
    class Walker:
        name: str
        state: AgentState = AgentState.IDLE

    agent = Walker("Ada")
    assert social_media_chart().fire(agent, "feed_ready") is AgentState.SCROLLING
    assert pydantic.TypeAdapter(Walker).dump_json(agent) == b'{"name":"Ada","state":"scrolling"}'
    with pytest.raises(ValidationError):
        agent.state = "flying"  # type: ignore[assignment]


def test_adopting_needs_declared_fields() -> None:
    """A model is not adopted, and the message names the fields; one that takes extras shows them in its dump."""

    class Closed(BaseModel):
        state: AgentState = AgentState.IDLE

    class Open(Closed, extra="allow"):
        pass

    class Declared(Closed):
        engagement_threshold: float = 0.5
        max_history_depth: int | None = None
        state_history: list[Any] = pydantic.Field(default_factory=list)
        ticks_in_state: int = 0
        timeout_threshold: int = 5

    missing = (
        "engagement_threshold, max_history_depth, state_history, ticks_in_state, timeout_threshold"
    )
    with pytest.raises(
        AgentError,
        match=rf"Closed has no room for {missing}: declare these fields in the class; if",
    ):
        social_media_chart().adopt(Closed())
    assert social_media_chart().adopt(Declared()) == Declared()
    assert "ticks_in_state" in social_media_chart().adopt(Open()).model_dump()
