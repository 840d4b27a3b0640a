"""Steady state: how long the beginning of a run lasts, and whether the run drifts afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from polars.selectors import numeric

from prism.errors import FieldValueError
from prism.science._arrays import columns_of
from prism.science._libraries import library

if TYPE_CHECKING:
    from prism.analysis import RunLogs

Unit = Literal["round", "tick"]

LEAST_LEFT = 10
"""Fewest batches that must be left after the burn-in."""

LEAST_TESTED = 30
"""Fewest batches for the tests; with fewer, noise can hardly be told from drift."""

MEASURES = (
    *("posts", "replies", "reshares", "likes", "views"),
    *("browsing", "silent", "gini", "transitions", "timeouts", "decisions"),
)
"""Measures that `steady_state` examines by default, besides a world's own."""

_BATCH: Mapping[Unit, int] = {"round": 1, "tick": 5}
_DECIDED = 0.05
_OF_ROUNDS = ("run", "round", "agents", "agent_ticks")


@dataclass(frozen=True, slots=True)
class Steady:
    """When a series becomes steady, if at all.

    Args:
        observations: Length of the series.
        burn_in: Observations to leave out at its beginning; None if the series is too short.
        mean: Mean of the others.
        sd: Standard deviation of the others.
        adf_p: p-value of the augmented Dickey-Fuller test, whose null hypothesis is a unit root.
        kpss_p: p-value of the KPSS test, whose null hypothesis is stationarity. It is between .01
            and .1, since the test's tables end there.
        verdict: ``no drift seen``, ``drifting`` if the KPSS test rejects at .05, or ``too short``
            if fewer than 30 batches are left after the burn-in.
    """

    observations: int
    burn_in: int | None = None
    mean: float | None = None
    sd: float | None = None
    adf_p: float | None = None
    kpss_p: float | None = None
    verdict: str = "too short"


def mser(series: Sequence[float], *, batch: int = 5) -> int | None:
    """Return the number of observations to leave out at the beginning of a series.

    This is the marginal standard error rule (White 1997, Simulation 69(6)) on the means of batches:
    it chooses the length of the beginning that minimises the variance of the rest divided by the
    length of the rest. With batches of five it is MSER-5 (White, Cobb and Spratt 2000). It takes
    linear time.

    Args:
        series: The observations, in order.
        batch: Number of observations to average, 1 or more. An incomplete batch at the end is left
            out.

    Returns:
        A multiple of ``batch``. None if the series is too short: if the minimum is in its second
        half, or fewer than ten batches would be left.

    Raises:
        FieldValueError: If ``batch`` is not 1 or more.
    """
    if batch < 1:
        raise FieldValueError(f"batch must be 1 or more, got {batch}")

    means = [
        fmean(series[start : start + batch]) for start in range(0, len(series) - batch + 1, batch)
    ]
    # the variance of fewer batches could be small by chance
    cuts = len(means) - LEAST_LEFT // 2
    if cuts < 1:
        return None

    errors = _standard_errors(means)
    best = min(range(cuts), key=errors.__getitem__)
    # White's rule: a minimum in the second half means that the series has not settled
    if 2 * best > len(means) or len(means) - best < LEAST_LEFT:
        return None

    return best * batch


def steadiness(series: Sequence[float], *, batch: int = 1) -> Steady:
    """Find the part of a series that shows no drift.

    Args:
        series: The observations, in order.
        batch: As for `mser`.

    Returns:
        The burn-in by `mser`, and tests of the batches that are left: the augmented
        Dickey-Fuller test (Said and Dickey 1984) and the KPSS test (Kwiatkowski, Phillips, Schmidt
        and Shin 1992), both by statsmodels, if 30 or more are left. A drift may exist without
        being seen. A series that does not vary has no drift and no tests.

    Raises:
        FieldValueError: If ``batch`` is not 1 or more, or an observation is no finite number.
        MissingExtraError: If statsmodels is not installed, which the extra ``science`` brings.
    """
    _require_finite(series)
    library("statsmodels.tsa.stattools")
    burn_in = mser(series, batch=batch)
    if burn_in is None:
        return Steady(len(series))

    rest = [float(value) for value in series[burn_in:]]
    mean = fmean(rest)
    sd = sqrt(fmean((value - mean) ** 2 for value in rest))
    known = Steady(len(series), burn_in, mean, sd, verdict="no drift seen")
    if max(rest) == min(rest):
        return known

    means = [fmean(rest[start : start + batch]) for start in range(0, len(rest) - batch + 1, batch)]
    if max(means) == min(means):
        return known
    if len(means) < LEAST_TESTED:
        return replace(known, verdict="too short")

    return _tested(known, means)


def _require_finite(series: Sequence[float]) -> None:
    for place, value in enumerate(series):
        if not isfinite(value):
            raise FieldValueError(f"series[{place}] must be a finite number, got {value}")


