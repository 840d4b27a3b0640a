"""Textbook models, each against its exact chain: by every activation, within error."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache
from math import comb, exp, sqrt
from statistics import mean, stdev
from typing import Any

import pytest

from prism import Agent, Run, Statechart, World, during
from prism.examples.epidemic import Health, Person
from tests.kit import textbook

_WITHIN = 4.0
"""Standard errors; a right model is farther off once in 16,000 times."""


def finals(world: Callable[[], Any], agents: int, seeds: int, what: Callable[[Any], float]) -> Any:
    """Return a number of the results of many seeds."""
    return [what(Run(world(), agents, seed=seed).run()) for seed in range(seeds)]


def assert_mean(found: list[float], exact: float, sd: float | None = None) -> None:
    """Compare a mean with its exact value."""
    error = (stdev(found) if sd is None else sd) / sqrt(len(found))
    assert abs(mean(found) - exact) < _WITHIN * error, (mean(found), exact, error)


def won(results: Any) -> float:
    """Return whether all are blue in the end."""
    return float(results.rounds[-1].states["red"] == 0)


@pytest.mark.slow
@pytest.mark.parametrize("blue", [1, 3])
def test_the_voters_agree_with_the_share_that_began(blue: int) -> None:
    """Of the voter model, the opinion of k of n wins with probability k / n."""
    found = finals(lambda: textbook.Voters(blue=blue), 6, 60, won)
    exact = blue / 6
    assert_mean(found, exact, sqrt(exact * (1 - exact)))


@pytest.mark.slow
@pytest.mark.parametrize("fitness", [2.0, 0.8])
def test_a_fitter_mutant_takes_over_as_moran_says(fitness: float) -> None:
    """A mutant of fitness r is fixed with probability (1 - 1/r^k) / (1 - 1/r^n)."""
    found = finals(lambda: textbook.Moran(blue=2, fitness=fitness), 8, 60, won)
    exact = (1 - fitness**-2) / (1 - fitness**-8)
    assert_mean(found, exact, sqrt(exact * (1 - exact)))


@pytest.mark.slow
def test_the_rumour_reaches_whom_its_chain_reaches() -> None:
    """Of Daley and Kendall's rumour as many never hear as in the exact chain."""
    found = finals(textbook.Gossip, 15, 30, lambda results: results.rounds[-1].states["ignorant"])
    assert_mean(found, _never_hear(14, 1))


def _never_hear(ignorant: int, spreaders: int) -> float:
    """Return the expected number of those who never hear the rumour."""
    people = ignorant + spreaders

    @cache
    def left(x: int, y: int) -> float:
        if y == 0:
            return float(x)
        stiflers = people - x - y
        told, met, tired = x * y, y * (y - 1) / 2, y * stiflers
        total = told + met + tired
        found = told / total * left(x - 1, y + 1) if told else 0.0
        found += met / total * left(x, y - 2) if met else 0.0
        return found + (tired / total * left(x, y - 1) if tired else 0.0)

    # from few ignorant ones on, so that no recursion is deep
    for x in range(ignorant + 1):
        for y in range(people - x + 1):
            left(x, y)

    return left(ignorant, spreaders)


def test_opinions_keep_their_mean_and_lose_their_spread() -> None:
    """Deffuant's mean never changes; sums of squares shrink by 1 / (n - 1) a meeting."""
    agents, kept = 20, []
    for seed in range(20):
        results = Run(textbook.Deffuant(), agents, seed=seed).run()
        assert max(results.series("mean")) - min(results.series("mean")) < 1e-12
        first, *_, last = results.series("spread")
        kept.append(last / first)
    assert_mean(kept, (1 - 1 / (agents - 1)) ** 20)


@pytest.mark.slow
def test_the_sir_of_ndlib_has_the_size_of_its_chain() -> None:
    """Where all meet all, the epidemic is as large as in the exact chain of Reed and Frost."""
    found = finals(textbook.Sir, 12, 40, lambda results: results.rounds[-1].states["recovered"])
    assert_mean(found, 12 - _never_ill(11, 1, 0.1, 0.3))


