"""Measures of worlds and of single agents at the end of a round, and pictures of agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from numbers import Integral, Real
from typing import Any, TypeVar

from prism.errors import SimulationError
from prism.statechart.states import state_text
from prism.worlds._marks import PICTURE, marked
from prism.worlds._spaces import Plane, Space

MethodT = TypeVar("MethodT", bound=Callable[..., Any])

MOST_MEASURED = 500
"""The largest number of agents of a kind that are measured one by one."""

_LARGEST_WHOLE = 2**63
_MOST_DRAWN = 10_000
"""The largest number of agents whose picture is logged."""

Reader = Callable[[Any], Any]


def agent_measures(
    readers: Mapping[type, Mapping[str, Reader]], everybody: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    """Yield the keys of one event for each measure of each kind that is not too large.

    Raises:
        SimulationError: If a value is not a number; the message names the agent.
    """
    for cls, measures in readers.items():
        agents: list[Any] = [agent for agent in everybody if type(agent) is cls]
        for name, read in measures.items() if len(agents) <= MOST_MEASURED else ():
            values = {
                agent.agent_id: require_number(read(agent), f"{cls.__name__}.{name} of", agent)
                for agent in agents
            }
            counted = sum(value is not None for value in values.values())
            yield {"kind": cls.__name__, "measure": name, "agents": counted, "values": values}


def require_number(value: Any, what: str, owner: Any = None) -> float | int | bool | None:
    """Return the value of a measure as JSON represents it.

    Args:
        value: The value that it returned.
        what: The name of the measure, for the message.
        owner: The agent that it belongs to, for the message.

    Raises:
        SimulationError: If it is neither a finite number nor None.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Real) and isfinite(value):
        # numbers of numpy, which JSON cannot represent, and numbers that are too large for it
        number: Any = value
        is_whole = isinstance(value, Integral) and abs(number) < _LARGEST_WHOLE
        return int(number) if is_whole else float(number)

    whose = "" if owner is None else f" {owner.agent_id!r}"
    raise SimulationError(
        f"{what}{whose} must return a finite number, or None where there is nothing to measure, "
        f"got {value!r}"
    )


# Pictures


def picture(method: MethodT) -> MethodT:
    """Mark a method of a world, ``look(self, agent)``, that returns the colour of an agent.

    It is a colour as ``#rrggbb``, or the name of a group, which gets a colour of its own; None for
    the colour of the agent's state. The report and ``prism watch`` draw each agent at its place in
    the world's space or network.
    """
    setattr(method, PICTURE, True)
    return method


class Pictures:
    """The positions and colours of the agents of a world, for the log.

    Args:
        world: The world.
    """

    def __init__(self, world: Any) -> None:
        self._world = world
        self._look = next(iter(marked(type(world), PICTURE)), None)
        self._ids: list[str] | None = None

    def take(self) -> dict[str, Any]:
        """Return the keys of a picture's event, or nothing without a picture."""
        world, agents = self._world, self._world.agents
        if len(agents) > _MOST_DRAWN:
            return {}

        fields = (getattr(world, name) for name in type(world).fields)
        places = next((each for each in fields if isinstance(each, (Space, Plane))), world._network)
        keys: dict[str, Any] = {}
        if places is not None:
            keys = places.pictured(agents, first=self._ids is None)
        if self._look is not None:
            keys["colours"] = [getattr(world, self._look)(agent) for agent in agents]
        if not keys:
            return {}

        ids = [agent.agent_id for agent in agents]
        is_new, self._ids = ids != self._ids, ids
        texts = [state_text(agent.state) for agent in agents]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return {
            **keys,
            "state_names": [*numbers],
            "agent_states": [numbers[text] for text in texts],
            **({"agent_ids": ids} if is_new else {}),
        }
