"""Distributions over uniform numbers."""

from collections.abc import Callable, Iterable
from itertools import chain
from math import exp, inf, nan
from random import Random
from typing import Any

import pytest

numpy = pytest.importorskip("numpy")
pytest.importorskip("scipy")

from prism.randomness import RandomStream  # noqa: E402
from tests.kit.modules import Later  # noqa: E402

stats = Later("scipy.stats")

Draw = Callable[[RandomStream], float]
Frozen = Callable[[], Any]

CONTINUOUS: dict[str, tuple[Frozen, Draw]] = {
    "normal": (lambda: stats.norm(2, 3), lambda random: random.normal(2, 3)),
    "lognormal": (
        lambda: stats.lognorm(0.7, scale=exp(0.3)),
        lambda random: random.lognormal(0.3, 0.7),
    ),
    "exponential": (lambda: stats.expon(scale=2.5), lambda random: random.exponential(2.5)),
    "gamma, small shape": (
        lambda: stats.gamma(0.05, scale=2),
        lambda random: random.gamma(0.05, 2),
    ),
    "gamma": (lambda: stats.gamma(1.5), lambda random: random.gamma(1.5)),
    "gamma, large shape": (lambda: stats.gamma(1000), lambda random: random.gamma(1000)),
    "beta, small": (lambda: stats.beta(0.2, 0.3), lambda random: random.beta(0.2, 0.3)),
    "beta": (lambda: stats.beta(2, 5), lambda random: random.beta(2, 5)),
    "beta, large": (lambda: stats.beta(10_000, 10_000), lambda random: random.beta(10_000, 10_000)),
}
DISCRETE: dict[str, tuple[Frozen, Draw]] = {
    "poisson, small": (lambda: stats.poisson(0.7), lambda random: random.poisson(0.7)),
    "poisson, counted": (lambda: stats.poisson(11.9), lambda random: random.poisson(11.9)),
    "poisson": (lambda: stats.poisson(12.1), lambda random: random.poisson(12.1)),
    "poisson, large": (lambda: stats.poisson(1e5), lambda random: random.poisson(1e5)),
    "binomial, few": (lambda: stats.binom(10, 0.5), lambda random: random.binomial(10, 0.5)),
    "binomial, rare": (
        lambda: stats.binom(10**6, 1e-6),
        lambda random: random.binomial(10**6, 1e-6),
    ),
    "binomial, frequent": (
        lambda: stats.binom(100, 0.98),
        lambda random: random.binomial(100, 0.98),
    ),
    "binomial": (lambda: stats.binom(25, 0.5), lambda random: random.binomial(25, 0.5)),
    "binomial, many": (lambda: stats.binom(10**6, 0.7), lambda random: random.binomial(10**6, 0.7)),
}
LEAST_P = 0.0005


def p_value(name: str, number: int) -> float:
    """Return the probability of numbers at least so far from scipy's distribution."""
    make, draw = (CONTINUOUS | DISCRETE)[name]
    distribution = make()
    stream = RandomStream(3, name)
    drawn = numpy.array([draw(stream) for _ in range(number)])
    if name in CONTINUOUS:
        return float(stats.kstest(drawn, distribution.cdf).pvalue)

    # a count takes up an interval of the uniform numbers, in which it has a random place
    places = numpy.random.default_rng(1).random(number)
    uniform = distribution.cdf(drawn - 1) + places * distribution.pmf(drawn)
    return float(stats.kstest(uniform, "uniform").pvalue)


@pytest.mark.parametrize("number", [1000, pytest.param(30_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_numbers_are_distributed_as_in_scipy(name: str, number: int) -> None:
    """Of many draws, the distribution is that of scipy."""
    assert p_value(name, number) > LEAST_P


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda random: random.normal(5, 0), 5),
        (lambda random: random.lognormal(0, 0), 1),
        (lambda random: random.exponential(0), 0),
        (lambda random: random.gamma(3, 0), 0),
        (lambda random: random.poisson(0), 0),
        (lambda random: random.binomial(0, 0.5), 0),
        (lambda random: random.binomial(100, 0), 0),
        (lambda random: random.binomial(100, 1), 100),
    ],
)
def test_what_has_no_spread_is_always_the_same(draw: Draw, expected: float) -> None:
    """Distributions at the end of their ranges give the one value that they have."""
    stream = RandomStream(1)
    assert {draw(stream) for _ in range(20)} == {expected}


@pytest.mark.parametrize(
    "draw",
    [
        lambda random: random.chance(7.5),
        lambda random: random.chance(-0.1),
        lambda random: random.chance(nan),
        lambda random: random.index(0),
        lambda random: random.weighted_index([1, -1]),
        lambda random: random.weighted_index([0, 0]),
        lambda random: random.weighted_index([]),
        lambda random: random.weighted_index([1, inf]),
        lambda random: random.between(2, 1),
        lambda random: random.between(0, inf),
        lambda random: random.normal(0, -1),
        lambda random: random.normal(nan, 1),
        lambda random: random.lognormal(0, inf),
        lambda random: random.exponential(-1),
        lambda random: random.gamma(0),
        lambda random: random.gamma(1, -1),
        lambda random: random.beta(0, 1),
        lambda random: random.beta(1, nan),
        lambda random: random.poisson(-1),
        lambda random: random.poisson(inf),
        lambda random: random.binomial(-1, 0.5),
        lambda random: random.binomial(2.5, 0.5),
        lambda random: random.binomial(10, 1.1),
    ],
)
def test_a_number_out_of_its_range_is_refused(draw: Draw) -> None:
    """The message names the call, what it takes, and what it was given."""
    with pytest.raises(ValueError, match=r"^\w+\([a-z, ]+\) needs .*, got "):
        draw(RandomStream(1))


class Scripted(RandomStream):
    """A stream whose uniform numbers are given."""

    def __init__(self, numbers: Iterable[float]) -> None:
        super().__init__(0)
        self.numbers = iter(numbers)

    __slots__ = ("numbers",)

    def random(self) -> float:
        """Return the next of the numbers."""
        return next(self.numbers)


@pytest.mark.parametrize("edge", [0.0, 1 - 2.0**-53])
def test_the_ends_of_the_uniform_numbers_have_values(edge: float) -> None:
    """The first and last uniform number there is give finite numbers in every distribution."""
    for _, draw in (CONTINUOUS | DISCRETE).values():
        numbers = chain([edge, edge], iter(Random(0).random, None))
        assert abs(draw(Scripted(numbers))) < inf


def test_one_uniform_number_makes_one_normal_number() -> None:
    """A larger uniform number makes a larger normal, lognormal and exponential number."""
    numbers = [0.1, 0.5, 0.9]
    for method in ("normal", "lognormal", "exponential"):
        stream = Scripted(numbers)
        drawn = [getattr(stream, method)() for _ in numbers]
        assert drawn == sorted(set(drawn))
