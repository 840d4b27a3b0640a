"""``prism fit``: the parameters whose runs come to given figures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._batch import PLANNED, Keep, PlannedRuns
from prism.cli._screen import note, pour_json, print_heading, print_table, say

if TYPE_CHECKING:
    from prism.science import Fit


def fit(
    *,
    samples: Annotated[int, typer.Option(min=20, metavar="N")] = 200,
    generations: Annotated[int, typer.Option(min=1, metavar="N")] = 8,
    seed: int = 0,
    keep: Keep = "tables",
    planned: Annotated[PlannedRuns, PLANNED],
) -> None:
    """Find the parameters that reproduce given figures, and how certain they are.

    The plan gives bounds for the parameters, and targets: each a measure, its value and its spread.
    Targets that are held out test the fit. The runs form a batch, which can be stopped and resumed
    like any other.

    Options:
        samples: Samples in the first generation; later ones have half as many.
        generations: Maximum number of generations; the fit stops earlier once hardly any sample is
            closer.
        seed: Seed for drawing the samples.

    [bold]Examples[/bold]

    prism fit plan.toml --out runs/fitted

    prism fit plan.toml --samples 400 --generations 5 --out runs/fitted

    prism fit --resume runs/fitted
    """
    from prism import science

    begin = partial(science.fit, samples=samples, generations=generations, seed=seed, keep=keep)
    done = planned.carry_out("prism fit", begin, science.resume_fit)
    if done.batch.failed:
        note(
            f"{len(done.batch.failed)} runs failed, so their samples count as far from every target"
        )
    if planned.keeping.as_json:
        pour_json(_as_data(done))
    else:
        _print(done)


def _print(done: Fit) -> None:
    kept = len(done.population.places)
    print_heading(f"{len(done.points):,} samples, of which {kept:,} are kept")
    rows = (
        (
            row["parameter"],
            *(f"{row[name]:.3g}" for name in ("median", "low", "high")),
            f"{row['least']:.3g} to {row['most']:.3g}",
            f"{row['width']:.0%}",
        )
        for row in done.estimates().iter_rows(named=True)
    )
    numbers = ("median", "low", "high", "width")
    print_table(rows, "parameter", *numbers[:3], "bounds", "width", numbers=numbers)
    for name, remark in done.estimates().select("parameter", "remark").iter_rows():
        if remark:
            say(f"{name}: {remark}.")
    targets = (_target_row(row) for row in done.targets().iter_rows(named=True))
    heads = ("target", "value", "spread", "fit", "low", "high", "")
    print_table(targets, *heads, numbers=heads[1:6])
    say(
        "low and high are the ends of 90 % intervals; width is the interval's share of the bounds. "
        f"More in {done.batch.folder}: estimates, posterior, targets, as CSV and Parquet."
    )


def _target_row(row: dict[str, Any]) -> tuple[str, ...]:
    spread = "sd" if row["statistic"] == "sd" else None
    which = [row["measure"], spread, row["arm"], row["round"] and f"round {row['round']}"]
    name = ", ".join(str(each) for each in which if each)
    said = ["held out"] if row["held_out"] else []
    said += [] if row["within"] else ["unknown" if row["within"] is None else "missed"]
    numbers = (f"{row[key]:.3g}" for key in ("value", "spread", "mean", "low", "high"))

    return (name, *numbers, ", ".join(said))


def _as_data(done: Fit) -> dict[str, Any]:
    return {
        "folder": str(done.batch.folder),
        "complete": done.is_complete,
        "samples": len(done.points),
        "kept": len(done.population.places),
        "failed": len(done.batch.failed),
        "estimates": done.estimates().to_dicts(),
        "targets": done.targets().to_dicts(),
    }
