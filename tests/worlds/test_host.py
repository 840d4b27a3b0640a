"""What a run refuses before it begins, and how it tells faults in hooks."""

from typing import Any

import pytest

from prism import Run
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
