"""The rumour of `prism.examples.rumour`, in Mesa 3."""

from enum import StrEnum
from typing import Any

import mesa
import networkx as nx
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

    def __init__(
        self,
        people: int = 100,
        friends: int = 6,
        rewired: float = 0.1,
        tiring: float = 0.3,
        warned_at: int | None = None,
        begun: int = 1,
        graph: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed=seed)
        self.tiring, self.warned_at = tiring, warned_at
        self.told: dict[Any, None] = {}
        graph = graph or nx.watts_strogatz_graph(people, friends, rewired, seed=seed)
        network = Network(graph, capacity=1, random=self.random)
        for cell in network.all_cells:
            Person(self, cell)
        for person in self.agents:
            person.friends = [cell.agents[0] for cell in person.cell.connections.values()]
        for person in list(self.agents)[:begun]:
            person.state = Mind.SPREADER
        self.datacollector = mesa.DataCollector(model_reporters={"reached": Rumour.reached})

    def step(self) -> None:
        """Give everybody their turn; who was told makes up their mind when all have talked."""
        if self.steps == self.warned_at:
            self.tiring = 0.9
        self.agents.do("step")
        for person in self.told:
            if self.random.random() < person.trust:
                person.state = Mind.SPREADER
        self.told.clear()
        self.datacollector.collect(self)

    def reached(self) -> float:
        """Return the share of the people who know the rumour."""
        knowing = sum(person.state is not Mind.IGNORANT for person in self.agents)
        return knowing / len(self.agents)


def prepare(rounds: int, **options: Any) -> Rumour:
    """Return the model, which takes any number of rounds."""
    return Rumour(**options)


def run(model: Rumour, rounds: int) -> list[float]:
    """Run the rumour; return the share reached, round by round."""
    for _ in range(rounds):
        model.step()

    return list(model.datacollector.model_vars["reached"])
