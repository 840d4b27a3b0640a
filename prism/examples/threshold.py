"""Joining when enough others have joined, after Granovetter (1978)."""

from enum import StrEnum

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, param, small_world, uniform

Side = StrEnum("Side", ["OUT", "IN"])


class Person(Agent):
    """Somebody who joins once a large enough share of the neighbours has joined."""

    chart = Statechart(
        Side, [Transition("joins", Side.OUT, Side.IN)], initial=Side.OUT, name="threshold"
    )
    threshold: float = uniform(0, 1)


class Threshold(World[Person]):
    """People who join a crowd, a fashion or a strike."""

    rounds = 30
    friends: int = 8
    rewired: float = 0.1
    caution: float = param(0.4, "How much thresholds count", least=0)
    begun: float = param(0.05, "Share of those who are in from the beginning", least=0, most=1)

    def setup(self) -> None:
        """Connect people, and let some of them join from the beginning."""
        self.network = small_world(self, self.friends, self.rewired)
        for person in self.agents.sample(max(1, round(self.begun * len(self.agents)))):
            person.begin_in(Side.IN)

    @during(Side.OUT)
    def look_around(self, person: Person) -> None:
        """Join if enough of the friends have."""
        joined = person.neighbours.count(Side.IN)
        if joined >= person.threshold * self.caution * len(person.neighbours):
            person.fire("joins")

    @measure
    def joined(self) -> float:
        """Return the share of the people who have joined."""
        return self.share(Side.IN)

    def until(self) -> bool:
        """End when everybody has joined."""
        return self.count(Side.OUT) == 0
