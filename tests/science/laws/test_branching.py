"""Branching processes: how many descend from one, against the laws of Borel, Otter and Dwass."""

from collections import Counter
from enum import StrEnum
from math import comb, exp, factorial, lgamma, log
from typing import Any

import pytest

from prism import Run
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, state
from tests.kit.laws import assert_follows, on_fixed_seeds, p_of_outcomes

pytest.importorskip("scipy")

FAMILIES = 300
MEAN, BIRTH = 0.6, 0.35
POISSON = [exp(-MEAN) * MEAN**number / factorial(number) for number in range(20)]


Life = StrEnum("Life", ["ALIVE", "DEAD"])
"""States of somebody who may have children."""


class Person(Agent):
    """A member of a family."""

    chart = Statechart(
        Life,
        [
            Transition("lives", Life.ALIVE, Life.ALIVE),
            Transition("lives", Life.ALIVE, Life.DEAD),
            Transition("dies", Life.ALIVE, Life.DEAD),
        ],
        Life.ALIVE,
        decision_states=[Life.ALIVE],
        final_states=[Life.DEAD],
    )
    family: int = state(-1)


class Families(World[Person]):
    """Families that die out: each begins with some founders, and everybody has children alike."""

    rounds = 1
    ticks = 60
    founders: int = 1

    def setup(self) -> None:
        for place, person in enumerate(self.agents):
            person.family = place // self.founders


class PoissonFamilies(Families):
    """Everybody has a number of children at once, after Poisson."""

    @during(Life.ALIVE)
    def live(self, person: Person) -> None:
        for _ in range(person.random.weighted_index(POISSON)):
            self.add(Person(family=person.family))
        person.fire("dies")


class GeometricFamilies(Families):
    """Everybody has one child after the other, until a decision is for death."""

    @during(Life.ALIVE)
    async def live(self, person: Person) -> None:
        weights = {Life.ALIVE: BIRTH, Life.DEAD: 1 - BIRTH}
        if await person.decide("lives", weights=weights) is Life.ALIVE:
            self.add(Person(family=person.family))


def borel_tanner(size: int, founders: int) -> float:
    """Return the probability of a size where children are Poisson (Tanner 1961; Borel 1942)."""
    if size < founders:
        return 0.0

    rate = MEAN * size
    draws = (size - founders) * log(rate) - rate - lgamma(size - founders + 1)
    return founders / size * exp(draws)


def otter(size: int) -> float:
    """Return the probability of a size where children are geometric (Otter 1949; Dwass 1969)."""
    if size < 1:
        return 0.0

    return comb(2 * size - 2, size - 1) / size * BIRTH ** (size - 1) * (1 - BIRTH) ** size


def sizes(world: Families, seed: int) -> list[int]:
    """Return how many each family had when all had died."""
    run = Run(world, FAMILIES * world.founders, seed=seed)
    run.run()
    assert world.count(Life.ALIVE) == 0
    members = Counter(person.family for person in run.world.agents)

    return [members[family] for family in range(FAMILIES)]


@on_fixed_seeds
@pytest.mark.parametrize(
    ("families", "founders", "law"),
    [
        (PoissonFamilies, 1, lambda size: borel_tanner(size, 1)),
        (PoissonFamilies, 2, lambda size: borel_tanner(size, 2)),
        (GeometricFamilies, 1, otter),
    ],
)
def test_sizes_of_families(families: Any, founders: int, law: Any, seeds: range) -> None:
    """Sizes have the laws of Borel and Tanner, and of Otter and Dwass.

    Where children are Poisson with mean m, k founders have n descendants, themselves included, with
    k/n P(S = n - k), where S is Poisson with mean m n (Otter 1949 and Dwass 1969, The Total Progeny
    in a Branching Process); where they are geometric, with C(2n - 2, n - 1)/n b^(n - 1) (1 - b)^n.
    """
    assert_follows(
        [p_of_outcomes(sizes(families(founders=founders), seed), law, most=100) for seed in seeds]
    )
