"""Sensitivity analysis: on which parameters the outcomes depend, by a batch of samples."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from prism.errors import InputError
from prism.science._batch import Batch, Carrying, begin_batch, go_on, read_batch
from prism.science._batch_door import BatchObserver
from prism.science._batch_folder import PLAN_NAME, BatchFolder
from prism.science._batch_tables import write_tables
from prism.science._bounds import sampled, values_at
from prism.science._libraries import library
from prism.science._plan import Plan

if TYPE_CHECKING:
    from prism.report import FigureFormat

SensitivityMethod = Literal["morris", "sobol"]

DEFAULT_SAMPLES = 16
_LEVELS = 4
"""Levels of the grid of Morris's trajectories, as in Campolongo et al. (2007)."""

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MOST_NAME = 120
"""Most characters of an outcome in the name of its figure's file."""

_CONFIDENCE = 0.95
_TABLE = "sensitivity"
_OF_INDICES = {
    **dict.fromkeys(("outcome", "index", "parameter", "other"), pl.String()),
    **dict.fromkeys(("value", "interval"), pl.Float64()),
}
_INDICES: Mapping[SensitivityMethod, Mapping[str, str | None]] = {
    "morris": {"mu": None, "mu_star": "mu_star_conf", "sigma": None},
    "sobol": {"S1": "S1_conf", "ST": "ST_conf"},
}
"""SALib's name for the half width of the interval of each index that has one."""


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
    points: tuple[tuple[float, ...], ...]

    def outcomes(self) -> dict[str, list[float]]:
        """Return the outcomes to explain: for each sample the mean over its seeds.

        These are the plan's ``measures``. Without those, they are the measures of the world that
        are numbers in every run, or if there are none, the totals of the runs.

        Raises:
            InputError: If a run is not complete, or has no number for a measure of the plan.
        """
        self._require_complete()
        table = self.batch.results()
        names = self._explained(table)
        samples = table.group_by("configuration", maintain_order=True)

        return (
            samples.agg(pl.col(names).cast(pl.Float64).mean())
            .select(names)
            .to_dict(as_series=False)
        )

    def _explained(self, table: pl.DataFrame) -> list[str]:
        """Return the columns of the results to explain."""
        wanted = self.batch.plan.data.get("measures", ())
        known = dict.fromkeys((*self.batch.outcomes(), *wanted))
        whole = [name for name in known if _is_whole(table, name)]
        if missing := [name for name in wanted if name not in whole]:
            raise self._has_no_number(missing[0], table, whole)

        # totals replace measures only if there are none
        named = wanted or self.batch.measures() or whole
        return list(filter(whole.__contains__, named))

    def indices(self) -> pl.DataFrame:
        """Return the indices: one row per outcome, index and parameter.

        Columns are ``outcome``, ``index``, ``parameter``, ``other`` (of an interaction), ``value``
        and ``interval``, the half width of the 95 % confidence interval by bootstrap.

        For each parameter, Morris (1991) gives the mean ``mu`` of its elementary effects, the mean
        ``mu_star`` of their absolute values (Campolongo et al. 2007) and their standard deviation
        ``sigma``, in units of the outcome for the whole range of the parameter. Sobol (2001) gives
        the share of the outcome's variance due to a parameter alone (``S1``), including all its
        interactions (``ST``; Saltelli et al. 2010), and due to pairs (``S2``). They are null if the
        outcome is the same in all samples.

        Raises:
            InputError: If a run is not complete.
            MissingExtraError: If SALib is not installed.
        """
        rows = [
            (outcome, *row)
            for outcome, values in self.outcomes().items()
            for row in self._indices_of(values)
        ]
        return pl.DataFrame(rows, schema=_OF_INDICES, orient="row").fill_nan(None)

    def _has_no_number(self, measure: str, table: pl.DataFrame, known: Iterable[str]) -> InputError:
        lacking = _without_number(table[measure]) if measure in table.columns else [0]
        run = table["run"][int(lacking[0])]
        problem = (
            f"has no number in {run}, so it cannot be explained: remove it from the plan's "
            f"measures, and resume; there are {', '.join(known)}"
        )
        place = self.batch.folder / PLAN_NAME
        return InputError(problem, path=place, field=f"measures.{measure}")

    def write(self) -> None:
        """Write the indices into the folder, as CSV and as Parquet.

        Raises:
            InputError: If a run is not complete.
        """
        write_tables(self.batch.folder, {_TABLE: self.indices()})

    def save_figures(self, kind: FigureFormat = "svg") -> list[Path]:
        """Draw the indices of every outcome into the folder, as ``sensitivity-OUTCOME.svg``.

        Args:
            kind: Format of the figures.

        Raises:
            InputError: If a run is not complete.
            MissingExtraError: If the drawing library is not installed.
            OSError: If they cannot be written.
        """
        from prism.report._figures.page_figures import styled
        from prism.report._figures.rendering import save_specs

        indices = self.indices()
        specs = {
            f"{_TABLE}-{_UNSAFE.sub('-', outcome)[:_MOST_NAME]}": styled(
                _figure(outcome, indices.filter(outcome=outcome).to_dicts())
            )
            for outcome in indices["outcome"].unique(maintain_order=True)
        }
        return save_specs(specs, self.batch.folder, kind)

    def _require_complete(self) -> None:
        left = [run for run in self.batch.runs if run.status != "complete"]
        if left:
            why = f" ({left[0].error})" if left[0].error else ""
            raise InputError(
                f"{len(left)} of {len(self.batch.runs)} runs are not complete, such as "
                f"{left[0].name}{why}, but indices need them all: resume it",
                path=self.batch.folder,
            )

    def _indices_of(
        self, values: Sequence[float]
    ) -> Iterator[tuple[str, str, str | None, float, float | None]]:
        found = _analyse(self.method, self.parameters, self.points, values, self._seed)
        for index, interval in _INDICES[self.method].items():
            for place, name in enumerate(self.parameters):
                half = None if interval is None else float(found[interval][place])
                yield index, name, None, float(found[index][place]), half

        if self.method == "sobol":
            for one, other in combinations(range(len(self.parameters)), 2):
                pair = float(found["S2"][one][other]), float(found["S2_conf"][one][other])
                yield "S2", self.parameters[one], self.parameters[other], *pair

    @property
    def _seed(self) -> int:
        return _seed_of(self.batch.plan)


