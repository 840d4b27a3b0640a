"""The statistics of a comparison, by scipy and statsmodels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

Array: TypeAlias = np.ndarray[Any, Any]

LEAST_RUNS = 3
"""Fewest pairs, or runs of each group, for an interval and a test."""

_DIGITS = 12
"""Computed shares that differ only in the last bits do not vary."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A difference of means (second minus first); None if there is none.

    Args:
        difference: The difference.
        low: Lower end of its interval.
        high: Upper end.
        p: Two-sided p-value of a difference of 0, from the same distribution as the interval.
        effect: The difference in standard deviations of the runs.
    """

    difference: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    effect: float | None = None


def estimate(
    first: Sequence[float], second: Sequence[float], *, paired: bool, confidence: float
) -> Estimate:
    """Return the difference of two means with its interval and p-value.

    For pairs they are Student's (1908), of the differences, and for groups Welch's (1947,
    Biometrika 34), which do not assume equal variances. There are none for fewer than `LEAST_RUNS`,
    or if nothing varies. The effect is Cohen's d_av, in units of sqrt((s1^2 + s2^2) / 2) (Cumming
    2012, Understanding the New Statistics), which does not depend on how the runs are paired.

    Args:
        first: The values of the first group.
        second: The values of the second group; for pairs, in the same order.
        paired: Whether they are pairs.
        confidence: Coverage of the interval, 0 to 1.
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    difference = float(other.mean() - one.mean())
    unit = _unit([*one, *other])
    one, other = one / unit, other / unit
    samples = [other - one] if paired else [other, one]
    if min(map(len, samples)) < LEAST_RUNS:
        return Estimate(difference)

    scale = float(np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / 2))
    effect = difference / unit / scale if _vary(one, other) else None
    if not _vary(*samples):
        return Estimate(difference, effect=effect)

    test = (
        stats.ttest_1samp(*samples, 0.0) if paired else stats.ttest_ind(*samples, equal_var=False)
    )
    low, high = test.confidence_interval(confidence)
    return Estimate(difference, unit * float(low), unit * float(high), float(test.pvalue), effect)


def _vary(*samples: Array) -> bool:
    """Return whether values of a sample differ, by more than their last bits."""
    return any(np.ptp(np.round(each, _DIGITS)) for each in samples)


def _unit(values: Sequence[float]) -> float:
    """Return the power of 2 by which all values are at most 1, as their squares may be 0 or inf."""
    return float(np.ldexp(1.0, np.frexp(np.abs(values).max())[1]))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for all of them that there are (Holm 1979)."""
    present = [each for each in p_values if each is not None]
    corrected = iter(multipletests(present, method="holm")[1] if present else ())
    return [None if each is None else float(next(corrected)) for each in p_values]


def band(values: Sequence[float], confidence: float) -> tuple[float, float | None, float | None]:
    """Return a mean and Student's interval of it, which fewer than `LEAST_RUNS` values lack."""
    mean = float(np.mean(values))
    if len(values) < LEAST_RUNS:
        return mean, None, None

    unit = _unit(values)
    half = unit * stats.sem(np.divide(values, unit))
    half *= stats.t.ppf((1 + confidence) / 2, len(values) - 1)
    return mean, float(mean - half), float(mean + half)