def _never_ill(susceptible: int, infected: int, beta: float, gamma: float) -> float:
    @cache
    def left(s: int, i: int) -> float:
        if i == 0:
            return float(s)
        found, stays = 0.0, 0.0
        for new, chance in _binomial(s, 1 - (1 - beta) ** i):
            for gone, other in _binomial(i, gamma):
                if new == gone == 0:
                    stays = chance * other
                else:
                    found += chance * other * left(s - new, i + new - gone)
        return found / (1 - stays)

    return left(susceptible, infected)


def _binomial(number: int, chance: float) -> Iterator[tuple[int, float]]:
    for k in range(number + 1):
        yield k, comb(number, k) * chance**k * (1 - chance) ** (number - k)


Life = StrEnum("Life", ["ALIVE"])


class Cell(Agent):
    """Something that divides and dies."""

    chart = Statechart(Life, [], Life.ALIVE)


class Dish(World[Cell]):
    """A birth-death chain: each event is a birth or a death, in continuous time."""

    rounds = 2
    birth: float = 1.0
    death: float = 1.5

    @during(Life.ALIVE, rate="birth")
    def divide(self, cell: Cell) -> None:
        self.add(Cell(), cell)

    @during(Life.ALIVE, rate="death")
    def die(self, cell: Cell) -> None:
        cell.leave()


@pytest.mark.slow
def test_a_birth_death_chain_dies_out_as_often_as_it_must() -> None:
    """From one cell, extinct by time t with the exact probability of a linear chain."""
    dish = Dish()
    growth = exp((dish.birth - dish.death) * dish.rounds)
    exact = dish.death * (1 - growth) / (dish.death - dish.birth * growth)
    found = finals(Dish, 1, 400, lambda results: results.rounds[-1].states["alive"] == 0)
    assert_mean(found, exact, sqrt(exact * (1 - exact)))


class Village(World[Person]):
    """An SIR in which everybody who dies is followed by somebody who is well."""

    rounds = 300
    imported: float = 0.1
    contacts: float = 1.5
    recovery: float = 0.5
    death: float = 0.25

    def risk(self, _patient: Person) -> float:
        return self.imported + self.contacts * self.count(Health.INFECTED) / 4

    @during(Health.SUSCEPTIBLE, rate=risk)
    def catch(self, patient: Person) -> None:
        patient.fire("infects")

    @during(Health.INFECTED, rate="recovery")
    def recover(self, patient: Person) -> None:
        patient.fire("recovers")

    @during(*Health, rate="death")
    def die(self, patient: Person) -> None:
        patient.leave()
        self.add(Person())


class VillageWithLargestRate(Village):
    """The same, with the largest rate at which anybody falls ill."""

    @during(Health.SUSCEPTIBLE, rate=Village.risk, most=2)
    def catch(self, patient: Person) -> None:
        patient.fire("infects")


def ill_in_the_chain(world: Village, size: int) -> float:
    """Return the mean number of ill people in the stationary distribution of the exact chain."""
    states = [(well, ill) for well in range(size + 1) for ill in range(size + 1 - well)]
    chances = dict.fromkeys(states, 1 / len(states))
    for _ in range(4000):
        after = dict.fromkeys(states, 0.0)
        for (well, ill), chance in chances.items():
            immune = size - well - ill
            moves = {
                (well - 1, ill + 1): well * (world.imported + world.contacts * ill / size),
                (well, ill - 1): ill * world.recovery,
                (well + 1, ill - 1): ill * world.death,
                (well + 1, ill): immune * world.death,
            }
            for state_after, rate in moves.items():
                if rate:
                    after[state_after] += chance * rate / 20
            after[well, ill] += chance * (1 - sum(moves.values()) / 20)
        chances = after
    return sum(ill * chance for (_, ill), chance in chances.items())


@pytest.mark.slow
@pytest.mark.parametrize("village", [Village, VillageWithLargestRate])
def test_an_epidemic_with_births_and_deaths_stays_as_large_as_it_must(
    village: type[Village],
) -> None:
    """Of four people as many are ill on average as in the exact chain."""

    def ill(results: Any) -> float:
        return mean(each.states["infected"] for each in results.rounds[40:])

    assert_mean(finals(village, 4, 16, ill), ill_in_the_chain(Village(), 4))
