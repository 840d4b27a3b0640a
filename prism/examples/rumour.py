"""A rumour in a small world, after Daley and Kendall (1964)."""

from enum import StrEnum

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, small_world, treatment, uniform

Mind = StrEnum("Mind", ["IGNORANT", "SPREADER", "STIFLER"])


class Person(Agent):
    """Somebody who may hear the rumour and tell it to friends."""

    chart = Statechart(
        Mind,
        [
            Transition("hears", Mind.IGNORANT, Mind.SPREADER),
            Transition("hears", Mind.IGNORANT, Mind.IGNORANT),
            Transition("tires", Mind.SPREADER, Mind.STIFLER),
        ],
        initial=Mind.IGNORANT,
        name="rumour",
        decision_states=[Mind.IGNORANT],
    )
    trust: float = uniform(0, 1)


class Rumour(World[Person]):
    """People who tell a rumour to their friends until they meet people who already know it."""

    rounds = 40
    friends: int = 6
    rewired: float = 0.1
    tiring: float = 0.3

    def setup(self) -> None:
        """Connect people, and let one of them know."""
        self.network = small_world(self, self.friends, self.rewired)
        self.agents[0].begin_in(Mind.SPREADER)

    @during(Mind.SPREADER)
    async def talk(self, person: Person) -> None:
        """Tell a friend, who may believe it; tire of the rumour if the friend has heard it."""
        friend = person.random.choice(person.neighbours)
        if friend.state is Mind.IGNORANT:
            odds = {Mind.SPREADER: friend.trust, Mind.IGNORANT: 1 - friend.trust}
            if await friend.decide("hears", person, weights=odds):
                return
        if person.random.chance(self.tiring):
            person.fire("tires")

    @treatment
    def warning(self) -> None:
        """Make people tire of the rumour soon."""
        self.tiring = 0.9

    @measure
    def reached(self) -> float:
        """Return the share of the people who know the rumour."""
        return 1 - self.share(Mind.IGNORANT)
