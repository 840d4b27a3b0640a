"""What a run refuses before it begins, and how it tells faults in hooks."""

from collections.abc import Callable
from typing import Any

import pytest

from prism import Run
from prism.errors import FieldTypeError, FieldValueError, PrismError, SimulationError
from prism.examples.rumour import Mind, Person
from prism.worlds import World, during


class Doubtful(World[Person]):
    """Fails when asked whether it is over."""

    rounds = 1

    @during(Mind.IGNORANT)
    def step(self, person: Person) -> None:
        """Do nothing."""

    def until(self) -> bool:
        """Fail."""
        raise ValueError("who knows")


class DoubtfulAtARate(Doubtful):
    """The same world, in continuous time."""

    activation = "rate"

    @during(Mind.IGNORANT, rate=1.0)
    def step(self, person: Person) -> None:
        """Do nothing."""


@pytest.mark.parametrize("world", [Doubtful, DoubtfulAtARate])
def test_a_fault_in_until_is_told_with_its_round_and_tick(world: Any) -> None:
    """It is nobody's step."""
    with pytest.raises(ValueError, match="who knows") as raised:
        Run(world(), 3).run()
    assert raised.value.__notes__[1:] == ["in Doubtful.until, round 1, tick 1"]


@pytest.mark.parametrize(
    ("do", "error", "problem"),
    [
        (lambda world: world.stop(3), FieldTypeError, "the reason must be text, got 3"),
        (lambda world: world.stop("over"), SimulationError, "cannot be stopped: it has not begun"),
        (lambda world: world.log(3), FieldValueError, "must be lower-case letters.* got 3"),
        (lambda world: world.acting, SimulationError, "Early.acting: it is no agent's turn"),
        (
            lambda world: setattr(world.agents[0], "ticks_in_state", 1),
            SimulationError,
            "ticks_in_state of 'person_1' cannot be set: the run has not begun",
        ),
        (
            lambda world: setattr(world.agents[0], "ticks_in_state", -1),
            FieldValueError,
            "ticks_in_state must be a whole number, 0 or more, got -1",
        ),
    ],
)
def test_what_comes_too_early_or_is_no_value_is_refused(
    do: Callable[[Any], Any], error: type[PrismError], problem: str
) -> None:
    """Before the run there is no turn, no time and nothing to stop."""

    class Early(World[Person]):
        """A world whose setup does it."""

        def setup(self) -> None:
            """Do it."""
            do(self)

    with pytest.raises(error, match=problem):
        _ = Run(Early(), 3).agents
