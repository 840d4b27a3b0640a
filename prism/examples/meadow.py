"""Sheep in a meadow: they eat grass that grows back, have lambs when full, and starve."""

from enum import StrEnum

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Layer, Space, World, during, measure, param, state, uniform

Life = StrEnum("Life", ["FED", "HUNGRY"])


class Sheep(Agent):
    """A sheep that goes where the grass around it is highest."""

    chart = Statechart(
        Life,
        [Transition("eats", Life.HUNGRY, Life.FED), Transition("fasts", Life.FED, Life.HUNGRY)],
        initial=Life.HUNGRY,
    )
    energy: float = state(uniform(2, 6))


class Meadow(World[Sheep]):
    """A field of grass whose sheep come and go."""

    rounds = 100
    side: int = param(20, "cells in each row", least=3)
    regrowth: float = param(0.05, "part of the missing grass that grows back", least=0, most=1)
    field: Space[Sheep] = state(Space)
    grass: Layer = state(Layer)

    def setup(self) -> None:
        """Let the sheep out anywhere on full grass."""
        self.field = Space(self.side, self.side, wraps=True, capacity=None)
        self.grass = Layer(self.side, self.side, 1.0)
        for sheep in self.agents:
            self.field.put(sheep, sheep.random.index(self.side**2))

    @during(Life.FED, Life.HUNGRY)
    def graze(self, sheep: Sheep) -> None:
        """Go on and eat; have a lamb, or starve."""
        around = sheep.random.shuffled(self.field.near(self.field.cells[sheep]))
        cell = max(around, key=self.grass.__getitem__)
        self.field.put(sheep, cell)
        eaten, self.grass[cell] = self.grass[cell], 0.0
        sheep.fire("eats" if eaten > 0.2 else "fasts")
        sheep.energy += 4 * eaten - 1
        if sheep.energy < 0:
            sheep.leave()
        elif sheep.energy > 8:
            sheep.energy /= 2
            self.add(Sheep(energy=sheep.energy), at=sheep)

    def tick_ends(self) -> None:
        """Let the grass grow back."""
        self.grass[:] = (grass + self.regrowth * (1 - grass) for grass in self.grass)

    @measure
    def flock(self) -> int:
        """Return the number of sheep."""
        return len(self.agents)
