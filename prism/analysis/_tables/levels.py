"""States of charts with others inside, on a level of their tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from prism.analysis._reading.runs import Run
from prism.statechart._nesting import SEPARATOR


def on_level(table: pl.DataFrame, runs: Sequence[Run], depth: int) -> pl.DataFrame:
    """Return the numbers of agents on a level of their charts.

    Who is in several regions counts in each of them.

    Args:
        table: The numbers by ``run``, ``chart`` and ``state``, as ``agents`` and ``share``.
        runs: The runs.
        depth: The level: 1 for the outermost states. A state without others inside counts on every
            level below its own.
    """
    found = table.select("run", "chart", "state").unique()
    rows = [
        (run, chart, state, level)
        for run, chart, state in found.iter_rows()
        for level in _levels(state, runs[run].charts.get(chart, {}), depth)
    ]
    columns = {"run": pl.UInt32, "chart": pl.String, "state": pl.String, "level": pl.String}
    levels = pl.DataFrame(rows, schema=columns, orient="row")

    key = ["run", "chart", "state"]
    joined = table.join(levels, on=key, nulls_equal=True, maintain_order="left")
    named = joined.with_columns(state="level").drop("level")
    others = [name for name in named.columns if name not in ("agents", "share")]
    counted = named.group_by(others, maintain_order=True)

    return counted.agg(pl.col("agents").sum(), pl.col("share").sum()).select(table.columns)


def _levels(state: str, inside: Mapping[str, Sequence[str]], depth: int) -> Iterator[str]:
    around = {each: composite for composite, states in inside.items() for each in states}
    leaves = [state] if state in around else state.split(SEPARATOR)
    # several regions may have one state around them
    yield from dict.fromkeys(
        [*_path(leaf, around)][:depth][-1] for leaf in (leaves if around else [state])
    )


def _path(state: str, around: Mapping[str, str]) -> Iterator[str]:
    """Yield the states around a state, outermost first, and the state itself."""
    if state in around:
        yield from _path(around[state], around)
    yield state
