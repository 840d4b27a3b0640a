"""An epidemic in a small world, after Kermack and McKendrick (1927)."""

from enum import StrEnum

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, small_world, treatment

Health = StrEnum("Health", ["SUSCEPTIBLE", "INFECTED", "RECOVERED"])


class Person(Agent):
    """Somebody who may catch a disease, and who recovers from it for good."""

    chart = Statechart(
        Health,
        [
            Transition("infects", Health.SUSCEPTIBLE, Health.INFECTED),
            Transition("recovers", Health.INFECTED, Health.RECOVERED),
        ],
        initial=Health.SUSCEPTIBLE,
        name="epidemic",
        final_states=[Health.RECOVERED],
    )


class Epidemic(World[Person]):
    """People who infect those they meet until they recover."""

    rounds = 60
    together = True
    contacts: int = 6
    rewired: float = 0.1
    begun: float = 0.01
    infectious: float = 0.1
    recovery: float = 0.2

    def setup(self) -> None:
        """Connect people, and let some of them be ill."""
        self.network = small_world(self, self.contacts, self.rewired)
        for person in self.agents.sample(max(1, round(self.begun * len(self.agents)))):
            person.begin_in(Health.INFECTED)

    @during(Health.INFECTED)
    def spread(self, person: Person) -> None:
        """Meet all neighbours, and recover by chance."""
        for other in person.neighbours:
            if other.state is Health.SUSCEPTIBLE and person.random.chance(self.infectious):
                other.fire("infects", person)
        if person.random.chance(self.recovery):
            person.fire("recovers")

    @treatment
    def distance(self) -> None:
        """Let meetings be half as dangerous."""
        self.infectious /= 2

    @measure
    def ill(self) -> float:
        """Return the share of the people who are ill."""
        return self.share(Health.INFECTED)
