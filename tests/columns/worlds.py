"""Worlds for tests of columns, each with more of the language than a user would need at once."""

from enum import StrEnum
from math import exp, sqrt
from typing import Any, Literal

from prism.statechart import Statechart, Transition
from prism.worlds import (
    Agent,
    World,
    during,
    from_edges,
    grid,
    measure,
    one_of,
    random_graph,
    ring,
    small_world,
    state,
    treatment,
    uniform,
    whole,
)

Health = StrEnum("Health", ["WELL", "ILL", "IMMUNE", "GONE"])
Mood = StrEnum("Mood", ["GLAD", "SAD"])


def is_weak(agent: Any, context: Any) -> bool:
    """A guard."""
    return agent.strength < 0.8 and (context is None or context.state is Health.ILL)


class Patient(Agent):
    """Somebody with fields of every kind."""

    chart = Statechart(
        Health,
        [
            Transition("meets", Health.WELL, Health.ILL, guard=is_weak),
            Transition("recovers", Health.ILL, Health.IMMUNE),
            Transition("recovers", Health.ILL, Health.GONE, guard=lambda agent, _: agent.age > 70),
            Transition("timeout", Health.IMMUNE, Health.WELL),
        ],
        initial=Health.WELL,
        name="health",
        decision_states=[Health.ILL],
        timeouts={Health.IMMUNE: 3},
    )
    strength: float = state(uniform(0, 1))
    age: int = state(whole(1, 90))
    careful: bool = state(False)
    mood: Mood = state(Mood.GLAD)
    town: Literal["north", "south"] = "north"
    party: str = one_of("red", "blue")
    met: int = state(0)
    notes: list[int] = state(list)

    @property
    def is_old(self) -> bool:
        """Whether somebody is old."""
        return self.age > 60


class Epidemic(World[Patient]):
    """People who infect each other, with decisions, guards, time-outs, hooks and treatments."""

    rounds = 6
    ticks = 3
    infectious: float = 0.4
    healing: float = 0.3
    begun: int = 3
    seen: int = state(0)

    def setup(self) -> None:
        self.network = small_world(self, 4, 0.2)
        for patient in self.agents[: self.begun]:
            patient.begin_in(Health.ILL)

    def tick_begins(self) -> None:
        self.seen += self.count(Health.ILL)
        lucky = self.agents[self.random.index(len(self.agents))]
        if lucky.state is Health.ILL and lucky.random.chance(0.5):
            lucky.fire("recovers")

    def tick_ends(self) -> None:
        first = self.agents[0]
        first.notes.append(self.tick)
        first.met = first.met + 1

    def odds(self, patient: Patient, base: float) -> float:
        """A helper with a loop."""
        found = base
        for number in range(2):
            found += 0.1 * number
        if patient.is_old:
            return found / 2
        return found

    @during(Health.ILL)
    async def spread(self, patient: Patient) -> None:
        for friend in patient.neighbours:
            patient.met += 1
            if friend.state is not Health.WELL or friend.careful:
                continue
            if patient.random.chance(self.infectious * self.odds(friend, 0.5)):
                friend.fire("meets", patient)
        if patient.random.random() < self.healing:
            kinder = 1.0 if patient.mood is Mood.GLAD else exp(-1.0)
            weights = {Health.IMMUNE: kinder, Health.GONE: 0.25}
            answer = await patient.decide("recovers", weights=weights)
            if answer is Health.IMMUNE:
                patient.strength = min(1.0, patient.strength + 0.1)
            elif answer is None:
                patient.age = patient.age - 1

    @during(Health.WELL)
    def live(self, patient: Patient) -> None:
        ill = sum(friend.state is Health.ILL for friend in patient.neighbours)
        if ill > 1 and not patient.careful:
            patient.careful = True
        elif patient.careful and all(friend.state != Health.ILL for friend in patient.neighbours):
            patient.careful = False
        patient.mood = Mood.SAD if self.share(Health.ILL) > 0.2 else Mood.GLAD
        if patient.town == "north" and patient.party in ("red",):
            patient.strength = sqrt(patient.strength) * 0.99
        if patient.random.index(4) in (1, 2) and 0 < patient.random.random() <= 1 < patient.age:
            patient.met += 1

    @treatment(round=4)
    def wash(self) -> None:
        """People wash their hands."""
        self.infectious = self.infectious / 2

    @measure
    def ill(self) -> float:
        """The share of the ill."""
        return self.share(Health.ILL)

    @measure
    def strongest(self) -> float:
        """The mean strength of those who are ill."""
        return self.agents.where(state=Health.ILL).mean("strength", default=0.0)


class ListedEpidemic(Epidemic):
    """In the order of the list."""

    order = "listed"


Opinion = StrEnum("Opinion", ["A", "B"])


