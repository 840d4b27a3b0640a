"""The statistics of a comparison, by scipy and statsmodels, adapted to few runs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import ceil, comb, nan
from typing import Any, Literal, TypeAlias

from prism.science._arrays import Array, np
from prism.science._libraries import library

stats = library("scipy.stats")
multipletests = library("statsmodels.stats.multitest").multipletests

Values: TypeAlias = Array
Counts: TypeAlias = Array
TestName: TypeAlias = Literal["Wilcoxon", "Mann-Whitney", "Kolmogorov-Smirnov"]

RESAMPLES = 9_999
"""Number of bootstrap samples, and of permutations if there are too many to try all."""

_MOST_ALL = 20_000
"""Largest number of permutations that are all tried."""

_BAND_SAMPLES = 999

_MOST_EXACT = 50
"""Most runs per group for which the exact distribution without ties is tabulated."""

# Differences of computed shares that differ only in the last bits would count as distinct.
_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Tested:
    """The outcome of a test.

    Args:
        test: Its name.
        statistic: Its statistic: W+ (the sum of the ranks of positive differences), U of the second
            group, or the greatest distance D.
        p: Its two-sided p-value.
        effect: Its effect size: the matched-pairs rank-biserial correlation, Cliff's delta, or D.
        superiority: Probability that a run of the second group has more, where ties count one half;
            for pairs, within a pair. None for distributions.
        least_p: The smallest p-value that is possible with this number of runs.
    """

    test: TestName
    statistic: float
    p: float
    effect: float
    superiority: float | None
    least_p: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A difference of means (second minus first) and its interval; None if there is none.

    Args:
        difference: The difference.
        low: Lower end of the interval.
        high: Upper end.
        scale: The standard deviation that standardises the difference; None if all runs of each
            group are the same.
    """

    difference: float
    low: float | None
    high: float | None
    scale: float | None


@dataclass(frozen=True, slots=True)
class Student:
    """Student's interval and test of a difference of means; None if there is none.

    Args:
        t_low: Lower end of the interval.
        t_high: Upper end.
        t_p: Two-sided p-value of a difference of 0.
        deviation: Standard deviation of the differences of pairs; of groups, that of the difference
            between two single runs, sqrt(s₁² + s₂²).
    """

    t_low: float | None = None
    t_high: float | None = None
    t_p: float | None = None
    deviation: float | None = None


def as_values(values: Sequence[Any]) -> Values:
    """Return numbers, or rows of them, as an array."""
    return np.asarray(values, dtype=float)


def as_counts(counts: Sequence[Mapping[float, int]], values: Sequence[float]) -> Counts:
    """Return how often each value occurs in each run: a row per run, a column per value."""
    return np.asarray([[run.get(value, 0) for value in values] for run in counts], dtype=np.int64)


def interval(
    first: Values, second: Values, *, paired: bool, confidence: float, resamples: int, seed: int
) -> Interval:
    """Return the difference of two means with its bootstrap interval.

    The interval is bias-corrected and accelerated (BCa; Efron 1987, Journal of the American
    Statistical Association 82(397)). It draws pairs, or else runs within each group. With few runs
    it would be too narrow, so its level is expanded, just as Student's t and the divisor of the
    variance widen intervals of normal values (Hesterberg 2015, The American Statistician 69(4)).
    The scale is sqrt((s1^2 + s2^2) / 2), with which the difference is Cohen's d_av (Cumming 2012,
    Understanding the New Statistics); it does not depend on how the runs are paired.

    Args:
        first: The values of the first group.
        second: The values of the second group; for pairs, in the same order.
        paired: Whether they are pairs.
        confidence: Coverage of the interval, 0 to 1.
        resamples: Bootstrap samples.
        seed: Seed of their random numbers.
    """
    difference, scale = float(second.mean() - first.mean()), _scale(first, second)
    if min(first.size, second.size) < 2:
        return Interval(difference, None, None, scale)

    samples = [differences_of(first, second)] if paired else [first, second]
    if not any(np.ptp(each) for each in samples):
        return Interval(difference, difference, difference, scale)

    sides = [(values, np.ones(values.size)) for values in (first, second)]
    low, high = _ratio_ends(sides, paired, confidence, resamples, seed)

    return Interval(difference, low, high, scale)


