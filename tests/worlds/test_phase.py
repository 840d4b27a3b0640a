"""Where in a run an agent may decide."""

import pytest

from prism.errors import SimulationError
from prism.worlds import Run, World, during, measure
from tests.worlds.test_turns import Lamp, Light


class Asking(World[Lamp]):
    """A world that asks where nobody can wait, or stops while it is set up."""

    rounds = 1
    where: str = ""

    def setup(self) -> None:
        """Ask, or not."""
        self._try("setup")

    def round_begins(self) -> None:
        """Ask, or not."""
        self._try("round_begins")

    def tick_begins(self) -> None:
        """Ask, or not."""
        self._try("tick_begins")

    @during(Light.OFF)
    def wait(self, lamp: Lamp) -> None:
        """Do nothing."""

    def tick_ends(self) -> None:
        """Ask, or not."""
        self._try("tick_ends")

    def round_ends(self) -> None:
        """Ask, or not."""
        self._try("round_ends")

    @measure
    def lit(self) -> int:
        """Ask, or not."""
        self._try("lit")
        return 0

    def _try(self, where: str) -> None:
        if self.where == where:
            self.agents[0].decide("light")


HOOKS = ["setup", "round_begins", "tick_begins", "tick_ends", "round_ends", "lit"]


@pytest.mark.parametrize("where", HOOKS)
def test_only_steps_can_wait_for_a_decision(where: str) -> None:
    """Whatever phase a hook runs in, a decision is refused there."""
    with pytest.raises(SimulationError, match="decide belongs in a step"):
        Run(Asking(where=where), 2).run()
