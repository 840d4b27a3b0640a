"""Fields as JSON, and back."""

from collections import deque
from enum import Enum, Flag, StrEnum, auto
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism import Run
from prism.errors import SimulationError
from prism.statechart import Configuration
from prism.worlds import Thing, World, state
from tests.kit.later import Later
from tests.kit.medley import Mood, Note, Walker
from tests.kit.texts import ANY

numpy = Later("numpy")


class Holder(World[Walker]):
    """A world that holds anything."""

    rounds = 1
    held: Any = state(None)


class Odd(Enum):
    """An enum whose values are no texts."""

    ONE = 1
    PAIR = (1, 2)


class Tone(StrEnum):
    """An enum whose members are equal to their values."""

    LOUD = "loud"


HASHABLE = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.text(ANY),
    st.booleans(),
    st.none(),
    st.sampled_from([*Mood, *Odd, *Tone]),
)
VALUES = st.recursive(
    HASHABLE,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.lists(inner).map(lambda items: deque(items, maxlen=5)),
        st.dictionaries(st.one_of(HASHABLE, st.tuples(HASHABLE, HASHABLE)), inner),
    ),
    max_leaves=12,
)


def kept(value: Any) -> tuple[Any, Run[Holder]]:
    """Return what a value is after a checkpoint, and the run that it is in."""
    first = Run(Holder(), 3)
    first.world.held = value(first) if callable(value) else value
    snapshot = orjson.loads(orjson.dumps(first.loop.snapshot()))
    again = Run(Holder(), 3)
    again.loop.restore(snapshot, [])

    return again.world.held, again


@given(value=VALUES)
def test_any_value_comes_back(value: Any) -> None:
    """Numbers of any size, texts, enums, lists, tuples, deques and dicts come back as they are."""
    found, _ = kept(value)
    assert repr(found) == repr(value)


class Rights(Flag):
    """What somebody may do."""

    READ = auto()
    WRITE = auto()


@pytest.mark.parametrize("rights", [Rights.READ, Rights.READ | Rights.WRITE, Rights(0)])
def test_flags_come_back_in_any_combination(rights: Rights) -> None:
    """A flag, several together and none are kept, though only single flags have names."""
    assert kept([rights])[0] == [rights]


def test_a_state_in_regions_comes_back() -> None:
    """The state of an agent in a chart with regions is kept in fields like that of others."""
    found, _ = kept({Configuration([Mood.CALM, Odd.ONE]): 1})
    (state_,) = found
    assert (type(state_), state_.leaves) == (Configuration, (Mood.CALM, Odd.ONE))


def test_agents_and_things_come_back_as_they_are_shared() -> None:
    """An agent comes back as that of the new run; a Thing that two refer to is one again."""

    def build(run: Run[Holder]) -> list[Any]:
        first, second = Note(text="a", by=run.agents[1]), Note(text="b")
        first.earlier, second.earlier = second, first
        return [first, first, second, {run.agents[0]: (second,)}]

    (one, same, other, by_agent), run = kept(build)
    assert one is same
    assert (one.earlier, other.earlier) == (other, one)
    assert one.by is run.agents[1]
    assert by_agent == {run.agents[0]: (other,)}


class Unkept:
    """An object of some class."""


def circle(_run: Any) -> list[Any]:
    """Return a list that holds itself."""
    items: list[Any] = []
    items.append(items)
    return items


def deep(_run: Any) -> tuple[Any, ...]:
    """Return tuples inside of each other."""
    items: tuple[Any, ...] = ()
    for _ in range(2000):
        items = (items,)
    return items


def local_thing(_run: Any) -> Thing:
    """Return a Thing of a class that nobody finds again."""

    class Hidden(Thing):
        """A class in a function."""

    return Hidden()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({1, 2}, r"Holder.held of the Holder cannot be kept: \{1, 2\} is a set: use a dict"),
        (Unkept(), "is a Unkept: fields can hold numbers"),
        (lambda run: [print], "is a builtin_function_or_method: store its name"),
        (b"x", "is a bytes"),
        (["whole", "h\ud83d"], r"Holder.held .* cannot be kept: 'h\\ud83d' holds half a character"),
        (circle, "it is the same list"),
        (deep, "it is nested too deeply: use a Thing"),
        (lambda run: [numpy.float32(1)], r"convert it with .item\(\) or .tolist\(\)"),
        (lambda run: Walker(), "is not among the agents of the world"),
        (local_thing, "Hidden cannot be found again: define it at the top of a module"),
        ([type("Strange", (int,), {})(3)], "is a Strange"),
    ],
)
def test_what_cannot_be_kept_is_refused(value: Any, problem: str) -> None:
    """The first checkpoint names class, field and value, and what to use instead."""
    with pytest.raises(SimulationError, match=problem):
        kept(value)


def test_a_list_of_two_agents_is_refused() -> None:
    """A list that two agents hold would be two after a resume, so it is refused by both names."""
    run = Run(Holder(), 3)
    run.agents[0].met = run.agents[2].met
    problem = "Walker.met of walker_3 cannot be kept: it is the same list as in Walker.met of"
    with pytest.raises(SimulationError, match=problem):
        run.loop.snapshot()
