"""Measure the presets at several sizes, in two minutes. Usage: presets.py [PRESET ...]."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

from prism import Run
from prism.analysis import read_log
from prism.science import Plan
from prism.social import Feed

TABLE = Path(__file__).with_name("presets.csv")

FIRST_SEED = 300
"""Seeds from here on, which no fit uses."""

SIZES = {
    "conversation": [(100, 10, 8), (200, 10, 4), (1000, 10, 1)],
    "participation": [(200, 60, 4), (1000, 60, 1)],
    "twitter": [(200, 12, 4), (1000, 12, 2)],
    "browsing": [(200, 10, 4), (1000, 10, 1)],
    "rumour": [(200, 6, 20), (1000, 6, 20)],
}
"""Agents, rounds and runs that each preset is measured at."""


def measured(preset: str, agents: int, rounds: int, seed: int) -> dict[str, Any]:
    """Return the row of ``run_measures`` of one run of a preset."""
    with TemporaryDirectory() as folder:
        Run(Feed(preset=preset), agents, rounds=rounds, seed=seed).keep(f"{folder}/run")
        (row,) = read_log(Path(folder) / "run").rows("run_measures")
        return row


def rows(preset: str, agents: int, rounds: int, runs: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each target of the preset's plan, with what its runs came to."""
    every = [measured(preset, agents, rounds, FIRST_SEED + number) for number in range(runs)]
    for target in Plan.from_file(preset).data["target"]:
        values = [row[target["measure"]] for row in every if row[target["measure"]] is not None]
        statistic = target.get("statistic", "mean")
        least = 2 if statistic == "sd" else 1
        figure = {"mean": fmean, "sd": stdev}[statistic](values) if len(values) >= least else None
        yield {
            **{"preset": preset, "agents": agents, "rounds": rounds, "runs": runs},
            **{"measure": target["measure"], "statistic": statistic},
            "held_out": str(target.get("held_out", False)).lower(),
            **{"published": _rounded(target["value"]), "found": _rounded(figure)},
            **{"least": _rounded(min(values, default=None))},
            **{"most": _rounded(max(values, default=None))},
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(SIZES)
    with TABLE.open(encoding="utf-8", newline="") as file:
        table = [row for row in csv.DictReader(file) if row["preset"] not in chosen]
    table += [row for preset in chosen for size in SIZES[preset] for row in rows(preset, *size)]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
