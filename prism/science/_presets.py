"""How near a preset of the feed comes to the figures that it is meant to resemble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from prism.errors import FieldValueError
from prism.social import Feed
from prism.worlds import Run


@dataclass(frozen=True, slots=True)
class Published:
    """A published figure.

    Args:
        measure: Which column of `prism.analysis.run_measures` it is about.
        value: The figure, or the middle of its range.
        spread: How far from it a run may be.
        source: Where it was published.
    """

    measure: str
    value: float
    spread: float
    source: str


@dataclass(frozen=True, slots=True)
class Trial:
    """How a preset is held against its figures.

    Args:
        rounds: Rounds of a run.
        ticks: Ticks in a round.
        from_round: The first round that counts.
        figures: Names of the figures, as in `PUBLISHED`.
    """

    rounds: int
    ticks: int
    from_round: int
    figures: tuple[str, ...]


_MIERLO = "van Mierlo 2014"
_GOEL = "Goel, Watts and Goldstein 2012"
_OASIS = "OASIS, arXiv 2411.11581"

PUBLISHED: Mapping[str, Published] = {
    each.measure: each
    for each in (
        Published("top_1", 0.747, 0.05, _MIERLO),
        Published("next_9", 0.240, 0.05, _MIERLO),
        Published("other_90", 0.013, 0.01, _MIERLO),
        Published("top_10", 0.80, 0.05, "Wojcik and Hughes 2019"),
        Published("reshare_singletons", 0.825, 0.125, _GOEL),
        Published("reshare_beyond_one_degree", 0.025, 0.015, _GOEL),
        Published("browsing", 0.92, 0.02, "Benevenuto et al. 2009"),
        Published("largest_cascade", 324.75, 76.75, _OASIS),
        Published("deepest_cascade", 3.0, 6.0, _OASIS),
    )
}
"""Published figures, by the measure that they are about."""

_WRITES = ("top_1", "next_9", "other_90")
_CASCADES = ("reshare_singletons", "reshare_beyond_one_degree")

TRIALS: Mapping[str, Trial] = {
    "conversation": Trial(10, 12, 1, ("browsing",)),
    # of those who hardly ever write, fewer rounds would count chance
    "participation": Trial(120, 12, 10, _WRITES),
    "twitter": Trial(30, 12, 7, ("top_10", *_CASCADES)),
    "browsing": Trial(10, 12, 4, ("browsing",)),
    "rumour": Trial(6, 12, 1, ("largest_cascade", "deepest_cascade")),
    "classic": Trial(20, 12, 9, ()),
}
"""How each preset is held against its figures."""


def preset_runs(preset: str, seeds: int | Iterable[int] = 20, agents: int = 1000) -> pl.DataFrame:
    """Run a preset of the feed with several seeds, and measure each run.

    Args:
        preset: Its name.
        seeds: The seeds, or how many, from 0 on.
        agents: Number of agents.

    Returns:
        A row a seed: ``seed``, then the measures of `prism.analysis.run_measures` after burn-in.

    Raises:
        FieldValueError: If there is no such preset.
        MissingExtraError: If polars is not installed, which the extra ``science`` brings.
    """
    if preset not in TRIALS:
        raise FieldValueError(f"preset must be one of {', '.join(TRIALS)}, got {preset!r}")

    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    rows = [_measured(preset, agents, seed) for seed in numbers]

    table = pl.concat(rows, how="diagonal_relaxed")

    return table.select(pl.Series("seed", numbers), pl.all())


def preset_figures(
    preset: str, seeds: int | Iterable[int] = 20, agents: int = 1000
) -> pl.DataFrame:
    """Hold a preset of the feed against all published figures.

    Args:
        preset: Its name.
        seeds: The seeds, or how many, from 0 on.
        agents: Number of agents; the presets were made for 1,000.

    Returns:
        A row a figure: ``measure``, ``published``, ``spread``, ``source``, ``mean``, ``least`` and
        ``most`` over the seeds, ``misses`` (the seeds whose run lies further off than the spread),
        ``distance`` (of the mean, in spreads), and ``is_meant`` (whether the preset is made for
        it).

    Raises:
        FieldValueError: If there is no such preset.
        MissingExtraError: If polars is not installed, which the extra ``science`` brings.
    """
    measured = preset_runs(preset, seeds, agents)
    rows = [_held(measured, figure, TRIALS[preset]) for figure in PUBLISHED.values()]

    return pl.DataFrame(rows)


def _measured(preset: str, agents: int, seed: int) -> pl.DataFrame:
    from prism.analysis import read_log, run_measures

    trial = TRIALS[preset]
    with TemporaryDirectory() as folder:
        feed = Feed(preset=preset)
        Run(feed, agents, rounds=trial.rounds, ticks=trial.ticks, seed=seed).keep(f"{folder}/run")
        return run_measures(read_log(Path(folder) / "run"), from_round=trial.from_round)


def _held(measured: pl.DataFrame, figure: Published, trial: Trial) -> dict[str, Any]:
    found = measured.select("seed", figure.measure).drop_nulls()
    values = found[figure.measure].to_list()
    mean = sum(values) / len(values) if values else None
    off = [
        seed
        for seed, value in found.iter_rows()
        # a value at the edge is within the spread, also in the last bits
        if abs(value - figure.value) > figure.spread + 1e-12
    ]

    return {
        "measure": figure.measure,
        "published": figure.value,
        "spread": figure.spread,
        "source": figure.source,
        "mean": mean,
        "least": min(values, default=None),
        "most": max(values, default=None),
        "misses": off,
        "distance": None if mean is None else abs(mean - figure.value) / figure.spread,
        "is_meant": figure.measure in trial.figures,
    }
