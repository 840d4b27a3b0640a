"""A dataclass keeps its equality, order, hash, repr and serialisation."""

import copy
import dataclasses
import inspect
import json
import pickle
import weakref
from collections.abc import Callable
from dataclasses import asdict, astuple, fields, make_dataclass
from types import ModuleType
from typing import Any

import pytest

from prism.agents import StatechartMixin
from tests.how_to.conftest import Load, moved

FIELDS = [("name", str, "Ada"), ("patience", int, 3)]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"slots": True},
    {"order": True},
    {"unsafe_hash": True},
    {"unsafe_hash": True, "slots": True},
    {"eq": False},
    {"repr": False},
    {"kw_only": True, "slots": True},
]


@pytest.fixture
def guide(load: Load) -> ModuleType:
    """Import the guide's code."""
    return load("dataclass")


@pytest.fixture(params=OPTIONS, ids=str)
def pair(request: pytest.FixtureRequest, guide: ModuleType) -> tuple[Any, Any]:
    """Return a dataclass without and with the mixin, for every way of making one."""
    made = [
        make_dataclass(
            "Walker",
            [(name, kind, dataclasses.field(default=value)) for name, kind, value in FIELDS],
            bases=bases,
            namespace={"state_type": guide.Mood},
            **request.param,
        )
        for bases in ((), (StatechartMixin,))
    ]
    return made[0], made[1]


def outcome(ask: Callable[[], Any]) -> Any:
    """Return the result of a call, or the type of its error."""
    try:
        return ask()
    except TypeError as error:
        return type(error)


def test_a_moved_agent_is_the_dataclass_it_was(pair: tuple[Any, Any], guide: ModuleType) -> None:
    """The mixin changes neither fields nor comparison, hash, repr and serialisation."""
    plain, with_states = pair
    before, agent = plain(), moved(guide, with_states())
    assert [field.name for field in fields(agent)] == [field.name for field in fields(before)]
    assert inspect.signature(with_states) == inspect.signature(plain)
    assert with_states.__match_args__ == plain.__match_args__
    assert (asdict(agent), astuple(agent)) == (asdict(before), astuple(before))
    assert (agent == with_states()) == (before == plain())
    assert (agent == with_states(name="Bo")) == (before == plain(name="Bo")) is False
    assert outcome(lambda: agent < with_states(name="Bo")) == outcome(
        lambda: before < plain(name="Bo")
    )
    assert weakref.ref(agent)() is agent
    if plain.__hash__ is not object.__hash__:
        assert outcome(lambda: hash(agent)) == outcome(lambda: hash(before))
    if plain.__repr__ is not object.__repr__:
        assert repr(agent) == repr(before)


def test_declared_fields_are_saved(guide: ModuleType) -> None:
    """A dataclass that declares the fields can be written as JSON, history included."""
    saved = json.loads(json.dumps(asdict(moved(guide, guide.Porter("Bo"))), default=str))
    assert (saved["state"], saved["ticks_in_state"]) == ("angry", 1)
    (move,) = saved["state_history"]
    assert (move["from_state"], move["to_state"], move["trigger"]) == ("calm", "angry", "bumped")
    assert move["context"] == {"value": 9}


@pytest.mark.parametrize("name", ["Walker", "Porter"])
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
def test_copies_include_the_state(
    name: str, clone: Callable[[Any], Any], guide: ModuleType
) -> None:
    """A copy has state, ticks and its own history."""
    agent = moved(guide, getattr(guide, name)("Ada"))
    twin = clone(agent)
    assert twin == agent
    assert (twin.state, twin.ticks_in_state) == (guide.Mood.ANGRY, 1)
    assert list(twin.state_history) == list(agent.state_history)
    twin.state_history.clear()
    assert len(agent.state_history) == 1


def test_adopting_one_object_keeps_the_dataclass(guide: ModuleType, load: Load) -> None:
    """An adopted object of a dataclass compares, prints and serialises as before."""
    untouched = load("dataclass", "-").Walker
    agent = moved(guide, guide.chart.adopt(untouched("Ada")))
    assert agent == untouched("Ada")
    assert repr(agent) == repr(untouched("Ada"))
    assert asdict(agent) == asdict(untouched("Ada"))
    assert len(agent.state_history) == 1
