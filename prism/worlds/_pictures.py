"""How the agents of a world are to be drawn."""

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
    """How an agent is drawn; what is left out is drawn as by default.

    Args:
        colour: A colour as ``#rrggbb``, or a text that stands for a group, which gets a colour of
            its own; by default the agent's state does.
        size: How large the agent is beside others: an area of 2 is drawn twice as large as 1.
        label: What a reader sees who points at it, beside its id and state.

    Raises:
        FieldValueError: If the size is no number from 0 on.
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

    The report and ``prism watch`` draw it, each agent where it is in the world's space or network.
    """
    setattr(method, PICTURE, True)
    return method


def looks(world: Any, name: str, agents: Sequence[Any]) -> dict[str, Any]:
    """Return what a picture's event says of the looks of agents.

    Args:
        world: Their world.
        name: Its method that says how an agent is drawn.
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
