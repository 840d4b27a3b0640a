"""The statistics of a comparison, by scipy and statsmodels, adapted to few runs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil, comb
from typing import Any, Literal, TypeAlias

from prism.science._arrays import Array, np
from prism.science._libraries import library

stats = library("scipy.stats")
multipletests = library("statsmodels.stats.multitest").multipletests

Values: TypeAlias = Array
TestName: TypeAlias = Literal["Wilcoxon", "Mann-Whitney"]

_MOST_ALL = 20_000
"""Largest number of permutations that are all tried."""

_MOST_EXACT = 50
"""Most runs per group for which the exact distribution without ties is tabulated."""

# Differences of computed shares that differ only in the last bits would count as distinct.
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Tested:
    """The outcome of a test.

    Args:
        test: Its name.
        statistic: Its statistic: W+ (the sum of the ranks of positive differences), or U of the
            second group.
        p: Its two-sided p-value.
        effect: Its effect size: the matched-pairs rank-biserial correlation, or Cliff's delta.
        least_p: The smallest p-value that is possible with this number of runs.
    """

    test: TestName
    statistic: float
    p: float
    effect: float
    least_p: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A difference of means (second minus first) and its interval; None if there is none.

    Args:
        difference: The difference.
        low: Lower end of Student's interval for pairs, or Welch's for groups.
        high: Upper end.
        scale: The standard deviation that standardises the difference; None if all runs of each
            group are the same.
        t_p: Two-sided p-value of a difference of 0.
        deviation: Standard deviation of the differences of pairs; of groups, that of the difference
            between two single runs, sqrt(s₁² + s₂²).
    """

    difference: float
    low: float | None = None
    high: float | None = None
    scale: float | None = None
    t_p: float | None = None
    deviation: float | None = None


def as_values(values: Sequence[Any]) -> Values:
    """Return numbers, or rows of them, as an array."""
    return np.asarray(values, dtype=float)


def interval(first: Values, second: Values, *, paired: bool, confidence: float) -> Interval:
    """Return the difference of two means with its interval and p-value.

    For pairs they are Student's (1908), of the differences, and for groups Welch's (1947,
    Biometrika 34), which do not assume equal variances. There are none for a single run, or if
    nothing varies. The scale is sqrt((s1^2 + s2^2) / 2), with which the difference is Cohen's d_av
    (Cumming 2012, Understanding the New Statistics); it does not depend on how the runs are paired.

    Args:
        first: The values of the first group.
        second: The values of the second group; for pairs, in the same order.
        paired: Whether they are pairs.
        confidence: Coverage of the interval, 0 to 1.
    """
    difference, scale = float(second.mean() - first.mean()), _scale(first, second)
    samples = [differences_of(first, second)] if paired else [first, second]
    if min(map(len, samples)) < 2 or not any(np.ptp(each) for each in samples):
        return Interval(difference, scale=scale)

    if paired:
        found = stats.ttest_1samp(samples[0], 0.0)
    else:
        found = stats.ttest_ind(second, first, equal_var=False)
    low, high = found.confidence_interval(confidence)
    deviation = np.sqrt(sum(each.var(ddof=1) for each in samples))

    return Interval(
        difference, float(low), float(high), scale, float(found.pvalue), float(deviation)
    )


def differences_of(first: Values, second: Values) -> Values:
    """Return the differences of pairs, without the noise of floating-point numbers."""
    size = float(max(np.abs(first).max(initial=0), np.abs(second).max(initial=0)))
    return _rounded(second - first, size)


def _rounded(differences: Values, size: float) -> Values:
    """Round differences to the precision of the numbers that they come from."""
    places = _DIGITS - int(np.ceil(np.log10(size))) if size else 0
    rounded: Values = np.round(differences, places) if size and abs(places) < 300 else differences
    return rounded


def runs_for(half_width: float, deviation: float, *, paired: bool, confidence: float) -> int:
    """Return how many pairs, or runs of each group, make an interval of a difference so narrow.

    It is the smallest n, 2 or more, for which t sd / sqrt(n) is at most the half width, where t is
    the quantile of Student's distribution with n - 1 degrees of freedom (2n - 2 for groups), and
    the deviation stays as it was in the runs so far (Law 2015, Simulation Modeling and Analysis,
    9.4.1).

    Args:
        half_width: Half the width of the interval, in the unit of the measure.
        deviation: The standard deviation of the differences, as in `Interval`.
        paired: Whether they are pairs.
        confidence: Coverage of the interval, 0 to 1.
    """
    level, ratio = (1 + confidence) / 2, (deviation / half_width) ** 2

    def is_enough(number: int) -> bool:
        freedom = number - 1 if paired else 2 * (number - 1)
        return bool(stats.t.ppf(level, freedom) ** 2 * ratio <= number)

    # without estimating the deviation it would be fewer
    number: int = max(2, ceil(stats.norm.ppf(level) ** 2 * ratio))
    return next(each for each in count(number) if is_enough(each))


