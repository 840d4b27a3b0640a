"""Textbook models, each against its exact chain: by every activation, within error."""

from collections.abc import Callable, Iterator
from functools import cache
from math import comb, sqrt
from statistics import mean, stdev
from typing import Any

import pytest

from prism import Run
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
def test_voters_take_as_long_as_their_chain() -> None:
    """Turns until two voters of four agree have the mean of the chain: 3 (n - 1) of 2 and 2."""
    # from two of four a turn leads to one or three with 2/3; from there to an end with 1/4
    found = finals(lambda: textbook.Voters(blue=2), 4, 80, lambda results: results.stopped["round"])
    assert_mean(found, _turns(2, 4))


def _turns(blue: int, of: int) -> float:
    """Return the expected number of turns until all agree, by solving the chain."""
    expected = [0.0] * (of + 1)
    for _ in range(20_000):
        for k in range(1, of):
            moves = k * (of - k) / (of * (of - 1))
            expected[k] = (1 / moves + expected[k - 1] + expected[k + 1]) / 2

    return expected[blue]


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
    found = finals(textbook.Sir, 12, 40, lambda results: results.rounds[-1].states["removed"])
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
