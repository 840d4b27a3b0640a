"""Mistakes that numpy would pass over are refused, with their cure."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from prism.arrays import ArrayChart, ArrayNetwork, ArrayWorld, small_world
from prism.errors import DefinitionError, FieldTypeError, FieldValueError, PrismError
from prism.statechart import State, Transition

Mood = StrEnum("Mood", ["CALM", "KEEN"])
Other = StrEnum("Other", ["SAD", "GLAD"])


def world_of(guard: Callable[[Any, Any], Any] | None = None, **options: Any) -> ArrayWorld:
    """Return a world whose only event has a guard."""

    class Moods(ArrayWorld):
        chart = ArrayChart(Mood, [Transition("wakes", Mood.CALM, Mood.KEEN, guard)], Mood.CALM)
        level: float = 0.5

        def setup(self) -> None:
            self.trust = np.linspace(0, 1, self.size)

    return Moods(10, **options)


SOME = np.array([1, 2, 3])

GUARDS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "everybody": (
        lambda w, who: w.trust > 0.1,
        r"there must be 3 values.*\(10,\).*self.trust\[agents\]",
    ),
    "too few": (lambda w, who: np.array([True]), r"there must be 3 values"),
    "numbers": (lambda w, who: w.trust[who], "must return truth values, got float64"),
    "agents": (lambda w, who: who, "must return truth values, got int64"),
}


@pytest.mark.parametrize("case", GUARDS)
def test_a_guard_returns_a_truth_value_for_each_agent(case: str) -> None:
    """The message names the transition, and says how to write its guard."""
    guard, message = GUARDS[case]
    with pytest.raises(PrismError, match=f"the guard of calm --wakes--> keen.*{message}"):
        world_of(guard).fire(SOME, "wakes")


def test_a_guard_may_return_one_value_for_all() -> None:
    """A guard about the world alone needs no array."""
    assert world_of(lambda world, _: world.level > 0.4).fire(SOME, "wakes").all()


WRONG: dict[str, tuple[type[Exception], Callable[[ArrayWorld], Any], str]] = {
    "a mask for agents": (
        FieldTypeError,
        lambda w: w.fire(w.agents > 3, "wakes"),
        r"np.flatnonzero\(mask\) of a mask: bool",
    ),
    "fractions for agents": (
        FieldTypeError,
        lambda w: w.is_in([0.5], Mood.CALM),
        "row of numbers.*float64",
    ),
    "nobody": (FieldValueError, lambda w: w.fire([10], "wakes"), "no agent 10: .* 0 to 9"),
    "from the end": (FieldValueError, lambda w: w.random([-1]), "no agent -1"),
    "another event": (KeyError, lambda w: w.fire(SOME, "weaks"), "weaks"),
    "a text for a state": (KeyError, lambda w: w.where("clam"), "clam"),
    "a negative weight": (
        FieldValueError,
        lambda w: w.decide(SOME, "wakes", {Mood.KEEN: [1, -1, 1]}),
        "0 or more",
    ),
    "another target": (
        FieldValueError,
        lambda w: w.decide(SOME, "wakes", {Mood.CALM: 1}),
        "never lead to <Mood.CALM",
    ),
    "one without neighbours": (
        FieldValueError,
        lambda w: ArrayNetwork(w, [[0, 1]]).pick(np.array([1, 2])),
        "agent 2 has no neighbour to pick: leave such agents out",
    ),
    "oneself": (FieldValueError, lambda w: ArrayNetwork(w, [[1, 1]]), "connected to itself"),
    "an odd ring": (FieldValueError, lambda w: small_world(w, 3, 0), "must be even"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_numpy_would_pass_over_is_refused(case: str) -> None:
    """Masks, shapes, numbers and names that mean something else raise errors with their cure."""
    error, call, message = WRONG[case]
    with pytest.raises(error, match=message):
        call(world_of())


def test_parameters_are_those_of_the_class() -> None:
    """A parameter can be set by its name; a name that is none is refused."""
    assert world_of(level=0.1).level == 0.1
    with pytest.raises(FieldTypeError, match="'levle' is none of level, rounds"):
        world_of(levle=0.1)


@pytest.mark.parametrize("size", [0, -1, 2.5, (3, 4), "many"])
def test_there_are_agents_of_each_kind(size: Any) -> None:
    """A size is a whole number above 0, one for each chart."""
    with pytest.raises(FieldValueError, match="size must be"):
        type(world_of())(size)


def test_charts_are_flat_and_have_states_of_their_own() -> None:
    """What arrays cannot hold is refused when the world is made."""

    class Nested(ArrayWorld):
        chart = ArrayChart([State(Mood.CALM, [Mood.KEEN])], [], Mood.CALM)

    class Late(ArrayWorld):
        chart = ArrayChart(Mood, [Transition("w", Mood.CALM, Mood.KEEN, after=2)], Mood.CALM)

    class Twice(ArrayWorld):
        chart = (ArrayChart(Mood, [], Mood.CALM), ArrayChart(Mood, [], Mood.KEEN))

    for world, message in (
        (Nested, "no states inside"),
        (Late, "no .*after="),
        (Twice, "states of their own"),
    ):
        with pytest.raises(DefinitionError, match=message):
            world(2 if world is not Twice else (2, 2))


def test_agents_begin_in_states_of_their_kind_and_run_once() -> None:
    """A state of another chart is refused, and so is another run."""

    class Pair(ArrayWorld):
        chart = (ArrayChart(Mood, [], Mood.CALM), ArrayChart(Other, [], Other.SAD))

    world = Pair((2, 3))
    world.begin_in([2, 4], Other.GLAD)
    assert world.share(Other.GLAD) == 2 / 3
    assert world.share(Mood.CALM) == 1
    with pytest.raises(FieldValueError, match="no state of these agents' chart"):
        world.begin_in([1, 2], Other.GLAD)
    world.run()
    with pytest.raises(PrismError, match="runs once"):
        world.run()
