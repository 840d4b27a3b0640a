"""How close a preset of the feed comes to the targets of its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from prism.errors import FieldValueError
from prism.science._batch_tables import table_of
from prism.science._plan import Plan
from prism.social import PRESETS, Feed
from prism.worlds import Run

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


def preset_runs(
    preset: str,
    seeds: int | Iterable[int] = 20,
    agents: int | None = None,
    rounds: int | None = None,
) -> DuckDBPyRelation:
    """Run a preset of the feed with several seeds, and measure each run.

    Args:
        preset: Its name.
        seeds: The seeds, or their number, counted from 0.
        agents: Number of agents; by default that of its plan.
        rounds: Number of rounds; by default that of its plan.

    Returns:
        A row per seed: ``seed``, then the measures of the table ``run_measures``.

    Raises:
        FieldValueError: If no plan fits a preset of that name.
    """
    return table_of(_measured_rows(preset, seeds, agents, rounds))


def _measured_rows(
    preset: str, seeds: int | Iterable[int], agents: int | None, rounds: int | None
) -> list[dict[str, Any]]:
    plan = _plan_of(preset)
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    sizes = (agents or plan["agents"], rounds or plan["rounds"])
    return [{"seed": seed, **_measured(preset, *sizes, seed)} for seed in numbers]


def preset_figures(
    preset: str,
    seeds: int | Iterable[int] = 20,
    agents: int | None = None,
    rounds: int | None = None,
) -> DuckDBPyRelation:
    """Compare a preset of the feed with all targets of its plan, including those held out.

    Args:
        preset: Its name.
        seeds: The seeds, or their number, counted from 0.
        agents: Number of agents; by default that of its plan.
        rounds: Number of rounds; by default that of its plan.

    Returns:
        A row for each target: ``measure``, ``statistic`` (the ``mean`` of the seeds, or their
        standard deviation ``sd``), ``published``, ``spread``, ``source`` and ``held_out``; then
        ``found`` (the statistic of these runs; null for the ``sd`` of a single run), ``least`` and
        ``most`` (of the runs), and ``distance`` (of ``found`` from ``published``, in spreads).

    Raises:
        FieldValueError: If no plan fits a preset of that name.
    """
    measured = _measured_rows(preset, seeds, agents, rounds)
    return table_of([_held(measured, target) for target in _plan_of(preset)["target"]])


def _plan_of(preset: str) -> Mapping[str, Any]:
    """Return the plan to which a preset was fitted, which has the same name."""
    known = [name for name in PRESETS if _is_fitted(name)]
    if preset not in known:
        raise FieldValueError(f"preset must be one of {', '.join(known)}, got {preset!r}")

    return Plan.from_file(preset).data


def _is_fitted(preset: str) -> bool:
    return (Path(__file__).parent / "plans" / f"{preset}.toml").exists()


def _measured(preset: str, agents: int, rounds: int, seed: int) -> dict[str, Any]:
    from prism.analysis import read_log

    with TemporaryDirectory() as folder:
        Run(Feed(preset=preset), agents, rounds=rounds, seed=seed).keep(f"{folder}/run")
        (row,) = read_log(Path(folder) / "run").rows("run_measures")
        return row


def _held(measured: Sequence[Mapping[str, Any]], target: Mapping[str, Any]) -> dict[str, Any]:
    values = [row[target["measure"]] for row in measured if row[target["measure"]] is not None]
    statistic = target.get("statistic", "mean")
    least = 2 if statistic == "sd" else 1
    found = (stdev if statistic == "sd" else fmean)(values) if len(values) >= least else None
    value, spread = target["value"], target["spread"]

    return {
        "measure": target["measure"],
        "statistic": statistic,
        "published": float(value),
        "spread": float(spread),
        "source": target.get("source"),
        "held_out": bool(target.get("held_out", False)),
        "found": found,
        "least": min(values, default=None),
        "most": max(values, default=None),
        "distance": None if found is None else abs(found - value) / spread,
    }
