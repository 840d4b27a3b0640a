"""How samples are held to exact laws: a p-value for every seed, and what they must be together."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import erfc, sqrt

import pytest

SMALLEST_EXPECTED = 5.0
"""Cells that expect less are put together for a chi-squared test (Cochran 1954)."""

LEAST_P = 0.01

ONE, FEW, ALL = range(1), range(2), range(20)

on_fixed_seeds = pytest.mark.parametrize(
    "seeds",
    [ONE, pytest.param(FEW, marks=pytest.mark.slow), pytest.param(ALL, marks=pytest.mark.long)],
    ids=["1_seed", "2_seeds", "20_seeds"],
)
"""A law is held with one seed in the suite, two in the slow tests, twenty in the long ones."""


def p_of_counts(counts: Sequence[float], chances: Sequence[float]) -> float:
    """Return the p-value of Pearson's chi-squared test of counts against a law.

    Args:
        counts: How often each outcome was observed.
        chances: The probability of each; what they leave to one is an outcome never observed.
    """
    from scipy.special import chdtrc

    total = sum(counts)
    cells = list(zip(counts, (total * chance for chance in chances), strict=True))
    cells.append((0, max(total - sum(expected for _, expected in cells), 0.0)))
    large = [cell for cell in cells if cell[1] >= SMALLEST_EXPECTED]
    small = [cell for cell in cells if cell[1] < SMALLEST_EXPECTED]
    seen, expected = (sum(column) for column in zip(*small, strict=True))
    if expected >= SMALLEST_EXPECTED:
        large.append((seen, expected))
    else:
        # too little for a cell of its own: it goes to the smallest of the others
        place = min(range(len(large)), key=lambda each: large[each][1])
        large[place] = (large[place][0] + seen, large[place][1] + expected)

    statistic = sum((count - mean) ** 2 / mean for count, mean in large)

    return float(chdtrc(len(large) - 1, statistic))


def p_of_outcomes(outcomes: Iterable[int], chance: Callable[[int], float], most: int) -> float:
    """Return the p-value of whole numbers against a law.

    Args:
        outcomes: What was observed.
        chance: The probability of each number from 0 on.
        most: The last number with a cell of its own; all beyond share one.
    """
    seen = Counter(min(outcome, most + 1) for outcome in outcomes)
    chances = [chance(number) for number in range(most + 1)]
    beyond = max(1 - sum(chances), 0.0)

    return p_of_counts([seen[number] for number in range(most + 2)], [*chances, beyond])


def p_of_mean(values: Sequence[float], mean: float, variance: float) -> float:
    """Return the two-sided p-value of a sample's mean, by the central limit theorem."""
    deviation = abs(sum(values) / len(values) - mean)

    return erfc(deviation / sqrt(2 * variance / len(values)))


def assert_follows(p_values: Sequence[float]) -> None:
    """Assert that p-values are such as a true law gives.

    The smallest is at least .01 divided by their number (Bonferroni). Twenty are no less uniform,
    besides, than one such sample in a hundred (by Kolmogorov and Smirnov's test), which those that
    are all off in the same way do not pass.
    """
    assert min(p_values) >= LEAST_P / len(p_values), sorted(p_values)
    if len(p_values) == len(ALL):
        from scipy.stats import kstest

        assert kstest(p_values, "uniform").pvalue >= LEAST_P, sorted(p_values)
