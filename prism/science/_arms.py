"""The arms of experiments over several runs: what treated posts came to beside the controls."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from prism.analysis import arms, read_log
from prism.errors import InputError
from prism.science._libraries import library
from prism.worlds._assignments import CONTROL

_OUTCOMES = ("score", "likes", "dislikes", "replies", "reshares", "like_chance")
_SCHEMA = {
    "experiment": pl.String(),
    "arm": pl.String(),
    "outcome": pl.String(),
    "runs": pl.Int64(),
    "mean": pl.Float64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
}


def arm_effects(*runs: Path | str, level: float = 0.95) -> pl.DataFrame:
    """Compare the arms of an experiment with its control, with runs for units.

    In each run, the mean over the posts of an arm less that over those of the control is one
    number; the interval and the test are those of Student's t over these (paired t-test, Student
    1908).

    Args:
        runs: Folders of runs with the same experiment, of several seeds.
        level: Level of the interval, between 0 and 1.

    Returns:
        One row for each arm and outcome (``score``; ``likes`` and ``dislikes`` by agents;
        ``replies``, ``reshares``, ``like_chance``): ``experiment``, ``arm``, ``outcome``, ``runs``,
        ``mean`` (over runs), ``difference`` from the control with ``low`` and ``high``, and ``p``
        of a difference of 0; null where there are fewer than two runs, and for the control.

    Raises:
        InputError: If there is no run, or none has assigned posts.
    """
    if not runs:
        raise InputError("needs runs, got none", field="runs")

    tables = [
        arms(read_log(run)).with_columns(number=pl.lit(number)) for number, run in enumerate(runs)
    ]
    table = pl.concat(tables)
    if not table.height:
        raise InputError("assigned no post to an arm", path=runs[0])

    control = table.filter(arm=CONTROL).select("number", "experiment", *_OUTCOMES)
    paired = table.join(control, on=["number", "experiment"], suffix="_control")
    rows = []
    for (experiment, arm), group in paired.group_by("experiment", "arm", maintain_order=True):
        for outcome in _OUTCOMES:
            difference = (group[outcome] - group[f"{outcome}_control"]).drop_nulls()
            found = _interval(difference, level) if arm != CONTROL else (None,) * 4
            rows.append((experiment, arm, outcome, group.height, group[outcome].mean(), *found))

    return pl.DataFrame(rows, schema=_SCHEMA, orient="row").sort("experiment", "arm")


def _interval(
    differences: pl.Series, level: float
) -> tuple[float | None, float | None, float | None, float | None]:
    """Return the mean of differences, its interval, and the p of a mean of 0."""
    if differences.len() < 2:
        return (differences.mean(), None, None, None)  # type: ignore[return-value]

    stats = library("scipy.stats")
    result = stats.ttest_1samp(differences.to_numpy(), 0.0)
    interval = result.confidence_interval(level)

    return (
        float(differences.mean()),  # type: ignore[arg-type]
        float(interval.low),
        float(interval.high),
        float(result.pvalue),
    )
