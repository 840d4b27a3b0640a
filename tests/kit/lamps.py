"""A small world of lamps, whose steps tests define."""

from enum import StrEnum
from typing import Any

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, state

Light = StrEnum("Light", ["OFF", "ON", "BROKEN"])
"""States of a lamp."""


class Lamp(Agent):
    """An agent with a decision in one state and a time-out in another."""

    chart = Statechart(
        Light,
        [
            Transition("pressed", Light.OFF, Light.ON),
            Transition("pressed", Light.OFF, Light.BROKEN),
            Transition("pressed", Light.ON, Light.OFF),
            Transition("timeout", Light.BROKEN, Light.OFF),
        ],
        Light.OFF,
        name="lamp",
        decision_states=[Light.OFF],
        timeouts={Light.BROKEN: 3},
    )
    heard: list[Any] = state(list)
    pressed: int = state(0)


class Room(World[Lamp]):
    """A world whose steps tests override."""

    rounds = 1
    closed: list[str] = state(list)

    async def tick(self) -> None:
        """Give turns in the order of the list."""
        await self.activate(self.agents)

    def other(self, lamp: Lamp) -> Lamp:
        """Return the first lamp, or the second one of the first."""
        return self.agents[1] if lamp is self.agents[0] else self.agents[0]