def pooled_interval(
    first: Counts,
    second: Counts,
    values: Values,
    *,
    paired: bool,
    confidence: float,
    resamples: int,
    seed: int,
) -> Interval:
    """Return the difference of the means of all values, with its bootstrap interval.

    Values of one run depend on each other, so whole runs or pairs are drawn, and each mean is a
    ratio of two sums over runs. Apart from that, the interval is that of `interval`, with its level
    expanded by the linearised ratios (Davison and Hinkley 1997, Bootstrap Methods and their
    Application, 2.7.2). It has no scale, since the distributions are not those of runs.

    Args:
        first: Counts of each value (columns) in each run (rows) of the first group.
        second: The counts of the second group; for pairs, in the same order.
        values: The values.
        paired: Whether they are pairs.
        confidence: Coverage of the interval, 0 to 1.
        resamples: Bootstrap samples.
        seed: Seed of their random numbers.
    """
    sides = [(counts @ values, counts.sum(axis=1)) for counts in (first, second)]

    means = [float(sums.sum() / totals.sum()) for sums, totals in sides]
    difference = means[1] - means[0]
    if min(map(len, (first, second))) < 2:
        return Interval(difference, None, None, None)

    return Interval(difference, *_ratio_ends(sides, paired, confidence, resamples, seed), None)


def _ratio_ends(
    sides: Sequence[tuple[Any, Any]], paired: bool, confidence: float, resamples: int, seed: int
) -> tuple[float | None, float | None]:
    """Return the ends of the interval of a difference of two ratios; None if nothing varies.

    Args:
        sides: For each group, the sums of its runs, and the number of values in each sum.
        paired: As for `interval`.
        confidence: As for `interval`.
        resamples: As for `interval`.
        seed: As for `interval`.
    """
    means = [sums.sum() / totals.sum() for sums, totals in sides]
    linear = [
        as_values((sums - mean * totals) / totals.mean())
        for (sums, totals), mean in zip(sides, means, strict=True)
    ]
    samples = [linear[1] - linear[0]] if paired else linear
    if not any(np.ptp(sample) for sample in samples):
        return None, None

    size = float(max(map(abs, means)))

    def mean(side: int, runs: Any, axis: int) -> Any:
        sums, totals = sides[side]
        drawn = runs.astype(int)
        return sums[drawn].sum(axis=axis) / np.maximum(1, totals[drawn].sum(axis=axis))

    def between(other: Any, one: Any, axis: int = -1) -> Any:
        # samples count as equal to the runs even if they differ in the last bits
        return _rounded(mean(1, other, axis) - mean(0, one, axis), size)

    level = _expanded(confidence, samples)
    one, other = (np.arange(len(sums)) for sums, _ in sides)
    if not paired:
        return _ends((other, one), between, level, resamples, seed)

    return _ends((one,), lambda runs, axis: between(runs, runs, axis), level, resamples, seed)