def _tested(known: Steady, means: Sequence[float]) -> Steady:
    """Return what is known of a series with the tests of the means of its batches."""
    tests = library("statsmodels.tsa.stattools")
    with warnings.catch_warnings():
        # KPSS warns at the ends of its tables, which `Steady` mentions, and of a new form of
        # results
        warnings.simplefilter("ignore")
        kpss_p = _p_value(tests.kpss(means, regression="c", nlags="auto"))
        adf_p = _p_value(tests.adfuller(means, regression="c", autolag="AIC"))

    verdict = "drifting" if kpss_p < _DECIDED else known.verdict
    adf = adf_p if isfinite(adf_p) else None
    return replace(known, adf_p=adf, kpss_p=kpss_p, verdict=verdict)


def steady_state(
    logs: RunLogs,
    *,
    by: Unit = "round",
    measures: Sequence[str] | None = None,
    batch: int | None = None,
) -> pl.DataFrame:
    """Find when each measure of a run becomes steady, if at all.

    Args:
        logs: The logs, from `prism.analysis.read_log`.
        by: ``round``, where an observation is a measure of a round (`prism.analysis.run_measures`),
            or ``tick``, where it is the number of posts, replies, reshares and likes in a tick, or
            of agents in a state at its end. If agents start over in each round, ticks have a
            rhythm, which observations by round average out.
        measures: Names of the measures; by default the counts of a round (such as ``posts`` and
            ``views``) and the measures of the world, or all measures of a tick.
        batch: As for `mser`; 1 by rounds and 5 by ticks by default.

    Returns:
        A row for each run and ``measure``, with the fields of `Steady`; observations without a
        value are left out. If there are several runs, ``run`` is the first column.

    Raises:
        FieldValueError: If there is no such unit or measure, or ``batch`` is not 1 or more.
        MissingExtraError: If statsmodels or polars is not installed, which the extra ``science``
            brings.
    """
    if by not in _BATCH:
        raise FieldValueError(f"a series counts by round or by tick, not by {by!r}")

    wide = _by_round(logs) if by == "round" else _by_tick(logs)
    names = _chosen(wide, measures, MEASURES if by == "round" else ())
    size = _BATCH[by] if batch is None else batch
    rows = [
        {
            "run": run,
            "measure": name,
            **asdict(steadiness(part[name].drop_nulls().to_list(), batch=size)),
        }
        for (run,), part in wide.group_by("run", maintain_order=True)
        for name in names
        if part[name].is_not_null().any()
    ]
    keyed = {"run": pl.UInt32(), "measure": pl.String()}

    return logs.labelled(pl.DataFrame(rows, schema=keyed | columns_of(Steady)))


def _standard_errors(means: Sequence[float]) -> list[float]:
    """Return the squared standard error of the mean of the rest after each cut."""
    # Welford's recurrence (1962) from the end is exact if all remaining values are equal
    errors, mean, squares = [0.0] * len(means), 0.0, 0.0
    for place in range(len(means) - 1, -1, -1):
        value, left = means[place], len(means) - place
        off = value - mean
        mean += off / left
        squares += off * (value - mean)
        errors[place] = squares / left**2

    return errors


def _p_value(found: Any) -> float:
    # a tuple, or, from statsmodels 0.16 on, an object
    return float(found.pvalue if hasattr(found, "pvalue") else found[1])


def _by_round(logs: RunLogs) -> pl.DataFrame:
    from prism.analysis._tables.run_measures import measured

    return measured(logs).filter(pl.col("round").is_not_null())


def _by_tick(logs: RunLogs) -> pl.DataFrame:
    from prism.analysis._tables.happened import acts, what_happened
    from prism.analysis._tables.states import states_by_number

    keys = ["run", "round", "tick"]
    happened = what_happened(logs, "posts", "likes")
    states = states_by_number(logs)
    if "tick" not in states.columns:
        raise FieldValueError("the log has no ticks: a series can only count by round")

    done = acts(happened).group_by([*keys, "what"]).agg(count=pl.len())
    counts = [
        states.group_by([*keys, "state"])
        .agg(count=pl.col("agents").sum())
        .rename({"state": "what"}),
        done.cast({"count": pl.Int64}),
    ]
    tables = [each.pivot("what", index=keys, values="count", sort_columns=True) for each in counts]
    table = tables[0].join(tables[1], on=keys, how="left").sort(keys)

    return table.filter(pl.col("round") > 0).with_columns(pl.exclude(keys).fill_null(0))


def _chosen(wide: pl.DataFrame, measures: Sequence[str] | None, usual: Sequence[str]) -> list[str]:
    known = wide.drop(*_OF_ROUNDS, "tick", strict=False).select(numeric()).columns
    if measures is None:
        from prism.analysis._tables.run_measures import MEASURES as OF_RUNS

        return [name for name in known if not usual or name in usual or name not in OF_RUNS]

    unknown = [name for name in measures if name not in known]
    if unknown:
        raise FieldValueError(f"no measure {unknown[0]!r}; there are {', '.join(known)}")

    return list(measures)
