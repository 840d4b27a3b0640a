"""Sensitivity analysis: on which parameters the outcomes depend, by a batch of samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import SALib.analyze.morris
import SALib.analyze.sobol
import SALib.sample.morris
import SALib.sample.sobol

from prism.errors import InputError
from prism.science._batch import BatchObserver, Carrying, begin_batch, read_batch
from prism.science._batch_folder import PLAN_NAME, BatchFolder, Keep
from prism.science._bounds import sampled, values_at
from prism.science._plan import Plan
from prism.science.batch_tables import Batch, table_of, write_tables

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

SensitivityMethod = Literal["morris", "sobol"]
"""How a sensitivity analysis samples parameters."""

DEFAULT_SAMPLES = 16
_TABLE = "sensitivity"
_INDICES: Mapping[SensitivityMethod, Mapping[str, str | None]] = {
    "morris": {"mu": None, "mu_star": "mu_star_conf", "sigma": None},
    "sobol": {"S1": "S1_conf", "ST": "ST_conf"},
}
"""SALib's name for the half width of the interval of each index that has one."""

_SAMPLE = {"morris": SALib.sample.morris.sample, "sobol": SALib.sample.sobol.sample}
_ANALYSE = {"morris": SALib.analyze.morris.analyze, "sobol": SALib.analyze.sobol.analyze}
_SETTINGS: Mapping[SensitivityMethod, Mapping[str, Any]] = {
    # four levels, as in Campolongo et al. (2007)
    "morris": {"num_levels": 4},
    "sobol": {"calc_second_order": False},
}


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A sensitivity analysis in its folder.

    Args:
        batch: The batch of its runs.
        method: ``morris`` or ``sobol``.
        parameters: The parameters that were sampled.
        points: Each sample as a point of the unit cube, with a coordinate per parameter.
    """

    batch: Batch
    method: SensitivityMethod
    parameters: tuple[str, ...]
    points: tuple[tuple[float, ...], ...] = field(repr=False)

    def outcomes(self) -> dict[str, list[float]]:
        """Return the outcomes to explain: for each sample the mean over its seeds.

        These are the plan's ``measures``. Without those, they are the measures of the world that
        are numbers in every run, or if there are none, the totals of the runs.

        Raises:
            InputError: If a run is not complete, or has no number for a measure of the plan.
        """
        self._require_complete()
        table = self.batch.results().df()
        wanted = self.batch.plan.data.get("measures", ())
        whole = [name for name in self.batch.outcomes() if _is_whole(table, name)]
        for name in wanted:
            if not _is_whole(table, name):
                problem = (
                    "has no number in some run, so it cannot be explained: remove it from the "
                    f"plan's measures, and resume; there are {', '.join(whole)}"
                )
                path = self.batch.folder / PLAN_NAME
                raise InputError(problem, path=path, field=f"measures.{name}")
        names = [*wanted] or whole
        means = table.groupby("configuration", sort=False)[names].mean()
        return {name: [float(value) for value in means[name]] for name in names}

    def indices(self) -> DuckDBPyRelation:
        """Return the indices: one row per outcome, index and parameter.

        Columns are ``outcome``, ``index``, ``parameter``, ``value`` and ``interval``, the half
        width of the 95 % confidence interval by bootstrap.

        For each parameter, Morris (1991) gives the mean ``mu`` of its elementary effects, the mean
        ``mu_star`` of their absolute values (Campolongo et al. 2007) and their standard deviation
        ``sigma``, in units of the outcome for the whole range of the parameter. Sobol (2001) gives
        the share of the outcome's variance due to a parameter alone (``S1``), and including all its
        interactions (``ST``; Saltelli et al. 2010). They are missing if the outcome is the same in
        all samples.

        Raises:
            InputError: If a run is not complete.
            MissingExtraError: If SALib is not installed.
        """
        return table_of([*self._rows()])

    def _rows(self) -> Iterator[dict[str, Any]]:
        for outcome, values in self.outcomes().items():
            analysed = _analyse(self, values)
            for index, interval in _INDICES[self.method].items():
                for column, name in enumerate(self.parameters):
                    half = None if interval is None else _or_none(analysed[interval][column])
                    value = {"value": _or_none(analysed[index][column]), "interval": half}
                    yield {"outcome": outcome, "index": index, "parameter": name, **value}

    def write(self) -> None:
        """Write the indices into the folder, as CSV and as Parquet.

        Raises:
            InputError: If a run is not complete.
        """
        write_tables(self.batch.folder, {_TABLE: self.indices()})

    def _require_complete(self) -> None:
        left = [run for run in self.batch.runs if run.status != "complete"]
        if left:
            why = f" ({left[0].error})" if left[0].error else ""
            raise InputError(
                f"{len(left)} of {len(self.batch.runs)} runs are not complete, such as "
                f"{left[0].name}{why}, but indices need them all: resume it",
                path=self.batch.folder,
            )


def sensitivity(
    plan: Plan | Path | str,
    folder: Path | str,
    *,
    method: SensitivityMethod = "morris",
    samples: int = DEFAULT_SAMPLES,
    keep: Keep = "tables",
    workers: int | None = None,
    executor: Executor | None = None,
    observer: BatchObserver | None = None,
) -> Sensitivity:
    """Find out on which parameters the outcomes of a plan's runs depend.

    The parameters in the plan's ``bounds`` are sampled by SALib; each sample is run with every seed
    of the plan, as a batch, which can be resumed. A parameter takes only whole numbers if its
    default and its bounds are whole.

    Args:
        plan: The plan, or its file.
        folder: Where to keep the batch.
        method: ``morris``, which screens many parameters with few runs (``samples`` trajectories,
            each with one run more than there are parameters), or ``sobol``, which decomposes the
            variance (``samples`` times (2 + the number of parameters) runs).
        samples: The number that ``method`` refers to; for Sobol a power of 2.
        keep: What to keep of each run; see `batch`.
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead; see `batch`.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If the plan has no bounds or varies anything else, or if a run is impossible.
        MissingExtraError: If SALib is not installed.
    """
    plan = Plan.of(plan)
    names = sampled(plan, ("vary", "arm"))
    if samples < 2 or (method == "sobol" and samples & (samples - 1)):
        wanted = "2 or more" if method == "morris" else "a power of 2"
        raise InputError(f"must be {wanted} for {method}, got {samples}", field="samples")

    # problems that do not involve bounds are reported before thousands of samples are drawn
    plan.check(plan.samples([{}]))
    drawn = _SAMPLE[method](_problem(names), samples, seed=_seed_of(plan), **_SETTINGS[method])
    points = [[float(each) for each in point] for point in drawn]
    more = {_TABLE: {"method": method, "parameters": [*names], "points": points}}
    values = values_at(plan, names, points)
    how = Carrying(workers, executor, observer or BatchObserver())
    begin_batch(plan, Path(folder), how, keep=keep, samples=values, more=more)
    result = read_sensitivity(folder)
    # if runs failed, there is a table of the failures and none of indices
    if result.batch.is_complete:
        result.write()
    return result


def read_sensitivity(folder: Path | str) -> Sensitivity:
    """Return the sensitivity analysis in a folder; `resume_batch` completes it.

    Args:
        folder: The folder of the batch.

    Raises:
        InputError: If the folder holds no sensitivity analysis.
    """
    described = BatchFolder(Path(folder)).read().get(_TABLE)
    if described is None:
        problem = "holds a batch that is not a sensitivity analysis: use prism batch"
        raise InputError(problem, path=folder)

    points = tuple(tuple(point) for point in described["points"])
    parameters = tuple(described["parameters"])
    return Sensitivity(read_batch(folder), described["method"], parameters, points)


def _seed_of(plan: Plan) -> int:
    # SALib treats a seed of 0 as no seed, and would draw other intervals each time
    return abs(plan.seeds[0]) % 2**32 or 2**32 - 1


def _analyse(result: Sensitivity, values: Sequence[float]) -> Mapping[str, Any]:
    inputs = [np.array(result.points)] if result.method == "morris" else []
    settings = {**_SETTINGS[result.method], "seed": _seed_of(result.batch.plan)}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # for an outcome that is always the same
        warnings.simplefilter("ignore")
        problem = _problem(result.parameters)
        analyse = _ANALYSE[result.method]
        return dict(analyse(problem, *inputs, np.array(values), conf_level=0.95, **settings))


def _problem(names: Sequence[str]) -> dict[str, Any]:
    return {"num_vars": len(names), "names": [*names], "bounds": [[0.0, 1.0]] * len(names)}


def _or_none(value: float) -> float | None:
    """Return a number; None for NaN."""
    return float(value) if value == value else None


def _is_whole(table: Any, name: str) -> bool:
    """Return whether a column has a number in every row."""
    from pandas.api.types import is_numeric_dtype

    return name in table and is_numeric_dtype(table[name]) and not table[name].isna().any()
