"""Random numbers that come from elsewhere, which no resumed run would draw again."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prism.errors import SimulationError


@contextmanager
def drawing_nowhere_else() -> Iterator[None]:
    """Refuse code inside the block that draws from Python's own random numbers, or numpy's.

    Raises:
        SimulationError: If it has.
    """
    before, of_numpy = random.getstate(), _numpy_state()
    yield

    for name, was, now in (
        ("Python's own random", before, random.getstate()),
        ("numpy.random", of_numpy, _numpy_state()),
    ):
        if now != was and was is not None:
            raise SimulationError(
                f"the world draws from {name}, which would give other numbers on resuming: use "
                "agent.random in steps, and self.random in the world"
            )


def _numpy_state() -> Any:
    library = sys.modules.get("numpy.random")
    if library is None:
        return None

    # as a tuple it would take three times as long, at every step
    state = library.get_state(legacy=False)
    position = state["state"]["pos"]
    return state["state"]["key"].tobytes(), position, state["has_gauss"], state["gauss"]
