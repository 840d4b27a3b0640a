"""Tables of ``prism log`` that are rearranged for drawing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from prism.cli._screen import evenly

_MOST_MOMENTS = 8
_MOST_TIMES = 4
_RUN = "run"


def side_by_side(
    counts: pl.DataFrame, _given: Mapping[str, Any]
) -> tuple[pl.DataFrame, str | None]:
    """Put several times side by side: the ends of rounds, or the ticks of a single round.

    Returns:
        The table, and a hint if something is left out.
    """
    moment = [name for name in ("round", "tick", "time") if name in counts.columns]
    # Runs of different shape do not fit beside each other.
    if not counts.height or sum(counts.select(moment).null_count().row(0)):
        return counts, None

    ends, what = _last_ticks(counts) if moment == ["round", "tick"] else (counts, moment[-1])
    moments = ends[what].unique().sort()
    some = moments[evenly(moments.len(), _MOST_TIMES if what == "time" else _MOST_MOMENTS)]
    shown = ends.filter(pl.col(what).is_in(some.implode()))
    # Nor do runs of different times.
    if _RUN in counts.columns and shown[_RUN].n_unique() < counts[_RUN].n_unique():
        return counts, None

    places = f"{some.len()} of {moments.len()} {what}s"
    hint = f"Agents at the end of {places}; --format csv has them all"
    return _in_columns(shown, some, [what, *moment]), hint


def _in_columns(counts: pl.DataFrame, moments: pl.Series, times: list[str]) -> pl.DataFrame:
    """Return a column for each moment, which is a time of the first of these kinds."""
    what = times[0]
    title = pl.col(what).dt.strftime("%F %T") if what == "time" else pl.format(f"{what} {{}}", what)
    index = [name for name in counts.columns if name not in (*times, "agents", "share")]
    wide = counts.with_columns(moment=title).pivot(
        "moment", index=index, values="agents", maintain_order=True
    )
    return wide.select(*index, *moments.to_frame().select(title).to_series())


def _last_ticks(counts: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Return the last tick of each round of every run, if there are several rounds."""
    if counts["round"].n_unique() == 1:
        return counts, "tick"

    each = [name for name in (_RUN, "round") if name in counts.columns]
    return counts.filter(pl.col("tick") == pl.col("tick").max().over(each)), "round"


def upright(table: pl.DataFrame, given: Mapping[str, Any]) -> tuple[pl.DataFrame, None]:
    """Return a row for each measure and a column for each run, unless there are rounds."""
    if given["by_round"]:
        return table, None

    labels = table[_RUN].to_list() if _RUN in table.columns else ["value"]
    numbers = table.select(name for name in table.columns if name != _RUN)
    rows = [[name, *(_short(value) for value in numbers[name])] for name in numbers.columns]

    return pl.DataFrame(rows, schema=["measure", *labels], orient="row"), None


def _short(value: object) -> str | None:
    return f"{value:.4g}" if isinstance(value, float) else None if value is None else str(value)
