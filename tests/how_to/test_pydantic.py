"""A pydantic model keeps its validation, serialisation, schema, equality and copies."""

import json
import pickle
from types import ModuleType
from typing import Any

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from prism.agents import StatechartMixin
from prism.errors import AgentError
from prism.statechart import AgentState, StateTransition, social_media_chart
from prism.testing import TransitionLog
from tests.how_to.conftest import Load, moved


@pytest.fixture
def guide(load: Load) -> ModuleType:
    """Import the guide's code."""
    return load("pydantic")


def test_saved_fields_are_validated_when_loaded(guide: ModuleType) -> None:
    """State and ticks survive a round trip; invalid values are refused by field."""
    agent = moved(guide, guide.Walker(name="Ada"))
    again = guide.Walker.model_validate_json(agent.model_dump_json())
    assert (again.state, again.ticks_in_state) == (guide.Mood.ANGRY, 1)
    with pytest.raises(ValidationError) as caught:
        guide.Walker.model_validate({"name": "Ada", "state": "furious", "ticks_in_state": -1})
    assert [error["loc"] for error in caught.value.errors()] == [("state",), ("ticks_in_state",)]


def test_a_model_with_its_own_records_survives_json(guide: ModuleType) -> None:
    """State and history survive JSON, dict and pickle."""
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


@pytest.mark.parametrize("mode", ["field", "model"])
def test_a_refusal_halfway_undoes_the_whole_transition(
    mode: str, guide: ModuleType, transition_log: TransitionLog
) -> None:
    """If a later assignment is refused, the agent is unchanged and no event is logged."""

    class Impatient(guide.Walker):  # type: ignore[misc,name-defined]
        ticks_in_state: int = pydantic.Field(4, ge=1)

    class Placid(guide.Walker):  # type: ignore[misc,name-defined]
        @pydantic.model_validator(mode="after")
        def stay_calm(self) -> Any:
            if self.state == "angry":
                raise ValueError("never angry")
            return self

    agent = Impatient(name="Ada") if mode == "field" else Placid(name="Ada", ticks_in_state=4)
    with pytest.raises(ValidationError, match=r"greater than or equal to 1|never angry"):
        guide.chart.fire(agent, "bumped", 9)
    assert (agent.state, agent.ticks_in_state, agent.state_history) == (guide.Mood.CALM, 4, [])
    assert transition_log.events == []


def test_a_field_of_records_is_written_and_read(guide: ModuleType) -> None:
    """The history is in the JSON and comes back, its states as texts; anything else is refused."""

    class Walker(pydantic.BaseModel):
        patience: int = 3
        state: Any = guide.Mood.CALM
        state_history: list[StateTransition] = []
        max_history_depth: int = 5

    agent = moved(guide, Walker())
    again = Walker.model_validate_json(agent.model_dump_json())
    assert [record.to_dict() for record in again.state_history] == [
        record.to_dict() for record in agent.state_history
    ]
    with pytest.raises(ValidationError, match="a record of a transition cannot be read"):
        Walker(state_history=[{}])


def test_states_may_be_stored_as_text(guide: ModuleType) -> None:
    """A model that stores enum values as text can be fired, and its state stays text."""

    class Plain(guide.Walker):  # type: ignore[misc,name-defined]
        model_config = ConfigDict(use_enum_values=True, validate_default=True)

    agent = Plain(name="Ada")
    assert type(agent.state) is str
    assert guide.chart.fire(agent, "bumped", 9) is guide.Mood.ANGRY
    assert (type(agent.state), agent.state) == (str, "angry")
    assert guide.chart.fire(agent, "timeout") is guide.Mood.CALM


@pytest.mark.parametrize("bases", [(StatechartMixin, BaseModel), (BaseModel, StatechartMixin)])
def test_the_mixin_on_a_model_says_what_to_do(bases: tuple[type, ...]) -> None:
    """Defining a model with the mixin raises an error with the fields to declare."""
    with pytest.raises(
        AgentError,
        match=r"Walker is a pydantic model, .*: leave StatechartMixin out and declare 'state'",
    ):
        type(BaseModel)("Walker", bases, {"__module__": __name__})


def test_the_mixin_on_a_pydantic_dataclass_is_refused_at_the_first_event() -> None:
    """The first event on a pydantic dataclass with the mixin raises an error."""

    @pydantic.dataclasses.dataclass
    class Walker(StatechartMixin):
        name: str

    with pytest.raises(AttributeError, match="'Walker' object has no attribute"):
        social_media_chart().fire(Walker("Ada"), "feed_ready")


def test_a_pydantic_dataclass_declares_the_fields() -> None:
    """A pydantic dataclass with declared fields is driven, validated and saved."""

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
    """Adopting a model raises an error, unless it allows extra fields."""

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

    with pytest.raises(ValueError, match='object has no field "ticks_in_state"'):
        social_media_chart().adopt(Closed())
    assert social_media_chart().adopt(Declared()) == Declared()
    assert "ticks_in_state" in social_media_chart().adopt(Open()).model_dump()