def _ends(
    samples: Sequence[Any], statistic: Any, level: float, resamples: int, seed: int
) -> tuple[float, float]:
    """Return the ends of a bootstrap interval: BCa, or the percentiles where that is undefined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        found = stats.bootstrap(
            samples,
            statistic,
            method="BCa",
            n_resamples=resamples,
            confidence_level=level,
            vectorized=True,
            rng=np.random.default_rng(seed),
        )

    low, high = found.confidence_interval
    if np.isnan(low) or np.isnan(high):
        tail = (1 - level) / 2
        low, high = np.quantile(found.bootstrap_distribution, (tail, 1 - tail))

    return float(low), float(high)


def differences_of(first: Values, second: Values) -> Values:
    """Return the differences of pairs, without the noise of floating-point numbers."""
    size = float(max(np.abs(first).max(initial=0), np.abs(second).max(initial=0)))
    return _rounded(second - first, size)


def _rounded(differences: Values, size: float) -> Values:
    """Round differences to the precision of the numbers that they come from."""
    places = _DIGITS - int(np.ceil(np.log10(size))) if size else 0
    rounded: Values = np.round(differences, places) if size and abs(places) < 300 else differences
    return rounded


def student(first: Values, second: Values, *, paired: bool, confidence: float) -> Student:
    """Return Student's interval of a difference of means, and its p-value.

    For pairs it is that of the differences (Student 1908), and for groups it is Welch's (1947,
    Biometrika 34), which does not assume equal variances. There is none for a single run, or if
    nothing varies.

    Args:
        first: The values of the first group.
        second: The values of the second group; for pairs, in the same order.
        paired: Whether they are pairs.
        confidence: Coverage of the interval, 0 to 1.
    """
    samples = [differences_of(first, second)] if paired else [first, second]
    if min(map(len, samples)) < 2 or not any(np.ptp(each) for each in samples):
        return Student()

    if paired:
        found = stats.ttest_1samp(samples[0], 0.0)
    else:
        found = stats.ttest_ind(second, first, equal_var=False)
    low, high = found.confidence_interval(confidence)
    deviation = np.sqrt(sum(each.var(ddof=1) for each in samples))

    return Student(float(low), float(high), float(found.pvalue), float(deviation))


def runs_for(half_width: float, deviation: float, *, paired: bool, confidence: float) -> int:
    """Return how many pairs, or runs of each group, make an interval of a difference so narrow.

    It is the smallest n, 2 or more, for which t sd / sqrt(n) is at most the half width, where t is
    the quantile of Student's distribution with n - 1 degrees of freedom (2n - 2 for groups), and
    the deviation stays as it was in the runs so far (Law 2015, Simulation Modeling and Analysis,
    9.4.1).

    Args:
        half_width: Half the width of the interval, in the unit of the measure.
        deviation: The standard deviation of the differences, as in `Student`.
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
    superiority = float(np.mean((differences > 0) + 0.5 * (differences == 0)))
    least = min(1.0, 2.0 ** (1 - first.size))
    if not moved.size:
        return Tested("Wilcoxon", 0.0, 1.0, 0.0, superiority, least)

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

    return Tested("Wilcoxon", positive, min(1.0, p), 2 * positive / total - 1, superiority, least)


