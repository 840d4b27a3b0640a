"""How close a preset of the feed comes to the targets of its plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from prism.errors import FieldValueError
from prism.science._plan import Plan
from prism.social import Feed
from prism.social._presets import PRESETS
from prism.worlds import Run


def preset_runs(
    preset: str,
    seeds: int | Iterable[int] = 20,
    agents: int | None = None,
    rounds: int | None = None,
) -> pl.DataFrame:
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
        MissingExtraError: If polars is not installed, which the extra ``science`` brings.
    """
    plan = _plan_of(preset)
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    sizes = (agents or plan["agents"], rounds or plan["rounds"])
    table = pl.concat([_measured(preset, *sizes, seed) for seed in numbers], how="diagonal_relaxed")

    return table.select(pl.Series("seed", numbers), pl.all())


def preset_figures(
    preset: str,
    seeds: int | Iterable[int] = 20,
    agents: int | None = None,
    rounds: int | None = None,
) -> pl.DataFrame:
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
        MissingExtraError: If polars is not installed, which the extra ``science`` brings.
    """
    measured = preset_runs(preset, seeds, agents, rounds)
    return pl.DataFrame([_held(measured, target) for target in _plan_of(preset)["target"]])


def _plan_of(preset: str) -> Mapping[str, Any]:
    """Return the plan to which a preset was fitted, which has the same name."""
    known = [name for name in PRESETS if _is_fitted(name)]
    if preset not in known:
        raise FieldValueError(f"preset must be one of {', '.join(known)}, got {preset!r}")

    return Plan.from_file(preset).data


def _is_fitted(preset: str) -> bool:
    return (Path(__file__).parent / "plans" / f"{preset}.toml").exists()


def _measured(preset: str, agents: int, rounds: int, seed: int) -> pl.DataFrame:
    from prism.analysis import read_log

    with TemporaryDirectory() as folder:
        Run(Feed(preset=preset), agents, rounds=rounds, seed=seed).keep(f"{folder}/run")
        return pl.DataFrame(read_log(Path(folder) / "run").table("run_measures"))


def _held(measured: pl.DataFrame, target: Mapping[str, Any]) -> dict[str, Any]:
    values = measured[target["measure"]].drop_nulls()
    statistic = target.get("statistic", "mean")
    found = values.std() if statistic == "sd" else values.mean()
    value, spread = target["value"], target["spread"]

    return {
        "measure": target["measure"],
        "statistic": statistic,
        "published": float(value),
        "spread": float(spread),
        "source": target.get("source"),
        "held_out": bool(target.get("held_out", False)),
        "found": found,
        "least": values.min(),
        "most": values.max(),
        "distance": None if found is None else abs(found - value) / spread,
    }
