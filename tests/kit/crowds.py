"""Models as worlds of arrays, two of them also as worlds of objects with the same rules."""

from enum import StrEnum
from typing import Any

from prism import Run, Transition, World, during
from prism.arrays import Agents, ArrayChart, ArrayWorld, Mask, small_world
from prism.examples import epidemic, rumour
from prism.examples.epidemic import Health
from prism.examples.rumour import Mind

# A rumour


class Rumour(ArrayWorld):
    """The rumour of the examples; who hears it tells it from the next tick on."""

    chart = ArrayChart(Mind, rumour.Person.chart.transitions, Mind.IGNORANT, name="rumour")
    rounds = 40
    friends: int = 6
    rewired: float = 0.1
    tiring: float = 0.3
    begun: int = 1

    def setup(self) -> None:
        self.network = small_world(self, self.friends, self.rewired)
        self.trust = self.generator("trust").random(self.size)
        self.begin_in(self.agents[: self.begun], Mind.SPREADER)

    def step(self) -> None:
        spreaders = self.in_order(self.where(Mind.SPREADER))
        friends = self.network.pick(spreaders)
        listens = self.is_in(friends, Mind.IGNORANT)
        trust = self.trust[friends[listens]]
        odds = {Mind.SPREADER: trust, Mind.IGNORANT: 1 - trust}
        drawn = self.decide(friends[listens], "hears", odds)
        listens[listens] = drawn[Mind.SPREADER] | drawn[Mind.IGNORANT]
        bored = spreaders[~listens]
        self.fire(bored[self.random(bored) < self.tiring], "tires")

    def measures(self) -> dict[str, float]:
        return {"reached": 1 - self.share(Mind.IGNORANT)}


class RumourOfObjects(rumour.Rumour):
    """The same, of objects."""

    begun: int = 1

    def setup(self) -> None:
        super().setup()
        for person in self.agents[: self.begun]:
            person.begin_in(Mind.SPREADER)

    @during(Mind.SPREADER)
    async def talk(self, person: rumour.Person) -> None:
        if person.ticks_in_state:
            await super().talk(person)


# An epidemic


class Epidemic(ArrayWorld):
    """The epidemic of the examples."""

    chart = ArrayChart(
        Health,
        epidemic.Person.chart.transitions,
        Health.SUSCEPTIBLE,
        name="epidemic",
        final_states=[Health.RECOVERED],
    )
    rounds = 40
    contacts: int = 6
    rewired: float = 0.1
    begun: float = 0.05
    infectious: float = 0.1
    recovery: float = 0.2

    def setup(self) -> None:
        self.network = small_world(self, self.contacts, self.rewired)
        number = max(1, round(self.begun * self.size))
        first = self.generator("first").choice(self.size, number, replace=False)
        self.begin_in(first, Health.INFECTED)

    def step(self) -> None:
        ill = self.where(Health.INFECTED)
        givers, takers = self.network.edges(ill)
        self.fire(takers[self.random(givers) < self.infectious], "infects")
        self.fire(ill[self.random(ill) < self.recovery], "recovers")

    def measures(self) -> dict[str, float]:
        return {"ill": self.share(Health.INFECTED)}


class EpidemicOfObjects(epidemic.Epidemic):
    """The same, of objects."""

    rounds = 40
    begun: float = 0.05


# People and mosquitoes

Person = StrEnum("Person", ["WELL", "FEVERISH", "IMMUNE"])
Insect = StrEnum("Insect", ["CLEAN", "INFECTIVE"])


def is_exposed(world: Any, people: Agents) -> Mask:
    return ~world.netted[people] & (people < world.size)


class Fever(ArrayWorld):
    """Two kinds: people, who fall ill and get well by time-outs, and mosquitoes."""

    chart = (
        ArrayChart(
            Person,
            [
                Transition("is_bitten", Person.WELL, Person.FEVERISH, is_exposed),
                Transition("timeout", Person.FEVERISH, Person.IMMUNE),
                Transition("timeout", Person.IMMUNE, Person.WELL),
            ],
            Person.WELL,
            name="person",
            timeouts={Person.FEVERISH: 4, Person.IMMUNE: 7},
        ),
        ArrayChart(
            Insect,
            [
                Transition("bites", Insect.CLEAN, Insect.INFECTIVE),
                Transition("dies", Insect.INFECTIVE, Insect.CLEAN),
            ],
            Insect.CLEAN,
            name="insect",
        ),
    )
    rounds = 40
    catching: float = 0.5
    dying: float = 0.1

    def setup(self) -> None:
        self.people, self.insects = self.where(*Person), self.where(*Insect)
        self.netted = self.generator("nets").random(self.size) < 0.3
        self.begin_in(self.insects[: len(self.insects) // 5], Insect.INFECTIVE)

    def step(self) -> None:
        place = self.random(self.insects) * len(self.people)
        bitten = self.people[place.astype(int)]
        has_fever = self.is_in(bitten, Person.FEVERISH) & (self.ticks_in_state(bitten) > 0)
        gives = self.is_in(self.insects, Insect.INFECTIVE)
        catches = self.random(self.insects) < self.catching
        self.fire(bitten[gives & catches], "is_bitten")
        self.fire(self.insects[has_fever & catches], "bites")
        old = self.insects[gives & (self.random(self.insects) < self.dying)]
        self.fire(old, "dies")

    def measures(self) -> dict[str, float]:
        return {"ill": self.share(Person.FEVERISH), "infective": self.share(Insect.INFECTIVE)}


def rounds_in_arrays(world: type[ArrayWorld], agents: int, seed: int) -> list[dict[str, int]]:
    """Return the counts of states in every round."""
    return [dict(each.states) for each in world(agents, seed=seed).run()]


def rounds_of_objects(world: type[World[Any]], agents: int, seed: int) -> list[dict[str, int]]:
    """Return the same of a world of objects."""
    results = Run(world(), agents, seed=seed).run()
    return [dict(each.states) for each in results.rounds]
