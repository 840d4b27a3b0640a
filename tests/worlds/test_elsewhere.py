"""Random numbers that come from elsewhere."""

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from prism.errors import SimulationError
from prism.worlds import Run, World, during
from prism.worlds.examples.rumour import Mind, Person

DRAWS: dict[str, Callable[[], Any]] = {
    "python": random.random,
    "numpy": numpy.random.random,
}


class Careless(World[Person]):
    """Draws where it must not."""

    rounds = 1
    source: str = "python"
    where: str = "step"

    def draw(self, where: str) -> None:
        """Draw if it is this place's turn."""
        if where == self.where:
            DRAWS[self.source]()

    def setup(self) -> None:
        """Draw in setup."""
        self.draw("setup")

    def round_begins(self) -> None:
        """Draw at the beginning of a round."""
        self.draw("round_begins")

    def tick_ends(self) -> None:
        """Draw at the end of a tick."""
        self.draw("tick_ends")

    def round_ends(self) -> None:
        """Draw at the end of a round."""
        self.draw("round_ends")

    @during(Mind.IGNORANT)
    async def step(self, person: Person) -> None:
        """Draw in a step, before or after a decision."""
        self.draw("step")
        await person.decide("hears")
        self.draw("step after an answer")


@pytest.mark.parametrize(
    ("source", "name"), [("python", "Python's own"), ("numpy", "numpy.random")]
)
@pytest.mark.parametrize(
    "where", ["setup", "round_begins", "step", "step after an answer", "tick_ends", "round_ends"]
)
def test_numbers_from_elsewhere_are_refused_at_once(source: str, name: str, where: str) -> None:
    """Whoever draws from a generator of the process is told in the tick in which it happens."""
    with pytest.raises(SimulationError, match=f"the world draws from {name}.*use agent.random"):
        Run(Careless(source=source, where=where), 3).run()


def test_a_careful_world_is_let_be() -> None:
    """A world that draws from its own streams runs, whatever others draw outside of it."""
    random.random()
    assert len(Run(Careless(where="nowhere"), 3).run().rounds) == 1
