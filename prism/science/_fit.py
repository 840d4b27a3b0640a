"""Fit parameters of a world to published figures, by a batch that grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism.errors import InputError
from prism.science._abc import Population, Search, Targets, first_points, quantiles
from prism.science._arrays import Array, np
from prism.science._batch import Batch, BatchObserver, Carrying, begin_batch, go_on
from prism.science._batch import read_batch as _read_batch
from prism.science._batch_folder import PLAN_NAME, TABLES, BatchFolder, Keep
from prism.science._batch_tables import table_of, write_tables
from prism.science._bounds import sampled, values_at
from prism.science._plan import Plan
from prism.science._plan_file import bound_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

DEFAULT_SAMPLES = 200
DEFAULT_GENERATIONS = 8
LEVEL = 0.9
"""Confidence level of the intervals."""

_TABLE = "fit"
_LEAST_SAMPLES = 20
_AT_BOUND = 0.005
"""Share of the bounds that counts as nothing."""

_INTERVAL = ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
_OF_TARGETS = ("measure", "statistic", "arm", "round", "value", "spread", "held_out", "source")
_DEFAULTS = {"statistic": "mean", "held_out": False}


@dataclass(frozen=True)
class Fit:
    """A fit in its folder.

    Args:
        batch: The batch of its runs.
        parameters: The parameters that are fitted.
        seed: Seed for drawing the samples.
        samples: Samples of the first generation; each later one has half as many.
        generations: Maximum number of generations.
        points: Each sample as a point of the unit cube, with a coordinate per parameter.
        odds: The density with which each was drawn.
    """

    batch: Batch
    parameters: tuple[str, ...]
    seed: int
    samples: int
    generations: int
    points: Sequence[Sequence[float]] = field(repr=False)
    odds: Sequence[float] = field(repr=False)

    @property
    def is_complete(self) -> bool:
        """Whether all samples have been run and no generation follows."""
        is_over = all(each.status in ("complete", "failed") for each in self.batch.runs)
        return is_over and not self._search.is_to_grow

    def estimates(self) -> DuckDBPyRelation:
        """Return a row per parameter.

        Columns are ``parameter``, ``least`` and ``most`` (its bounds), ``median``, ``low`` and
        ``high`` (the 90 % interval of the posterior), ``width`` (of the interval, as a share of the
        bounds on their scale), and ``remark``: why the interval is not to be trusted, if the
        estimate lies on a bound, targets are missed, or the samples do not differ; else empty.
        """
        missed = self._missed()
        rows = []
        for place, name in enumerate(self.parameters):
            bound = bound_of(self.batch.plan.data["bounds"][name])
            ends = self._found.quantiles(place, _INTERVAL)
            points = [[end if name == each else 0.5 for each in self.parameters] for end in ends]
            low, median, high = (
                float(each[name]) for each in values_at(self.batch.plan, self.parameters, points)
            )
            remark = "; ".join(filter(None, (_remark(*ends), missed)))
            width = ends[2] - ends[0]
            bounds = {"parameter": name, "least": float(bound.least), "most": float(bound.most)}
            interval = {"median": median, "low": low, "high": high, "width": width}
            rows.append({**bounds, **interval, "remark": remark})

        return table_of(rows)

    def posterior(self) -> DuckDBPyRelation:
        """Return a row for each sample that is kept, the nearest first.

        Columns are ``sample`` (its number), ``weight`` (weights sum to 1), ``distance`` (from the
        targets, in standard deviations of the noise), and the parameters, adjusted to what they
        would be if the sample's figures were the targets.
        """
        found = self.population
        values = values_at(self.batch.plan, self.parameters, self._found.adjusted.tolist())
        samples = (found.places + 1).tolist(), found.weights.tolist(), found.distances.tolist()
        return table_of(
            [
                {"sample": sample, "weight": weight, "distance": distance}
                | {name: float(value) for name, value in each.items()}
                for sample, weight, distance, each in zip(*samples, values, strict=True)
            ]
        )

    def targets(self) -> DuckDBPyRelation:
        """Return a row per target, including those held out, with the figures of the fit.

        Columns are ``measure``, ``statistic``, ``arm``, ``round``, ``value``, ``spread``,
        ``held_out`` and ``source``, as the plan has them; ``mean``, ``low`` and ``high`` (the
        90 % interval) of the samples that are kept; and ``within``, whether the value lies in that
        interval, null if no sample has the figure.
        """
        return table_of(self._target_rows())

    def _target_rows(self) -> list[dict[str, Any]]:
        figures, weights = self._figures[self.population.places], self.population.weights
        rows = []
        for target, values in zip(self.batch.plan.data["target"], figures.T, strict=True):
            mean, low, high = _mean_and_ends(values, weights)
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
        """Write ``estimates``, ``posterior`` and ``targets`` into the folder, as CSV and Parquet.

        Raises:
            OSError: If they cannot be written.
        """
        tables = {"estimates": self.estimates(), "posterior": self.posterior()}
        write_tables(self.batch.folder, {**tables, "targets": self.targets()})

    @property
    def population(self) -> Population:
        """The samples that are kept.

        Raises:
            InputError: If fewer than two samples have complete runs.
        """
        return self._found.population

    @property
    def _found(self) -> Search:
        kept = len(self._search.population.places)
        if kept < 2:
            failed = [f"; {run.name} failed: {run.error}" for run in self.batch.failed]
            problem = f"{kept} of {len(self.points)} samples are complete{''.join(failed[:1])}"
            raise InputError(problem, path=self.batch.folder)

        return self._search

    @cached_property
    def _figures(self) -> Array:
        """The figure of each sample (row) for each target (column); NaN if a run of it failed."""
        targets = self.batch.plan.data["target"]
        return np.array([_column(self.batch, target) for target in targets]).T

    @cached_property
    def _search(self) -> Search:
        targets = self.batch.plan.data["target"]
        fitted = [place for place, each in enumerate(targets) if not each.get("held_out")]
        values, spreads = (
            np.array([targets[place][name] for place in fitted]) for name in ("value", "spread")
        )
        return Search(
            Targets(values, spreads),
            self.seed,
            self.samples,
            self.generations,
            np.array(self.points),
            np.array(self.odds),
            self._figures[:, fitted],
        )


def fit(
    plan: Plan | Path | str,
    folder: Path | str,
    *,
    samples: int = DEFAULT_SAMPLES,
    generations: int = DEFAULT_GENERATIONS,
    seed: int = 0,
    keep: Keep = TABLES,
    workers: int | None = None,
    executor: Executor | None = None,
    observer: BatchObserver | None = None,
) -> Fit:
    """Find parameters whose runs match given figures.

    The plan has ``bounds``, which are flat priors (of logarithms, on a logarithmic scale), and
    ``target``, the figures. Each sample is run in every arm with its own seeds, as many as the plan
    has, and its figures are means over these runs. The method is a sequential ABC: each generation
    draws around the nearest points of the last.

    Args:
        plan: The plan, or its file.
        folder: Where to keep the batch of its runs.
        samples: Samples of the first generation; each later one has half as many.
        generations: The most generations. The fit ends earlier if hardly any new sample is nearer.
        seed: Seed for drawing the samples.
        keep: What to keep of each run, as for `batch`.
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead; see `batch`.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If the plan has no bounds or targets or varies anything else, if a run is
            impossible, or if no run has the measure of a target.
        MissingExtraError: If scipy is not installed.
    """
    given = Plan.of(plan)
    names = sampled(given, ("vary",))
    _require_targets(given)
    if samples < _LEAST_SAMPLES or generations < 1:
        name, least = ("samples", _LEAST_SAMPLES) if generations > 0 else ("generations", 1)
        raise InputError(f"must be {least} or more", field=name)

    points = first_points(samples, len(names), seed).tolist()
    told = {"seed": seed, "samples": samples, "generations": generations}
    more = {
        "seeds_by_sample": True,
        _TABLE: {**told, "parameters": list(names), "points": points, "odds": [1.0] * samples},
    }
    values = values_at(given, names, points)
    how = Carrying(workers, executor, observer or BatchObserver(), grow=_grown)

    return _written(begin_batch(given, Path(folder), how, keep=keep, samples=values, more=more))


def _require_targets(plan: Plan) -> None:
    """Refuse targets that no fit can have."""
    targets = plan.data.get("target", ())
    if all(each.get("held_out") for each in targets):
        problem = (
            "needs at least one [[target]] that is not held out, with a measure, a value "
            "and a spread"
        )
        raise plan.source.error(problem, ("target",) if targets else ())

    arms = [arm["name"] for arm in plan.data.get("arm", ())] or [None]
    for index, each in enumerate(targets):
        if each.get("arm") not in arms:
            problem = f"is of no arm of the plan, which has {', '.join(map(str, arms))}"
            raise plan.source.error(problem, ("target", index))
        if each.get("statistic") == "sd" and len(plan.seeds) < 2:
            raise plan.source.error("needs two seeds or more", ("target", index, "statistic"))


def resume_fit(
    folder: Path | str,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    hosts: Sequence[str] = (),
    observer: BatchObserver | None = None,
) -> Fit:
    """Resume a fit that was stopped, with the same results to the byte; see `resume_batch`.

    Args:
        folder: The folder of the batch.
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead; see `batch`.
        hosts: Addresses of its servers with user names and passwords, which a batch does not keep.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If the folder holds no fit, or it cannot be resumed.
    """
    read_fit(folder)
    how = Carrying(workers, executor, observer or BatchObserver(), hosts, _grown)

    return _written(go_on(Path(folder), how))


def read_fit(folder: Path | str) -> Fit:
    """Return the fit in a folder, complete or not.

    Args:
        folder: The folder of the batch.

    Raises:
        InputError: If the folder holds no fit.
    """
    return _fit_of(_read_batch(folder))


def _fit_of(batch: Batch) -> Fit:
    told = BatchFolder(batch.folder).read().get(_TABLE)
    if told is None:
        raise InputError("holds a batch that is not a fit: use prism batch", path=batch.folder)

    return Fit(batch, **{**told, "parameters": tuple(told["parameters"])})


def _written(batch: Batch) -> Fit:
    found = _fit_of(batch)
    found.write()

    return found


def _grown(batch: Batch) -> Mapping[str, Any]:
    """Return the changes of one more generation in ``plan.json``; nothing if the fit is over."""
    found = _fit_of(batch)
    if not found._found.is_to_grow:
        return {}

    points, odds = found._found.next_points()
    told = BatchFolder(batch.folder).read()
    values = values_at(batch.plan, found.parameters, points.tolist())

    return {
        "samples": [*told["samples"], *values],
        _TABLE: {
            **told[_TABLE],
            "points": [*found.points, *points.tolist()],
            "odds": [*found.odds, *odds.tolist()],
        },
    }


def _mean_and_ends(values: Array, weights: Array) -> tuple[float, float, float]:
    """Return the mean of a target's figures and their interval; NaN if there are none.

    A figure held out may be missing where the fitted ones are not, as that of another arm.
    """
    known = ~np.isnan(values)
    if not known.any():
        return np.nan, np.nan, np.nan

    shares = weights[known] / weights[known].sum()
    low, _, high = quantiles(values[known], shares, _INTERVAL)

    return float(shares @ values[known]), low, high


def _remark(low: float, median: float, high: float) -> str:
    """Return what is wrong with an interval, given as shares of the bounds; empty if nothing is."""
    at_end = {"lower": median < _AT_BOUND, "upper": median > 1 - _AT_BOUND}
    for end in (end for end, is_there in at_end.items() if is_there):
        return f"the estimate lies on its {end} bound, beyond which other values may fit better"

    return "the samples leave no spread: draw more" if high - low < _AT_BOUND else ""


def _column(batch: Batch, target: Mapping[str, Any]) -> list[float]:
    """Return a target's statistic of its measure in each sample; NaN where a run has failed.

    Raises:
        InputError: If no run has such a measure.
    """
    name, arm = str(target["measure"]), target.get("arm")
    samples = dict.fromkeys(
        run.configuration.name for run in batch.runs if run.configuration.arm == arm
    )
    if not any(run.status == "complete" for run in batch.runs):
        return [np.nan] * len(samples)

    rows = _measured(batch, name, target.get("round")).dropna(subset=[name])
    values = rows.groupby("configuration")[name]
    figures = values.std() if target.get("statistic") == "sd" else values.mean()
    whole = values.count() == len(batch.plan.seeds)
    return [float(figures[each]) if whole.get(each, False) else np.nan for each in samples]


def _measured(batch: Batch, name: str, number: int | None) -> Any:
    """Return the rows of complete runs that have a measure, at their end or of one round.

    Raises:
        InputError: If there is none.
    """
    from pandas.api.types import is_numeric_dtype

    table = (batch.results() if number is None else batch.rounds()).df()
    if name not in table or not is_numeric_dtype(table[name]):
        problem = f"is not a measure of the runs; there are {', '.join(batch.outcomes())}"
        raise InputError(problem, path=batch.folder / PLAN_NAME, field=name)

    return table[table["status"] == "complete" if number is None else table["round"] == number]
