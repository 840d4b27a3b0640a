"""The rumour of `prism.examples.rumour`, in Mesa 3."""

from enum import StrEnum
from typing import Any

import mesa
from mesa.discrete_space import CellAgent, Network


class Mind(StrEnum):
    """What a person knows of the rumour, and does with it."""

    IGNORANT = "ignorant"
    SPREADER = "spreader"
    STIFLER = "stifler"


class Person(CellAgent):
    """Somebody who may hear the rumour and tell it to friends."""

    def __init__(self, model: Any, cell: Any) -> None:
        super().__init__(model)
        self.cell = cell
        self.state = Mind.IGNORANT
        self.trust = self.random.random()

    def step(self) -> None:
        """Tell a friend, or tire of the rumour if the friend knows it."""
        if self.state is not Mind.SPREADER:
            return
        friend = self.random.choice(self.friends)
        if friend.state is Mind.IGNORANT:
            self.model.told[friend] = None
        elif self.random.random() < self.model.tiring:
            self.state = Mind.STIFLER


class Rumour(mesa.Model):
    """People who tell a rumour to their friends until they meet those who know it."""

    def __init__(self, graph: Any, begun: int, tiring: float, seed: int, *, shuffles: bool) -> None:
        super().__init__(seed=seed)
        self.tiring = tiring
        # turns in a new random order in every tick, as prism gives them, or always in the same
        self.give_turns = self.agents.shuffle_do if shuffles else self.agents.do
        self.told: dict[Any, None] = {}
        network = Network(graph, capacity=1, random=self.random)
        for cell in network.all_cells:
            Person(self, cell)
        for person in self.agents:
            person.friends = [cell.agents[0] for cell in person.cell.connections.values()]
        for person in list(self.agents)[:begun]:
            person.state = Mind.SPREADER

    def step(self) -> None:
        """Give everybody their turn; who was told makes up their mind when all have talked."""
        self.give_turns("step")
        for person in self.told:
            if self.random.random() < person.trust:
                person.state = Mind.SPREADER
        self.told.clear()

    def reached(self) -> float:
        """Return the share of the people who know the rumour."""
        knowing = sum(person.state is not Mind.IGNORANT for person in self.agents)
        return knowing / len(self.agents)