class Voter(Agent):
    """Somebody with an opinion."""

    chart = Statechart(
        Opinion,
        [Transition("turns", Opinion.A, Opinion.B), Transition("turns", Opinion.B, Opinion.A)],
        initial=Opinion.A,
        name="opinion",
    )
    value: float = state(uniform(0, 1))
    turned: int = state(0)


class Voters(World[Voter]):
    """One at random takes over what a neighbour thinks."""

    rounds = 5
    ticks = 40
    activation = "one"

    def setup(self) -> None:
        self.network = grid(self, wraps=True)
        for voter in self.agents:
            if voter.random.chance(0.5):
                voter.begin_in(Opinion.B)

    @during(Opinion.A, Opinion.B)
    def look(self, voter: Voter) -> None:
        other = voter.random.choice(voter.neighbours)
        if other.state is not voter.state:
            voter.fire("turns", other)
            voter.turned += 1

    def until(self) -> bool:
        """They agree."""
        return self.count(Opinion.A) in (0, len(self.agents))


def is_low(agent: Any, _context: Any) -> bool:
    """A guard that lets about every second time-out pass."""
    return bool(agent.value < 0.5)


class Moody(Voter):
    """Somebody who changes by itself, now and then."""

    chart = Statechart(
        Opinion,
        [
            *Voter.chart.definition.transitions,
            Transition("timeout", Opinion.A, Opinion.B, guard=is_low),
            Transition("timeout", Opinion.B, Opinion.A, guard=is_low),
        ],
        initial=Opinion.A,
        name="opinion",
        timeouts={Opinion.A: 1, Opinion.B: 2},
    )


class MoodyVoters(World[Moody]):
    """Voters who time out, or are refused to, and then are turned by others."""

    rounds = 5
    ticks = 40
    activation = "one"

    def setup(self) -> None:
        self.network = grid(self, wraps=True)

    @during(Opinion.A, Opinion.B)
    def look(self, voter: Moody) -> None:
        voter.turned += 1
        voter.value = voter.random.random()
        if voter.value < 0.2:
            voter.fire("turns")
        voter.random.choice(voter.neighbours).fire("turns", voter)


class MoodyPairs(World[Moody]):
    """Pairs of those who time out, or are refused to."""

    rounds = 5
    ticks = 40
    activation = "pair"

    @during(Opinion.A, Opinion.B)
    def meet(self, one: Moody, other: Moody) -> None:
        one.turned += 1
        other.value = one.random.random()
        if other.value < 0.2:
            one.fire("turns", other)
        other.fire("turns", one)


class Deffuant(World[Voter]):
    """Pairs that are close come closer."""

    rounds = 4
    ticks = 30
    activation = "pair"
    near: float = 0.3
    speed: float = 0.5

    @during(Opinion.A, Opinion.B)
    def meet(self, one: Voter, other: Voter) -> None:
        away = other.value - one.value
        if abs(away) < self.near:
            one.value += self.speed * away
            other.value -= self.speed * away
        if (one.value > 0.5) != (one.state is Opinion.B):
            one.fire("turns", other)


class Together(World[Patient]):
    """Everybody acts on what was there when the tick began."""

    rounds = 5
    ticks = 2
    together = True
    infectious: float = 0.5

    def setup(self) -> None:
        self.network = random_graph(self, 0.1)
        for patient in self.agents[:4]:
            patient.begin_in(Health.ILL)

    @during(Health.ILL)
    async def spread(self, patient: Patient) -> None:
        patient.met += 1
        for friend in patient.neighbours:
            if friend.state is Health.WELL and patient.random.chance(self.infectious):
                friend.fire("meets", patient)
        if patient.neighbours:
            friend = patient.random.choice(patient.neighbours)
            if friend.state is Health.ILL:
                weights = {Health.IMMUNE: friend.strength, Health.GONE: 0.5}
                said = await friend.decide("recovers", patient, weights=weights)
                patient.met += 10
                if said is not None and friend.met > 5:
                    patient.strength = patient.strength / 2
                    again = await patient.decide("recovers")
                    patient.careful = again is Health.IMMUNE

    @during(Health.WELL)
    def live(self, patient: Patient) -> None:
        patient.careful = any(friend.met > 3 for friend in patient.neighbours)


class Late(World[Patient]):
    """A world whose network comes, and is replaced, in the middle of the run."""

    rounds = 4

    @during(Health.WELL)
    def look(self, patient: Patient) -> None:
        """Count the neighbours that there are by now."""
        patient.met += len(patient.neighbours)

    def round_begins(self) -> None:
        """Set networks."""
        if self.round == 2:
            self.network = ring(self, 2)
        if self.round == 4:
            self.network = from_edges(self, [(0, 1)], directed=True)
