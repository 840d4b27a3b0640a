"""The rumour of `prism.examples.rumour`, in agentpy."""

from enum import StrEnum
from typing import Any

import agentpy as ap  # type: ignore[import-untyped]
import networkx as nx


class Mind(StrEnum):
    """What a person knows of the rumour, and does with it."""

    IGNORANT = "ignorant"
    SPREADER = "spreader"
    STIFLER = "stifler"


class Person(ap.Agent):  # type: ignore[misc]
    """Somebody who may hear the rumour and tell it to friends."""

    def setup(self) -> None:
        """Begin without knowing anything."""
        self.state = Mind.IGNORANT
        self.trust = self.model.random.random()

    def talk(self) -> None:
        """Tell a friend, or tire of the rumour if the friend knows it."""
        if self.state is not Mind.SPREADER:
            return
        friend = self.model.random.choice(self.friends)
        if friend.state is Mind.IGNORANT:
            self.model.told[friend] = None
        elif self.model.random.random() < self.model.tiring:
            self.state = Mind.STIFLER


class Rumour(ap.Model):  # type: ignore[misc]
    """People who tell a rumour to their friends until they meet those who know it."""

    def setup(self) -> None:
        """Connect people, and let some of them know."""
        p = self.p
        self.tiring = p.get("tiring", 0.3)
        self.told: dict[Any, None] = {}
        graph = p.get("graph") or nx.watts_strogatz_graph(
            p.people, p.get("friends", 6), p.get("rewired", 0.1), seed=p.get("seed")
        )
        self.people = ap.AgentList(self, len(graph), Person)
        self.network = ap.Network(self, graph)
        self.network.add_agents(self.people, self.network.nodes)
        for person in self.people:
            person.friends = list(self.network.neighbors(person))
        for person in self.people[: p.get("begun", 1)]:
            person.state = Mind.SPREADER

    def step(self) -> None:
        """Give everybody their turn; who was told makes up their mind when all have talked."""
        if self.t == self.p.get("warned_at"):
            self.tiring = 0.9
        self.people.talk()
        for person in self.told:
            if self.random.random() < person.trust:
                person.state = Mind.SPREADER
        self.told.clear()

    def update(self) -> None:
        """Measure the share of the people who know the rumour."""
        if self.t > 0:
            knowing = sum(person.state is not Mind.IGNORANT for person in self.people)
            self.record("reached", knowing / len(self.people))


def prepare(rounds: int, **options: Any) -> Rumour:
    """Return the model."""
    model = Rumour({"steps": rounds, **options})
    model.sim_setup()

    return model


def run(model: Rumour, rounds: int) -> list[float]:
    """Run the rumour; return the share reached, round by round."""
    for _ in range(rounds):
        model.sim_step()

    return list(model.log["reached"])
