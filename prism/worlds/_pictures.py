"""The picture of a world: where its agents are, who is connected, and how each is to be drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from prism._faults import place_of_method
from prism.errors import FieldValueError, SimulationError
from prism.statechart.states import state_text
from prism.worlds._agent_measures import require_number
from prism.worlds._spaces import Plane, Space
from prism.worlds._world import PICTURE

MethodT = TypeVar("MethodT", bound=Callable[..., Any])

MOST_DRAWN = 10_000
"""Agents up to which a picture is logged."""

MOST_NODES = 2_000
"""The same of a network, whose connections are drawn, too."""

_DIGITS = 4


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
        """Refuse a size that there is not."""
        require_number(self.size, "Look.size")
        if self.size is None or self.size < 0:
            raise FieldValueError(f"Look.size must be a number from 0 on, got {self.size!r}")


def picture(method: MethodT) -> MethodT:
    """Mark a method of a world, ``look(self, agent)``, that returns the `Look` of an agent.

    The report and ``prism watch`` draw it, each agent where it is in the world's space or network.
    """
    setattr(method, PICTURE, True)
    return method


class Pictures:
    """What the log is told of where agents are, at the end of each round.

    Args:
        world: The world.
        agents: Its agents.
        look: Name of the method that says how an agent is drawn; None if there is none.
    """

    def __init__(self, world: Any, agents: Sequence[Any], look: str | None) -> None:
        self._world = world
        self._agents = agents
        self._look = look

    def first(self) -> dict[str, Any]:
        """Return the keys of the event before the first round, which names the agents."""
        told = self.take()
        if not told:
            return {}

        network = self._network()
        edges = None if network is None else [list(pair) for pair in network.pairs()]
        more = {} if edges is None else {"edges": edges}
        return {**told, "agents": [agent.agent_id for agent in self._agents], **more}

    def take(self) -> dict[str, Any]:
        """Return the keys of the event at the end of a round; none if there is nothing to draw."""
        if len(self._agents) > MOST_DRAWN:
            return {}

        space, network = self._space(), self._network()
        told = self._where(space, network)
        if network is not None and network.has_changed:
            told["edges"] = [list(pair) for pair in network.pairs()]
        if not told and self._look is None:
            return {}

        return {**told, **self._states(), **self._looks()}

    def _where(self, space: Any, network: Any) -> dict[str, Any]:
        if isinstance(space, Space):
            size = {"width": space.width, "height": space.height}
            return {"space": "grid", **size, "places": [*map(space.cells.get, self._agents)]}
        if isinstance(space, Plane):
            extent = {"width": space.width, "height": space.height}
            return {"space": "plane", **extent, "places": [*_positions(space, self._agents)]}

        width = getattr(self._world._network, "width", None)
        if width is not None:
            height = -(-len(self._agents) // width)
            places = list(range(len(self._agents)))
            return {"space": "grid", "width": width, "height": height, "places": places}

        return {} if network is None else {"space": "network"}

    def _space(self) -> Any:
        names = type(self._world).fields
        found = (getattr(self._world, name) for name in names)
        return next((each for each in found if isinstance(each, (Space, Plane))), None)

    def _network(self) -> Any:
        """Return the network, if it is one to draw; that of a grid is seen from the places."""
        network = self._world._network
        is_drawn = len(self._agents) <= MOST_NODES and self._space() is None
        return network if is_drawn and getattr(network, "width", None) is None else None

    def _states(self) -> dict[str, Any]:
        gone = self._world._host.gone
        texts = [
            None if agent._place in gone else state_text(agent._state) for agent in self._agents
        ]
        names = [name for name in dict.fromkeys(texts) if name is not None]
        places = {name: place for place, name in enumerate(names)}

        states = [None if text is None else places[text] for text in texts]

        return {"state_names": names, "states": states}

    def _looks(self) -> dict[str, Any]:
        if self._look is None:
            return {}

        looks = [getattr(self._world, self._look)(agent) for agent in self._agents]
        for agent, look in zip(self._agents, looks, strict=True):
            if not isinstance(look, Look):
                cls = type(self._world)
                where = f"{place_of_method(cls, self._look)}: {cls.__name__}.{self._look}"
                raise SimulationError(f"{where} of {agent.agent_id!r} must return a Look: {look!r}")

        told = {
            "colours": [look.colour for look in looks],
            "sizes": [look.size for look in looks],
            "labels": [look.label for look in looks],
        }
        default = {"colours": None, "sizes": 1.0, "labels": ""}
        return {
            name: values
            for name, values in told.items()
            if any(value != default[name] for value in values)
        }


def _positions(plane: Any, agents: Sequence[Any]) -> Iterator[list[float] | None]:
    for agent in agents:
        place = plane.positions.get(agent)
        yield None if place is None else [round(value, _DIGITS) for value in place]
