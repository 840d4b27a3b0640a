"""Dataclasses, pydantic models and rows keep their ways when a chart drives them."""

import dataclasses
import inspect
import json
from collections.abc import Callable
from dataclasses import asdict, astuple, fields, make_dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import JSON, Column, Integer, PickleType, String, create_engine
from sqlalchemy.ext.mutable import MutableList
from sqlalchemy.orm import DeclarativeBase, Session

from prism import Statechart, Transition
from prism.agents import StatechartMixin
from prism.errors import AgentError
from prism.statechart import StateTransition

Mood = StrEnum("Mood", ["CALM", "ANGRY"])
MOVES = [Transition("bumped", Mood.CALM, Mood.ANGRY), Transition("timeout", Mood.ANGRY, Mood.CALM)]
CHART = Statechart(Mood, MOVES, Mood.CALM)


def moved(agent: Any) -> Any:
    """Fire an event and a tick on an agent."""
    assert CHART.fire(agent, "bumped", 9) is Mood.ANGRY
    CHART.tick(agent)
    return agent


FIELDS = [("name", str, "Ada"), ("patience", int, 3)]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"slots": True},
    {"order": True},
    {"unsafe_hash": True, "slots": True},
    {"eq": False},
    {"repr": False},
    {"kw_only": True, "slots": True},
]


def outcome(ask: Callable[[], Any]) -> Any:
    """Return the result of a call, or the type of its error."""
    try:
        return ask()
    except TypeError as error:
        return type(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_moved_agent_is_the_dataclass_it_was(options: dict[str, Any]) -> None:
    """The mixin changes neither fields nor comparison, hash, repr and serialisation."""
    own = [(name, kind, dataclasses.field(default=value)) for name, kind, value in FIELDS]
    plain, with_states = (
        make_dataclass("Walker", own, bases=bases, namespace={"state_type": Mood}, **options)
        for bases in ((), (StatechartMixin,))
    )
    before, agent = plain(), moved(with_states())
    assert [field.name for field in fields(agent)] == [field.name for field in fields(before)]
    assert inspect.signature(with_states) == inspect.signature(plain)
    assert with_states.__match_args__ == plain.__match_args__
    assert (asdict(agent), astuple(agent)) == (asdict(before), astuple(before))
    assert (agent == with_states()) == (before == plain())
    assert (agent == with_states(name="Bo")) == (before == plain(name="Bo")) is False
    assert outcome(lambda: agent < with_states(name="Bo")) == outcome(
        lambda: before < plain(name="Bo")
    )
    if plain.__hash__ is not object.__hash__:
        assert outcome(lambda: hash(agent)) == outcome(lambda: hash(before))
    if plain.__repr__ is not object.__repr__:
        assert repr(agent) == repr(before)


class Walker(BaseModel):
    """A model with the fields of an agent, and prism's own records."""

    model_config = ConfigDict(validate_assignment=True)
    patience: int = 3
    state: Mood = Mood.CALM
    ticks_in_state: int = pydantic.Field(0, ge=0)
    state_history: list[StateTransition] = []
    max_history_depth: int = 5


def test_a_model_is_validated_and_its_records_are_read_again() -> None:
    """The history is in the JSON and comes back, its states as texts; anything else is refused."""
    agent = moved(Walker())
    saved = json.loads(agent.model_dump_json())
    (record,) = saved["state_history"]
    schema = Walker.model_json_schema()["properties"]["state_history"]["items"]
    assert schema["required"] == [*record]
    assert (record["from_state"], record["to_state"], record["trigger"]) == (*Mood, "bumped")
    assert record["context"] == {"value": 9}
    again = Walker.model_validate(saved)
    assert (again.state, again.ticks_in_state) == (Mood.ANGRY, 1)
    assert [record.to_dict() for record in again.state_history] == saved["state_history"]
    with pytest.raises(ValidationError, match="a record of a transition cannot be read"):
        Walker(state_history=[{}])  # type: ignore[list-item]


class Placid(Walker):
    """A model that is never angry."""

    @pydantic.model_validator(mode="after")
    def stay_calm(self) -> Any:
        """Refuse to be angry."""
        if self.state == "angry":
            raise ValueError("never angry")
        return self


def test_a_refusal_undoes_the_whole_transition() -> None:
    """If a validator refuses, the agent is unchanged."""
    agent = Placid(ticks_in_state=4)
    with pytest.raises(ValidationError, match="never angry"):
        CHART.fire(agent, "bumped", 9)
    assert (agent.state, agent.ticks_in_state, agent.state_history) == (Mood.CALM, 4, [])


class AsText(Walker, use_enum_values=True, validate_default=True):
    """A model that stores enum values as text."""


@pydantic.dataclasses.dataclass(config=ConfigDict(validate_assignment=True), slots=True)
class Dataclass:
    """A dataclass of pydantic."""

    state: Mood = Mood.CALM


@pytest.mark.parametrize("kind", [AsText, Dataclass])
def test_models_of_other_kinds_are_driven(kind: Any) -> None:
    """States may be stored as text, which they stay; a dataclass of pydantic declares them."""
    agent = kind()
    stored = type(agent.state)
    assert CHART.fire(agent, "bumped", 9) is Mood.ANGRY
    assert (type(agent.state), agent.state) == (stored, "angry")
    assert CHART.fire(agent, "timeout") is Mood.CALM


@pytest.mark.parametrize(
    "make",
    [
        lambda: type(BaseModel)("Walker", (StatechartMixin, BaseModel), {"__module__": __name__}),
        lambda: type(BaseModel)("Walker", (BaseModel, StatechartMixin), {"__module__": __name__}),
        lambda: pydantic.dataclasses.dataclass(type("Walker", (StatechartMixin,), {})),
    ],
)
def test_the_mixin_on_a_class_of_pydantic_says_what_to_do(make: Callable[[], Any]) -> None:
    """Making an object of a model, or of a dataclass, raises an error with what to declare."""
    cls = make()
    with pytest.raises(AgentError, match=r"Walker is a class of pydantic, .*: declare 'state', "):
        cls()


def test_adopting_needs_declared_fields() -> None:
    """Adopting a model raises an error, unless it declares the fields or allows others."""

    class Closed(BaseModel):
        state: Mood = Mood.CALM

    class Open(Closed, extra="allow"):
        pass

    with pytest.raises(AgentError, match=r"Closed has no room for 'ticks_in_state' .*declare it"):
        CHART.adopt(Closed())
    assert "ticks_in_state" in CHART.adopt(Open()).model_dump()


@pytest.mark.parametrize("kind", [PickleType, MutableList.as_mutable(PickleType())])
def test_a_row_keeps_its_history_and_times_in_columns(kind: Any) -> None:
    """Whatever the column is, what was committed is read again, and a rollback undoes the rest."""

    class Base(DeclarativeBase):
        pass

    class Row(Base):
        __tablename__ = "rows"
        id = Column(Integer, primary_key=True)
        state = Column(String, default="calm")
        ticks_in_state = Column(Integer, default=0)
        state_history = Column(kind, default=list)
        state_memory = Column(JSON)

    chart = CHART.extended(transitions=[Transition("tired", Mood.CALM, Mood.ANGRY, after=2)])
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(Row())
        for step in (
            *(partial(chart.fire, trigger=trigger) for trigger in ("bumped", "timeout")),
            *(chart.tick, chart.tick, partial(chart.fire, trigger="timeout")),
        ):
            session.commit()
            row = session.query(Row).one()
            step(row)
        session.rollback()
        assert row.state == "angry"
        assert [each.trigger for each in row.state_history] == ["bumped", "timeout", "tired"]
