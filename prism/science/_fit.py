"""Fit parameters of a world to published figures, by a batch of samples.

This is approximate Bayesian computation: points fill the bounds evenly, those whose figures are
nearest to the targets are kept, and their parameters are regressed on the differences that remain
(Beaumont, Zhang and Balding 2002, Genetics 162(4)), on a logit scale, so that none leaves its
bounds. Coordinates go from 0 to 1, evenly between the bounds of a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.stats import qmc

from prism.errors import InputError
from prism.randomness import RandomStream
from prism.science._batch import BatchObserver, Carrying, begin_batch, read_batch
from prism.science._batch_folder import PLAN_NAME, BatchFolder
from prism.science._bounds import sampled, values_at
from prism.science._plan import Plan
from prism.science._plan_file import bound_of
from prism.science.batch_tables import Batch, table_of, write_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

Array: TypeAlias = np.ndarray[Any, Any]

DEFAULT_SAMPLES = 400
KEPT = 0.2
"""Share of the samples that are near enough."""

_TABLE = "fit"
_LEAST_SAMPLES = 20
_AT_BOUND = 0.005
"""Share of the bounds that counts as nothing."""

_EDGE = 1e-6
"""How near a coordinate may come to 0 and 1, whose logits are infinite."""

_INTERVAL = (0.05, 0.5, 0.95)
_OF_TARGETS = ("measure", "statistic", "arm", "round", "value", "spread", "held_out", "source")
_DEFAULTS = {"statistic": "mean", "held_out": False}


@dataclass(frozen=True)
class Fit:
    """A fit in its folder.

    Args:
        batch: The batch of its runs.
        parameters: The parameters that are fitted.
        seed: Seed for drawing the samples.
        points: Each sample as a point of the unit cube, with a coordinate per parameter.
    """

    batch: Batch
    parameters: tuple[str, ...]
    seed: int
    points: tuple[tuple[float, ...], ...] = field(repr=False)

    def estimates(self) -> DuckDBPyRelation:
        """Return a row per parameter.

        Columns are ``parameter``, ``least`` and ``most`` (its bounds), ``median``, ``low`` and
        ``high`` (the 90 % interval of the posterior), ``width`` (of the interval, as a share of the
        bounds on their scale), and ``remark``: why the interval is not to be trusted, if the
        estimate lies on a bound, targets are missed, or the samples do not differ; else empty.
        """
        missed, kept = self._missed(), self.kept
        rows = []
        for column, name in enumerate(self.parameters):
            bound = bound_of(self.batch.plan.data["bounds"][name])
            ends = quantiles(kept.points[:, column], kept.weights, _INTERVAL)
            at_ends = values_at(self.batch.plan, (name,), [[end] for end in ends])
            low, median, high = (float(each[name]) for each in at_ends)
            bounds = {"least": float(bound.least), "most": float(bound.most)}
            interval = {"median": median, "low": low, "high": high, "width": ends[2] - ends[0]}
            remark = "; ".join(filter(None, (remark_on(*ends), missed)))
            rows.append({"parameter": name, **bounds, **interval, "remark": remark})

        return table_of(rows)

    def targets(self) -> DuckDBPyRelation:
        """Return a row per target, including those held out, with the figures of the fit.

        Columns are ``measure``, ``statistic``, ``arm``, ``round``, ``value``, ``spread``,
        ``held_out`` and ``source``, as the plan has them; ``mean``, ``low`` and ``high`` (the
        90 % interval) of the samples that are kept; and ``within``, whether the value lies in that
        interval, null if no sample has the figure.
        """
        return table_of(self._target_rows())

    def _target_rows(self) -> list[dict[str, Any]]:
        figures = self._figures[self.kept.indices]
        rows = []
        for target, values in zip(self.batch.plan.data["target"], figures.T, strict=True):
            mean, low, high = _mean_and_ends(values, self.kept.weights)
            columns = {name: {**_DEFAULTS, **target}.get(name) for name in _OF_TARGETS}
            within = None if np.isnan(mean) else low <= target["value"] <= high
            rows.append({**columns, "mean": mean, "low": low, "high": high, "within": within})

        return rows

    def _missed(self) -> str:
        """Return how many of the fitted targets are missed; empty if none is."""
        fitted = [row for row in self._target_rows() if not row["held_out"]]
        missed = sum(not row["within"] for row in fitted)
        if not missed:
            return ""
        are = "is" if missed == 1 else "are"
        return (
            f"{missed} of {len(fitted)} fitted targets {are} missed, so the interval says which "
            "values come nearest, not which are true"
        )

    def write(self) -> None:
        """Write ``estimates`` and ``targets`` into the folder, as CSV and Parquet.

        Raises:
            OSError: If they cannot be written.
        """
        tables = {"estimates": self.estimates(), "targets": self.targets()}
        write_tables(self.batch.folder, tables)

    @cached_property
    def kept(self) -> Posterior:
        """The samples that are kept.

        Raises:
            InputError: If fewer than two samples have complete runs.
        """
        targets = self.batch.plan.data["target"]
        fitted = [index for index, each in enumerate(targets) if not each.get("held_out")]
        posterior = posterior_of(
            np.array(self.points),
            self._figures[:, fitted],
            *(np.array([targets[each][name] for each in fitted]) for name in ("value", "spread")),
            seed=self.seed,
            size=max(_LEAST_SAMPLES, round(KEPT * len(self.points))),
        )
        if len(posterior.indices) < 2:
            failed = [f"; {run.name} failed: {run.error}" for run in self.batch.failed]
            counts = f"{len(posterior.indices)} of {len(self.points)} samples are complete"
            raise InputError(f"{counts}{''.join(failed[:1])}", path=self.batch.folder)
        return posterior

    @cached_property
    def _figures(self) -> Array:
        """The figure of each sample (row) for each target (column); NaN if a run of it failed."""
        targets = self.batch.plan.data["target"]
        return np.array([_column(self.batch, target) for target in targets]).T


def fit(
    plan: Plan | Path | str,
    folder: Path | str,
    *,
    samples: int = DEFAULT_SAMPLES,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    observer: BatchObserver | None = None,
) -> Fit:
    """Find parameters whose runs match given figures.

    The plan has ``bounds``, which are flat priors (of logarithms, on a logarithmic scale), and
    ``target``, the figures. Each sample is run in every arm with its own seeds, as many as the plan
    has, and its figures are means over these runs. The samples fill the bounds evenly; the nearest
    fifth is kept, and adjusted by regression (approximate Bayesian computation).

    Args:
        plan: The plan, or its file.
        folder: Where to keep the batch of its runs.
        samples: The number of samples, at least 20.
        seed: Seed for drawing the samples.
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead; see `batch`.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If the plan has no bounds or targets or varies anything else, if a run is
            impossible, or if no run has the measure of a target.
        MissingExtraError: If scipy is not installed.
    """
    plan = Plan.of(plan)
    names = sampled(plan, ("vary",))
    _require_targets(plan)
    if samples < _LEAST_SAMPLES:
        raise InputError(f"must be {_LEAST_SAMPLES} or more", field="samples")

    points = even_points(samples, len(names), seed).tolist()
    about = {"seed": seed, "parameters": list(names), "points": points}
    more = {"seeds_by_sample": True, _TABLE: about}
    how = Carrying(workers, executor, observer or BatchObserver())
    values = values_at(plan, names, points)
    begin_batch(plan, Path(folder), how, keep="tables", samples=values, more=more)
    result = read_fit(folder)
    result.write()
    return result


def _require_targets(plan: Plan) -> None:
    """Refuse targets that no fit can have."""
    targets = plan.data.get("target", ())
    if all(each.get("held_out") for each in targets):
        problem = (
            "needs at least one [[target]] that is not held out, with a measure, a value "
            "and a spread"
        )
        raise plan.error(problem, *["target"] * bool(targets))

    arms = [arm["name"] for arm in plan.data.get("arm", ())] or [None]
    for index, each in enumerate(targets):
        if each.get("arm") not in arms:
            problem = f"is of no arm of the plan, which has {', '.join(map(str, arms))}"
            raise plan.error(problem, "target", index)
        if each.get("statistic") == "sd" and len(plan.seeds) < 2:
            raise plan.error("needs two seeds or more", "target", index, "statistic")


def read_fit(folder: Path | str) -> Fit:
    """Return the fit in a folder, complete or not; `resume_batch` completes it.

    Args:
        folder: The folder of the batch.

    Raises:
        InputError: If the folder holds no fit.
    """
    batch = read_batch(folder)
    about = BatchFolder(batch.folder).read().get(_TABLE)
    if about is None:
        raise InputError("holds a batch that is not a fit: use prism batch", path=batch.folder)

    points = tuple(tuple(point) for point in about["points"])
    return Fit(batch, tuple(about["parameters"]), about["seed"], points)


def _mean_and_ends(values: Array, weights: Array) -> tuple[float, float, float]:
    """Return the mean of a target's figures and their interval; NaN if there are none.

    A figure held out may be missing where the fitted ones are not, as that of another arm.
    """
    present = ~np.isnan(values)
    if not present.any():
        return np.nan, np.nan, np.nan

    shares = weights[present] / weights[present].sum()
    low, _, high = quantiles(values[present], shares, _INTERVAL)
    return float(shares @ values[present]), low, high


def remark_on(low: float, median: float, high: float) -> str:
    """Return what is wrong with an interval, given as shares of the bounds; empty if nothing is."""
    if not _AT_BOUND <= median <= 1 - _AT_BOUND:
        end = "lower" if median < _AT_BOUND else "upper"
        return f"the estimate lies on its {end} bound, beyond which other values may fit better"
    return "the samples leave no spread: draw more" if high - low < _AT_BOUND else ""


def _column(batch: Batch, target: Mapping[str, Any]) -> list[float]:
    """Return a target's statistic of its measure in each sample; NaN where a run has failed.

    Raises:
        InputError: If no run has such a measure.
    """
    from pandas.api.types import is_numeric_dtype

    name, number = str(target["measure"]), target.get("round")
    samples = dict.fromkeys(
        run.configuration.name for run in batch.runs if run.configuration.arm == target.get("arm")
    )
    if not any(run.status == "complete" for run in batch.runs):
        return [np.nan] * len(samples)

    table = (batch.results() if number is None else batch.rounds()).df()
    rows = table if number is None else table[table["round"] == number]
    if name not in rows or not is_numeric_dtype(rows[name]) or rows.empty:
        problem = f"is not a measure of the runs; there are {', '.join(batch.outcomes())}"
        raise InputError(problem, path=batch.folder / PLAN_NAME, field=name)

    values = rows.dropna(subset=[name]).groupby("configuration")[name]
    figures = values.std() if target.get("statistic") == "sd" else values.mean()
    # of a sample of which a run has failed there is no figure
    whole = values.count() == len(batch.plan.seeds)
    return [float(figures[each]) if whole.get(each, False) else np.nan for each in samples]


@dataclass(frozen=True, slots=True)
class Posterior:
    """The points that are kept.

    Args:
        indices: Their indices among all points, the nearest first.
        weights: Their weights, which sum to 1; the nearest count most (Epanechnikov's kernel).
        distances: How far each is from the targets, in standard deviations of the noise.
        points: Their coordinates, adjusted to what they would be if their figures were the targets.
    """

    indices: Array
    weights: Array
    distances: Array
    points: Array


def even_points(size: int, parameters: int, seed: int) -> Array:
    """Return points that fill the unit cube evenly, a row each (Latin hypercube)."""
    points: Array = qmc.LatinHypercube(parameters, rng=_dice(seed, "points")).random(size)
    return points


def posterior_of(
    points: Array, figures: Array, values: Array, spreads: Array, *, seed: int, size: int
) -> Posterior:
    """Return the posterior of the parameters, given figures that are known up to a normal error.

    To each simulated figure an error of that size is added (Wilkinson 2013, Statistical
    Applications in Genetics and Molecular Biology 12(2)).

    Args:
        points: All points, a row each.
        figures: Their figures, a column per target; NaN if a run failed.
        values: The targets.
        spreads: The standard error of each target: how far the true figure may lie from it.
        seed: Seed of the fit.
        size: How many points to keep.
    """
    observed = figures + _dice(seed, "errors").standard_normal(figures.shape) * spreads
    off = (observed - values) / noise_of(points, figures, spreads)
    distances = np.sqrt((off**2).sum(axis=1))
    # a point that failed is farther than any other
    order = np.argsort(np.where(np.isnan(distances), np.inf, distances), kind="stable")
    indices = order[np.isfinite(distances[order])][:size]

    reached = distances[indices]
    near = 1 - (reached / (reached.max(initial=0.0) * (1 + _EDGE) or 1.0)) ** 2
    moved = _adjusted(points[indices], off[indices], near)
    return Posterior(indices, near / near.sum(), reached, moved)


def noise_of(points: Array, figures: Array, spreads: Array) -> Array:
    """Return the variation of each figure between runs with equal parameters, at least its spread.

    This is the residual of a quadratic regression on the parameters over all points; of the mean if
    there are too few of them. A figure that depends mostly on the parameters counts for more than
    one that is mostly chance.
    """
    complete = ~np.isnan(figures).any(axis=1)
    pairs = [one * other for one, other in combinations_with_replacement(points.T, 2)]
    design = np.column_stack([np.ones(len(points)), points, *pairs])[complete]
    if len(design) <= design.shape[1]:
        design = design[:, :1]

    fitted = design @ np.linalg.lstsq(design, figures[complete], rcond=None)[0]
    free = max(len(design) - design.shape[1], 1)
    rest = ((figures[complete] - fitted) ** 2).sum(axis=0) / free
    noise = np.maximum(np.sqrt(rest), spreads)
    return np.where(noise > 0, noise, 1.0)


def _adjusted(points: Array, off: Array, weights: Array) -> Array:
    """Return points as they would be if their figures were the targets, by weighted regression."""
    kept = np.clip(points, _EDGE, 1 - _EDGE)
    logits = np.log(kept / (1 - kept))
    design = np.column_stack([np.ones(len(off)), off])
    roots = np.sqrt(weights)[:, None]
    slopes = np.linalg.lstsq(design * roots, logits * roots, rcond=None)[0][1:]
    return np.asarray(1 / (1 + np.exp(-np.clip(logits - off @ slopes, -40, 40))))


def quantiles(values: Array, weights: Array, levels: Sequence[float]) -> list[float]:
    """Return quantiles of values that have weights."""
    order = np.argsort(values)
    # each value is in the middle of its weight
    reached = np.cumsum(weights[order]) - weights[order] / 2
    return [float(each) for each in np.interp(levels, reached, values[order])]


def _dice(seed: int, key: str) -> np.random.Generator:
    return np.random.default_rng(RandomStream(seed, "fit", key).index(2**53))
