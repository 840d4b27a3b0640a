"""Small worlds of lamps with pictures of every kind."""

from typing import Any

from prism.examples.day import Day
from prism.worlds import Plane, Space, World, during, picture, small_world, state
from tests.kit.lamps import Lamp, Light
from tests.kit.textbook import Moran
from tests.kit.worlds import Gossip


class Row(World[Lamp]):
    """Lamps that are switched on one after another, without a space."""

    rounds = 3

    @during(Light.OFF)
    def press(self, lamp: Lamp) -> None:
        if lamp is self.agents.where(state=Light.OFF)[0]:
            lamp.fire("pressed")


class Looked(Row):
    """Lamps with colours of their own, nowhere."""

    @picture
    def look(self, lamp: Lamp) -> str:
        return "#cc0000" if lamp is self.agents[0] else "others"


class Street(Row):
    """Lamps in cells, but for the last of them."""

    houses: Space[Lamp] = state(Space)

    def setup(self) -> None:
        self.houses = Space(width=3, height=3)
        for cell, lamp in enumerate(self.agents[:-1]):
            self.houses.put(lamp, cell)


class Sky(Row):
    """Lamps in a plane."""

    air: Plane[Lamp] = state(Plane)

    def setup(self) -> None:
        for place, lamp in enumerate(self.agents):
            self.air.put(lamp, 0.1 * place, 0.5)


class Chain(Row):
    """Lamps that are connected in a ring, and in the second round differently."""

    def setup(self) -> None:
        self.network = small_world(self, 2, 0)

    def round_begins(self) -> None:
        if self.round == 2:
            self.network.connect(self.agents[0], self.agents[2])


class Growing(Row):
    """Lamps of which one more is put up in each round, beside the first, and one taken down."""

    def setup(self) -> None:
        self.network = small_world(self, 2, 0)
        self.assign("bright", 0.5, experiment="light")

    def round_begins(self) -> None:
        self.agents[0].send(self.agents[1])
        self.add(Lamp(), self.agents[0], neighbours=self.agents[:2])
        self.agents[-1].leave()


WORLDS: list[list[Any]] = [
    [Gossip(), 12],
    [Moran(), 9],
    *([world(), 6] for world in (Day, Looked, Street, Sky, Chain, Growing)),
]
"""Worlds whose logs have all that the log of a world can have, each with its agents."""