def sensitivity(
    plan: Plan | Path | str,
    folder: Path | str,
    *,
    method: SensitivityMethod = "morris",
    samples: int = DEFAULT_SAMPLES,
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
            variance (``samples`` times (2 + 2 x the number of parameters) runs).
        samples: The number that ``method`` refers to; for Sobol a power of 2.
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead; see `batch`.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If the plan has no bounds or varies anything else, or if a run is impossible.
        MissingExtraError: If SALib is not installed.
    """
    given = plan if isinstance(plan, Plan) else Plan.from_file(plan)
    names = sampled(given, ("vary", "arm"))
    if samples < 2 or (method == "sobol" and samples & (samples - 1)):
        wanted = "2 or more" if method == "morris" else "a power of 2"
        raise InputError(f"must be {wanted} for {method}, got {samples}", field="samples")

    # problems that do not involve bounds are reported before thousands of samples are drawn
    given.check(given.samples([{}]))
    points = _points(method, names, samples, _seed_of(given))
    values = values_at(given, names, points)
    more = {_TABLE: {"method": method, "parameters": list(names), "points": points}}
    how = Carrying(workers, executor, observer)
    begin_batch(given, Path(folder), how, samples=values, more=more)

    return _written(read_sensitivity(folder))


def resume_sensitivity(
    folder: Path | str,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    hosts: Sequence[str] = (),
    observer: BatchObserver | None = None,
) -> Sensitivity:
    """Resume a sensitivity analysis that was stopped; see `resume_batch`.

    Args:
        folder: The folder of the batch.
        workers: Number of processes. Defaults to the number of processors.
        executor: Carries out the runs instead; see `batch`.
        hosts: Addresses of its servers with user names and passwords, which a batch does not keep.
        observer: Receives the progress of the batch.

    Raises:
        InputError: If the folder holds no sensitivity analysis, or it cannot be resumed.
    """
    read_sensitivity(folder)
    go_on(Path(folder), Carrying(workers, executor, observer, hosts))

    return _written(read_sensitivity(folder))


def read_sensitivity(folder: Path | str) -> Sensitivity:
    """Return the sensitivity analysis in a folder, complete or not.

    Args:
        folder: The folder of the batch.

    Raises:
        InputError: If the folder holds no sensitivity analysis.
    """
    told = BatchFolder(Path(folder)).read().get(_TABLE)
    if told is None:
        raise InputError(
            "holds a batch that is not a sensitivity analysis: use prism batch", path=folder
        )

    points = tuple(tuple(point) for point in told["points"])
    return Sensitivity(read_batch(folder), told["method"], tuple(told["parameters"]), points)


def _written(found: Sensitivity) -> Sensitivity:
    # if runs failed, there is a table of the failures and none of indices
    if found.batch.is_complete:
        found.write()

    return found


_SEED_INSTEAD_OF_0 = 2**32 - 1


def _seed_of(plan: Plan) -> int:
    return abs(plan.seeds[0]) % 2**32


def _points(
    method: SensitivityMethod, names: Sequence[str], samples: int, seed: int
) -> list[list[float]]:
    sample = library(f"SALib.sample.{method}")
    settings: dict[str, Any] = (
        {"num_levels": _LEVELS} if method == "morris" else {"calc_second_order": True}
    )
    found = sample.sample(_problem(names), samples, seed=seed, **settings)

    return [[float(each) for each in point] for point in found]


def _analyse(
    method: SensitivityMethod,
    names: Sequence[str],
    points: Sequence[Sequence[float]],
    values: Sequence[float],
    seed: int,
) -> Mapping[str, Any]:
    import numpy as np

    analyse = library(f"SALib.analyze.{method}").analyze
    settings: dict[str, Any] = {"conf_level": _CONFIDENCE, "seed": seed}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # for an outcome that is always the same
        warnings.simplefilter("ignore")
        if method == "morris":
            settings["num_levels"] = _LEVELS
            found = analyse(_problem(names), np.array(points), np.array(values), **settings)
        else:
            # SALib treats a seed of 0 as no seed, and would draw other intervals each time
            settings["seed"] = seed or _SEED_INSTEAD_OF_0
            found = analyse(_problem(names), np.array(values), **settings)

    return dict(found)


def _problem(names: Sequence[str]) -> dict[str, Any]:
    return {"num_vars": len(names), "names": list(names), "bounds": [[0.0, 1.0]] * len(names)}


def _is_whole(table: pl.DataFrame, name: str) -> bool:
    return name in table.columns and _without_number(table[name]).is_empty()


def _without_number(column: pl.Series) -> pl.Series:
    """Return the places of a column that hold no number."""
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        return pl.arange(len(column), eager=True)

    return (column.is_null() | column.cast(pl.Float64).is_nan()).arg_true()


_WIDTH, _STEP = 420, 34
_BLUE, _ORANGE = "#1f5fa8", "#b5541c"
_SHOWN: Mapping[str, tuple[str, str]] = {
    "mu_star": ("mean size of effects (mu*)", _BLUE),
    "sigma": ("deviation of effects (sigma)", _ORANGE),
    "S1": ("alone (S1)", _BLUE),
    "ST": ("with all interactions (ST)", _ORANGE),
}


def _dot(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of one index in the figure, with the ends of its interval."""
    margin = row["interval"] or 0.0
    return {
        "parameter": row["parameter"],
        "index": _SHOWN[row["index"]][0],
        "value": row["value"],
        "low": row["value"] - margin,
        "high": row["value"] + margin,
    }


def _figure(outcome: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Draw the indices of one outcome as dots, with their 95 % intervals, if any.

    Args:
        outcome: The outcome.
        rows: Its rows of `Sensitivity.indices`.

    Returns:
        The figure as Vega-Lite.
    """
    import altair as alt

    shown = [_dot(row) for row in rows if row["index"] in _SHOWN and row["value"] is not None]
    is_sobol = any(row["index"] == "S1" for row in rows)
    title = "share of the variance" if is_sobol else f"effect on {outcome} of the whole range"
    present = {each["index"] for each in shown}
    colours = {title: colour for title, colour in _SHOWN.values() if title in present}

    base = alt.Chart(alt.InlineData(values=shown)).encode(
        y=alt.Y(
            "parameter:N", sort=_by_importance(rows, "ST" if is_sobol else "mu_star"), title=None
        ),
        yOffset=alt.YOffset("index:N", sort=list(colours)),
        color=alt.Color(
            "index:N",
            scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        ),
    )
    intervals = base.mark_rule().encode(x=alt.X("low:Q", title=title), x2="high:Q")
    values = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("value:Q", title=title), tooltip=["parameter:N", "index:N", "value:Q"]
    )
    layers = alt.layer(intervals, values).properties(
        width=_WIDTH, height=alt.Step(_STEP), title=alt.TitleParams(outcome, anchor="start")
    )

    spec: dict[str, Any] = layers.to_dict()
    return spec


def _by_importance(rows: Sequence[Mapping[str, Any]], index: str) -> list[str]:
    """Return the parameters, sorted by an index, the most important first."""
    sizes = {row["parameter"]: row["value"] or 0 for row in rows if row["index"] == index}
    return sorted(sizes, key=lambda name: -sizes[name])
