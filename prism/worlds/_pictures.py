"""How to draw the agents of a world."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from prism._faults import place_of_method
from prism.errors import FieldValueError, SimulationError
from prism.worlds._agent_measures import require_number
from prism.worlds._world import PICTURE

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Look:
    """How an agent is drawn. Whatever is left out has its default.

    Args:
        colour: A colour as ``#rrggbb``, or the name of a group, which gets a colour of its own.
            Defaults to the colour of the agent's state.
        size: The relative area of the agent: 2 is twice as large as 1.
        label: Text to show besides its id and state when a reader points at it.

    Raises:
        FieldValueError: If the size is not a number of at least 0.
    """

    colour: str | None = None
    size: float = 1.0
    label: str = ""

    def __post_init__(self) -> None:
        """Refuse an invalid size."""
        require_number(self.size, "Look.size")
        if self.size is None or self.size < 0:
            raise FieldValueError(f"Look.size must be a number, 0 or more, got {self.size!r}")


def picture(method: MethodT) -> MethodT:
    """Mark a method of a world, ``look(self, agent)``, that returns the `Look` of an agent.

    The report and ``prism watch`` draw each agent at its place in the world's space or network.
    """
    setattr(method, PICTURE, True)
    return method


def looks(world: Any, name: str, agents: Sequence[Any]) -> dict[str, Any]:
    """Return the keys of a picture's event for the looks of agents.

    Args:
        world: Their world.
        name: The method that defines how an agent is drawn.
        agents: The agents.

    Raises:
        SimulationError: If it returns something else.
    """
    found = [getattr(world, name)(agent) for agent in agents]
    for agent, look in zip(agents, found, strict=True):
        if not isinstance(look, Look):
            where = f"{place_of_method(type(world), name)}: {type(world).__name__}.{name}"
            raise SimulationError(f"{where} of {agent.agent_id!r} must return a Look, got {look!r}")

    return {
        "colours": [look.colour for look in found],
        "sizes": [look.size for look in found],
        "labels": [look.label for look in found],
    }
