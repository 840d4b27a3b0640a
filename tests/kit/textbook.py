"""Models of textbooks, as one writes them: each in a class or two, at most 35 lines."""

from enum import StrEnum

from prism.examples.epidemic import Health
from prism.examples.epidemic import Person as Patient
from prism.examples.rumour import Mind
from prism.examples.rumour import Person as Hearer
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, state, uniform

Vote = StrEnum("Vote", ["RED", "BLUE"])


class Voter(Agent):
    """Somebody with one of two opinions."""

    chart = Statechart(
        Vote,
        [Transition("red", Vote.BLUE, Vote.RED), Transition("blue", Vote.RED, Vote.BLUE)],
        initial=Vote.RED,
    )

    def take(self, vote: Vote) -> None:
        self.fire(vote.value)


class Voters(World[Voter]):
    """The voter model (Holley and Liggett 1975): one at a time takes the opinion of another."""

    rounds = 100_000
    blue: int = 3

    def setup(self) -> None:
        for voter in self.agents[: self.blue]:
            voter.begin_in(Vote.BLUE)

    async def tick(self) -> None:
        await self.activate(self.agents.sample(1))

    @during(*Vote)
    def listen(self, voter: Voter) -> None:
        others = [other for other in self.agents if other is not voter]
        voter.take(voter.random.choice(others).state)

    def until(self) -> bool:
        return self.count(Vote.RED) in (0, len(self.agents))


class Moran(World[Voter]):
    """The Moran process (1958): in proportion to fitness one is born, and takes a place by lot."""

    rounds = 100_000
    blue: int = 3
    fitness: float = 2.0
    setup, until = Voters.setup, Voters.until

    @during(Vote.RED, rate=1)
    def listen(self, voter: Voter) -> None:
        voter.random.choice(self.agents).take(Vote.RED)

    @during(Vote.BLUE, rate="fitness")
    def spread(self, voter: Voter) -> None:
        voter.random.choice(self.agents).take(Vote.BLUE)


class Gossip(World[Hearer]):
    """A rumour (Daley and Kendall 1965): any two meet; two who both know it tire of it."""

    rounds = 100_000

    def setup(self) -> None:
        self.agents[0].begin_in(Mind.SPREADER)

    async def tick(self) -> None:
        one, other = self.agents.sample(2)
        if Mind.SPREADER in (one.state, other.state):
            tells, hears = (one, other) if one.state is Mind.SPREADER else (other, one)
            if hears.fire("hears") is None:
                tells.fire("tires")
                hears.fire("tires")

    def until(self) -> bool:
        return self.count(Mind.SPREADER) == 0


Present = StrEnum("Present", ["HERE"])


class Thinker(Agent):
    """Somebody with an opinion between 0 and 1."""

    chart = Statechart(Present, [], initial=Present.HERE)
    opinion: float = state(uniform(0, 1))


class Deffuant(World[Thinker]):
    """Opinions without bounds of confidence (Deffuant and others 2000): any two meet half-way."""

    rounds = 3
    ticks = 10

    async def tick(self) -> None:
        one, other = self.agents.sample(2)
        one.opinion = other.opinion = (one.opinion + other.opinion) / 2

    @measure
    def mean(self) -> float:
        return sum(each.opinion for each in self.agents) / len(self.agents)

    @measure
    def spread(self) -> float:
        mean = self.mean()
        return sum((each.opinion - mean) ** 2 for each in self.agents)


class Sir(World[Patient]):
    """The SIR of NDlib (Rossetti and others 2018): in each round all at the same time."""

    together = True
    rounds = 1000
    beta: float = 0.1
    gamma: float = 0.3

    def setup(self) -> None:
        self.agents[0].begin_in(Health.INFECTED)

    @during(Health.INFECTED)
    def pass_on(self, one: Patient) -> None:
        for other in one.neighbours or self.agents:
            if other.state is Health.SUSCEPTIBLE and one.random.chance(self.beta):
                other.fire("infects")
        if one.random.chance(self.gamma):
            one.fire("recovers")

    def until(self) -> bool:
        return self.count(Health.INFECTED) == 0