def wilcoxon(first: Values, second: Values) -> Tested:
    """Test pairs by Wilcoxon's signed-rank test (1945, Biometrics Bulletin 1(6)).

    Pairs without a difference are left out, as Wilcoxon did. The p-value is exact for up to 50
    pairs without ties, and for up to 14 with ties, by trying all signs. Otherwise it is that of the
    normal distribution, corrected for ties. The effect is the matched-pairs rank-biserial
    correlation: the share of the ranks of positive differences minus that of negative ones (Kerby
    2014, Comprehensive Psychology 3).
    """
    differences = differences_of(first, second)
    moved = differences[differences != 0]
    least = min(1.0, 2.0 ** (1 - first.size))
    if not moved.size:
        return Tested("Wilcoxon", 0.0, 1.0, 0.0, least)

    ranks = stats.rankdata(np.abs(moved))
    positive = float(ranks[moved > 0].sum())
    total = float(ranks.sum())
    has_ties = np.unique(ranks).size < ranks.size
    method: Any = "auto"
    if has_ties and 2**moved.size <= _MOST_ALL:
        method = stats.PermutationMethod(n_resamples=_MOST_ALL)
    elif not has_ties and moved.size <= _MOST_EXACT:
        method = "exact"

    p = float(stats.wilcoxon(moved, method=method).pvalue)

    return Tested("Wilcoxon", positive, min(1.0, p), 2 * positive / total - 1, least)


def mann_whitney(first: Values, second: Values) -> Tested:
    """Test two groups by Mann and Whitney's U (1947, Annals of Mathematical Statistics 18(1)).

    The p-value is exact for up to 50 runs per group without ties, and with ties if the groups can
    be drawn in at most 20,000 ways, by trying all of them. Otherwise it is that of the normal
    distribution, corrected for ties and continuity. The effect is Cliff's delta (1993,
    Psychological Bulletin 114(3)).
    """
    both = np.concatenate([first, second])
    ways = comb(both.size, first.size)
    # rounded together, so that equal values of both groups are ties
    places = differences_of(np.zeros_like(both), both)
    one, other = places[: first.size], places[first.size :]
    has_ties = np.unique(places).size < places.size
    method: Any = "asymptotic"
    if has_ties and ways <= _MOST_ALL:
        method = stats.PermutationMethod(n_resamples=_MOST_ALL)
    elif not has_ties and max(one.size, other.size) <= _MOST_EXACT:
        method = "exact"

    least = min(1.0, 2 / ways)
    if not np.ptp(places):
        return Tested("Mann-Whitney", one.size * other.size / 2, 1.0, 0.0, least)

    if has_ties and min(one.size, other.size) == 1:
        # scipy does not permute groups of one run, so each run takes that place in turn
        ranks = stats.rankdata(places)
        own = ranks[0] if one.size == 1 else ranks[-1]
        p = 2 * min(np.mean(ranks <= own), np.mean(ranks >= own))
        statistic = float(stats.mannwhitneyu(other, one, method="asymptotic").statistic)
    else:
        statistic, p = map(float, stats.mannwhitneyu(other, one, method=method))
    effect = 2 * statistic / (one.size * other.size) - 1

    return Tested("Mann-Whitney", statistic, min(1.0, float(p)), effect, least)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Correct p-values for their number by Holm's method (1979, Scandinavian J. of Stat. 6(2)).

    Args:
        p_values: The p-values of all tests. None stands for no test and does not count.
    """
    known = [p for p in p_values if p is not None]
    if not known:
        return list(p_values)

    corrected = iter(multipletests(known, method="holm")[1])

    return [None if p is None else float(next(corrected)) for p in p_values]


def band(values: Values, *, confidence: float) -> tuple[Values, Values, Values]:
    """Return the mean of runs in each round, with the ends of Student's interval.

    Args:
        values: A row per run and a column per round; NaN where there is no value.
        confidence: Coverage of the interval, 0 to 1.
    """
    number = (~np.isnan(values)).sum(axis=0)
    with warnings.catch_warnings():
        # rounds without any value have no mean, and those with one no deviation
        warnings.simplefilter("ignore", RuntimeWarning)
        mean = np.nanmean(values, axis=0)
        error = np.nanstd(values, axis=0, ddof=1) / np.sqrt(number)
        half = stats.t.ppf((1 + confidence) / 2, number - 1) * error

    return mean, mean - half, mean + half


def _scale(first: Values, second: Values) -> float | None:
    if min(first.size, second.size) < 2:
        return None

    scale = float(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2))
    size = max(abs(float(first.mean())), abs(float(second.mean())))

    return scale if scale > 10.0**-_DIGITS * size else None
