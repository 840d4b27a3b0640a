"""The final size of epidemics in which everybody meets everybody, against exact laws."""

from collections.abc import Callable, Sequence
from functools import cache
from math import comb, exp

import pytest

from prism import Run
from prism.examples import epidemic
from prism.examples.epidemic import Health
from prism.worlds import World, during, state
from tests.kit.laws import assert_follows, on_fixed_seeds, p_of_mean, p_of_outcomes

pytest.importorskip("scipy")

INFECTION, RECOVERY = 0.15, 0.6
HOUSEHOLD, HOUSEHOLDS = 6, 250

CONTACTS = 1.8
"""Whom an infectious member of a community infects, if all others are susceptible."""

COMMUNITY, COMMUNITIES, FIRST = 100, 10, 10


class Person(epidemic.Person):
    """Somebody who can be infected once."""

    group: int = state(0)


class Epidemic(World[Person]):
    """Groups without contact with each other, in each of which everybody meets at every tick.

    An infectious person infects each susceptible one of the group with the same probability at
    every tick, one independently of the other, and recovers at its end with another.
    """

    rounds = 1
    ticks = 60
    together = True
    size: int = HOUSEHOLD
    first: int = 1
    infection: float = INFECTION
    recovery: float = RECOVERY
    infectious: list[int] = state(list)

    def setup(self) -> None:
        for place, person in enumerate(self.agents):
            person.group = place // self.size
            if place % self.size < self.first:
                person.begin_in(Health.INFECTED)

    def tick_begins(self) -> None:
        counts = [0] * (len(self.agents) // self.size)
        for person in self.agents:
            counts[person.group] += person.state is Health.INFECTED
        self.infectious = counts

    @during(Health.SUSCEPTIBLE)
    def meet(self, person: Person) -> None:
        met = self.infectious[person.group]
        if met and person.random.chance(1 - (1 - self.infection) ** met):
            person.fire("infects")

    @during(Health.INFECTED)
    def suffer(self, person: Person) -> None:
        if person.random.chance(self.recovery):
            person.fire("recovers")


def final_sizes(world: Epidemic, groups: int, seed: int) -> list[int]:
    """Return how many of each group were infected, besides the first, when it was over."""
    run = Run(world, groups * world.size, seed=seed)
    run.run()
    assert world.count(Health.INFECTED) == 0
    sizes = [-world.first] * groups
    for person in run.agents:
        sizes[person.group] += person.state is Health.RECOVERED

    return sizes


def household_law(escape: Callable[[int], float], n: int, first: int) -> list[float]:
    """Return the law of the final size among n susceptibles (Ball 1986; Addy et al. 1991).

    Args:
        escape: The probability that none of i people is infected by one infectious person, ever.
        n: How many are susceptible.
        first: How many are infectious at the beginning.
    """
    law: list[float] = []
    for k in range(n + 1):
        known = sum(comb(n - j, k - j) * law[j] / escape(n - k) ** (first + j) for j in range(k))
        law.append((comb(n, k) - known) * escape(n - k) ** (first + k))

    return law


@cache
def chain_law(n: int, first: int, infection: float) -> Sequence[float]:
    """Return the law of the final size from the chain of Reed and Frost (Abbey 1952).

    One tick after the other: each of s susceptibles escapes i infectious with (1 - p)^i.
    """
    import numpy as np
    from scipy.stats import binom

    # reached[s, i]: the probability that the chain comes by s susceptibles and i infectious
    reached = np.zeros((n + 1, n + first + 1))
    reached[n, first] = 1.0
    caught = 1 - (1 - infection) ** np.arange(1, n + first + 1)
    for s in range(n, 0, -1):
        new = np.arange(s + 1)
        reached[s - new, new] += reached[s, 1:] @ binom.pmf(new, s, caught[:, None])

    return [float(reached[0].sum()), *map(float, reached[1:, 0])][::-1]


def moments(law: Sequence[float]) -> tuple[float, float]:
    """Return mean and variance of a law on 0, 1, 2, ..."""
    mean = sum(k * chance for k, chance in enumerate(law))
    return mean, sum((k - mean) ** 2 * chance for k, chance in enumerate(law))


@on_fixed_seeds
def test_final_size_in_households(seeds: range) -> None:
    """Households of six have the final sizes of Ball's recursion, infectious for geometric times.

    With phi(i) the probability that one infectious person infects none of i, here
    r q^i / (1 - (1 - r) q^i), all k satisfy
    sum over j up to k of C(n - j, k - j) P(j) / phi(n - k)^(m + j) = C(n, k).
    """

    def escape(i: int) -> float:
        escaped = (1 - INFECTION) ** i
        return RECOVERY * escaped / (1 - (1 - RECOVERY) * escaped)

    law = household_law(escape, HOUSEHOLD - 1, 1)
    assert_follows(
        [
            p_of_outcomes(final_sizes(Epidemic(), HOUSEHOLDS, seed), law.__getitem__, len(law) - 1)
            for seed in seeds
        ]
    )


@on_fixed_seeds
def test_final_size_in_communities(seeds: range) -> None:
    """Communities of 100 in which everybody mixes have the mean final size of the exact chain."""
    n = COMMUNITY - FIRST
    infection = 1 - exp(-CONTACTS / n)
    mean, variance = moments(chain_law(n, FIRST, infection))
    p_values = []
    for seed in seeds:
        world = Epidemic(size=COMMUNITY, first=FIRST, infection=infection, recovery=1.0)
        p_values.append(p_of_mean(final_sizes(world, COMMUNITIES, seed), mean, variance))

    assert_follows(p_values)
