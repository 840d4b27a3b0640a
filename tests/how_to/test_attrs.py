"""An attrs class keeps its equality, order, hash, repr, validation and serialisation."""

import copy
import inspect
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import attrs
import pytest

from prism.agents import StatechartMixin

Load = Callable[..., ModuleType]

OPTIONS: list[dict[str, Any]] = [
    {},
    {"slots": False},
    {"order": True},
    {"unsafe_hash": True},
    {"unsafe_hash": True, "cache_hash": True},
    {"eq": False},
    {"kw_only": True},
    {"getstate_setstate": False},
    {"weakref_slot": False},
]
CLONES = [copy.copy, copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))]


@pytest.fixture
def guide(load: Load) -> ModuleType:
    """Import the guide's code."""
    return load("attrs")


def moved(guide: ModuleType, agent: Any) -> Any:
    """Fire an event and a tick on an agent."""
    assert guide.chart.fire(agent, "bumped", 9) is guide.Mood.ANGRY
    guide.chart.tick(agent)
    return agent


@pytest.fixture(params=OPTIONS, ids=str)
def pair(request: pytest.FixtureRequest, guide: ModuleType) -> tuple[Any, Any]:
    """Return an attrs class without and with the mixin, for every way of making one."""
    made = []
    for bases in ((), (StatechartMixin,)):
        body = {
            "name": attrs.field(default="Ada"),
            "patience": attrs.field(default=3),
            "state_type": guide.Mood,
            "__module__": guide.__name__,
        }
        made.append(attrs.define(type("Runner", bases, body), **request.param))
    vars(guide)["Runner"] = made[1]
    return made[0], made[1]


def outcome(ask: Callable[[], Any]) -> Any:
    """Return the result of a call, or the type of its error."""
    try:
        return ask()
    except TypeError as error:
        return type(error)


def test_a_moved_agent_is_the_attrs_class_it_was(pair: tuple[Any, Any], guide: ModuleType) -> None:
    """The mixin changes neither fields nor comparison, hash, repr and serialisation."""
    plain, with_states = pair
    before, agent = plain(), moved(guide, with_states())
    assert [field.name for field in attrs.fields(with_states)] == [
        field.name for field in attrs.fields(plain)
    ]
    assert inspect.signature(with_states) == inspect.signature(plain)
    assert (attrs.asdict(agent), attrs.astuple(agent)) == (
        attrs.asdict(before),
        attrs.astuple(before),
    )
    assert repr(agent) == repr(before)
    assert (agent == with_states()) == (before == plain())
    assert outcome(lambda: agent < with_states(name="Bo")) == outcome(
        lambda: before < plain(name="Bo")
    )
    if plain.__hash__ is not object.__hash__:
        same = outcome(lambda: hash(agent) == hash(with_states()))
        assert same == outcome(lambda: hash(before) == hash(plain()))


@pytest.mark.parametrize("clone", CLONES)
@pytest.mark.sampled(9)
def test_copies_include_the_state(
    clone: Callable[[Any], Any], pair: tuple[Any, Any], guide: ModuleType
) -> None:
    """A copy has the fields of attrs and of the mixin, however the class was made."""
    agent = moved(guide, pair[1](name="Eve"))
    twin = clone(agent)
    assert attrs.asdict(twin) == attrs.asdict(agent)
    assert (twin.state, twin.ticks_in_state) == (guide.Mood.ANGRY, 1)
    assert twin.state_history == agent.state_history
    assert twin.state_history.maxlen == 50


def test_validators_still_run(guide: ModuleType) -> None:
    """Validators still run, at construction and on assignment."""
    walker = moved(guide, guide.Walker("Ada"))
    with pytest.raises(ValueError, match="patience"):
        guide.Walker("Ada", patience=-1)
    with pytest.raises(ValueError, match="patience"):
        walker.patience = -1
    assert walker.patience == 3


def test_hooks_run_for_every_transition(guide: ModuleType) -> None:
    """A hook on assignment runs when the chart assigns."""
    seen = []

    @attrs.define
    class Watched:
        state: Any = attrs.field(
            default=guide.Mood.CALM,
            on_setattr=lambda agent, field, value: seen.append(value) or value,
        )

    agent = Watched(guide.Mood.ANGRY)
    guide.chart.fire(agent, "timeout")
    assert seen == [agent.state] == [guide.Mood.CALM]
