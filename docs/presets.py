"""Measure the presets at several sizes, in half an hour. Usage: presets.py [PRESET ...]."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from prism.science import preset_figures

HERE = Path(__file__).parent
TABLE = HERE / "presets.csv"

FIRST_SEED = 300
"""Seeds from here on, which no fit uses."""

SIZES = {
    "conversation": [(100, 10, 8), (100, 30, 4), (200, 10, 4), (1000, 10, 2), (5000, 10, 1)],
    "participation": [(200, 60, 4), (200, 120, 2), (1000, 60, 1), (5000, 60, 1)],
    "twitter": [(200, 12, 4), (1000, 12, 2), (1000, 30, 1), (5000, 12, 1)],
    "browsing": [(200, 10, 4), (200, 30, 2), (1000, 10, 2), (5000, 10, 1)],
    "rumour": [(200, 6, 20), (1000, 6, 20), (1000, 12, 8), (5000, 6, 4)],
}
"""Agents, rounds and runs that each preset is measured at."""


def rows(preset: str, agents: int, rounds: int, runs: int) -> pl.DataFrame:
    """Return a row for each target of the preset's plan."""
    seeds = range(FIRST_SEED, FIRST_SEED + runs)
    figures = preset_figures(preset, seeds, agents, rounds)
    sizes = {"preset": preset, "agents": agents, "rounds": rounds, "runs": runs}
    numbers = ("published", "found", "least", "most")

    return figures.select(
        *(pl.lit(value).alias(name) for name, value in sizes.items()),
        "measure",
        "statistic",
        "held_out",
        *(pl.col(name).cast(pl.Float64).round_sig_figs(3) for name in numbers),
    )


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(SIZES)
    old = pl.read_csv(TABLE)
    kept = [old.filter(~pl.col("preset").is_in(chosen))]
    measured = [rows(preset, *size) for preset in chosen for size in SIZES[preset]]
    pl.concat([*kept, *measured], how="vertical_relaxed").write_csv(TABLE)