def mann_whitney(first: Values, second: Values) -> Tested:
    """Test two groups by Mann and Whitney's U (1947, Annals of Mathematical Statistics 18(1)).

    The p-value is exact for up to 50 runs per group without ties, and with ties if the groups can
    be drawn in at most 20,000 ways, by trying all of them. Otherwise it is that of the normal
    distribution, corrected for ties and continuity. The effect is Cliff's delta (1993,
    Psychological Bulletin 114(3)), and ``superiority`` the common-language effect size (McGraw and
    Wong 1992, Psychological Bulletin 111(2)) where ties count one half (Vargha and Delaney 2000).
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
        return Tested("Mann-Whitney", one.size * other.size / 2, 1.0, 0.0, 0.5, least)

    if has_ties and min(one.size, other.size) == 1:
        # scipy does not permute groups of one run, so each run takes that place in turn
        ranks = stats.rankdata(places)
        own = ranks[0] if one.size == 1 else ranks[-1]
        p = 2 * min(np.mean(ranks <= own), np.mean(ranks >= own))
        statistic = float(stats.mannwhitneyu(other, one, method="asymptotic").statistic)
    else:
        statistic, p = map(float, stats.mannwhitneyu(other, one, method=method))
    superiority = statistic / (one.size * other.size)

    return Tested(
        "Mann-Whitney", statistic, min(1.0, float(p)), 2 * superiority - 1, superiority, least
    )


def kolmogorov_smirnov(first: Counts, second: Counts, *, paired: bool, seed: int) -> Tested:
    """Test whether two sets of runs have the same distribution, by Kolmogorov and Smirnov's D.

    D is the greatest distance between the two cumulative distributions, each of all values of its
    runs. The values of one run are not independent, so the p-value comes from permuting whole runs,
    within pairs if there are any: all permutations if there are at most 9,999, or else 9,999 random
    ones (Phipson and Smyth 2010). A single run per group leaves nothing to permute. The p-value
    then treats the values as independent (`scipy.stats.ks_2samp`), and applies only to these two
    runs.

    Args:
        first: Counts of each value (columns, rising) in each run (rows) of the first group.
        second: The counts of the second group; for pairs, in the same order.
        paired: Whether they are pairs.
        seed: Seed of the permutations.
    """
    # the indices of runs are permuted, and their counts are looked up
    counts = np.concatenate([first, second])
    reached = counts.cumsum(axis=1)
    totals = counts.sum(axis=1)

    def distance(one: Any, other: Any, axis: int = -1) -> Any:
        shares = []
        for group in (one.astype(int), other.astype(int)):
            of_all = np.maximum(1, totals[group].sum(axis=axis))
            shares.append(reached[group].sum(axis=axis - 1) / of_all[..., None])

        return np.abs(shares[0] - shares[1]).max(axis=-1)

    runs = (np.arange(len(first)), np.arange(len(first), len(counts)))
    observed = float(distance(*runs))
    ways = 2 ** len(first) if paired else comb(len(counts), len(first))
    # swapping the groups gives the same distance, unless they differ in size
    mirrored = 2 if len(first) == len(second) else 1
    least = min(1.0, max(mirrored / ways, 0.0 if ways <= RESAMPLES else 1 / (RESAMPLES + 1)))
    if len(counts) == 2:
        p, least = _p_of_single_runs(counts), 0.0
    elif min(len(first), len(second)) == 1:
        # scipy does not permute groups of one run, so each run takes that place in turn
        others = [np.delete(np.arange(len(counts)), place) for place in range(len(counts))]
        distances = distance(np.arange(len(counts))[:, None], np.array(others))
        p = float(np.mean(distances >= observed * (1 - 1e-14)))
    else:
        found = stats.permutation_test(
            runs,
            distance,
            permutation_type="samples" if paired else "independent",
            vectorized=True,
            n_resamples=RESAMPLES,
            batch=_batch(counts),
            alternative="greater",
            rng=np.random.default_rng(seed),
        )
        p = float(found.pvalue)

    return Tested("Kolmogorov-Smirnov", observed, p, observed, None, least)


def _p_of_single_runs(counts: Counts) -> float:
    """Return the p-value of two runs whose values are treated as independent."""
    values = np.arange(counts.shape[1])
    samples = [np.repeat(values, row) for row in counts]
    with warnings.catch_warnings():
        # use the asymptotic p-value if the exact one cannot be computed
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(stats.ks_2samp(*samples).pvalue)


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


def band(values: Values, *, confidence: float, seed: int) -> tuple[Values, Values, Values]:
    """Return the mean of runs in each round, with the percentiles of its bootstrap distribution.

    Args:
        values: A row per run and a column per round; NaN where there is no value.
        confidence: Coverage of the interval, 0 to 1.
        seed: Seed of the bootstrap, which draws whole runs.
    """
    drawn = np.random.default_rng(seed).integers(len(values), size=(_BAND_SAMPLES, len(values)))
    tail = (1 - confidence) / 2
    with warnings.catch_warnings():
        # rounds without any value have no mean, either
        warnings.simplefilter("ignore", RuntimeWarning)
        mean = np.nanmean(values, axis=0)
        if len(values) < 2:
            return mean, np.full_like(mean, nan), np.full_like(mean, nan)

        means = np.nanmean(values[drawn], axis=1)
        low, high = np.nanquantile(means, (tail, 1 - tail), axis=0)

    return mean, low, high


def _expanded(confidence: float, samples: Sequence[Values]) -> float:
    """Return the level at which a bootstrap interval has its nominal coverage.

    With several samples the degrees of freedom are Welch's (1947, Biometrika 34).
    """
    sizes = as_values([sample.size for sample in samples])
    variances = as_values([sample.var(ddof=1) for sample in samples])
    parts = variances / sizes
    freedom = parts.sum() ** 2 / (parts**2 / (sizes - 1)).sum()
    narrowness = np.sqrt((variances / (sizes - 1)).sum() / parts.sum())
    reach = narrowness * stats.t.ppf((1 + confidence) / 2, freedom)

    return float(2 * stats.norm.cdf(reach) - 1)


def _scale(first: Values, second: Values) -> float | None:
    if min(first.size, second.size) < 2:
        return None

    scale = float(np.sqrt((first.var(ddof=1) + second.var(ddof=1)) / 2))
    size = max(abs(float(first.mean())), abs(float(second.mean())))

    return scale if scale > 10.0**-_DIGITS * size else None


def _batch(counts: Counts) -> int:
    """Return how many permutations fit in 100 MB at a time."""
    return max(1, 12_000_000 // max(1, counts.size))
