"""States of charts with others inside, on a level of their tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import polars as pl

from prism.statechart._nesting import SEPARATOR

Inside = Mapping[str, Sequence[str]]
"""The states inside of each state that has others inside."""


def on_level(
    table: pl.DataFrame, inside_of: Callable[[int, str | None], Inside], depth: int
) -> pl.DataFrame:
    """Return the numbers of agents on a level of their charts.

    Who is in several regions counts in each of them.

    Args:
        table: The numbers by ``run``, ``chart`` and ``state``, as ``agents`` and ``share``.
        inside_of: Returns what lies inside of what, in a run and a chart.
        depth: The level: 1 for the outermost states. A state without others inside counts on every
            level below its own.
    """
    found = table.select("run", "chart", "state").unique()
    rows = [
        (run, chart, state, level)
        for run, chart, state in found.iter_rows()
        for level in _levels(state, inside_of(run, chart), depth)
    ]
    columns = {"run": pl.UInt32, "chart": pl.String, "state": pl.String, "level": pl.String}
    levels = pl.DataFrame(rows, schema=columns, orient="row")

    key = ["run", "chart", "state"]
    joined = table.join(levels, on=key, nulls_equal=True, maintain_order="left")
    named = joined.with_columns(state="level").drop("level")
    others = [name for name in named.columns if name not in ("agents", "share")]
    counted = named.group_by(others, maintain_order=True)

    return counted.agg(pl.col("agents").sum(), pl.col("share").sum()).select(table.columns)


def on_level_of(table: pl.DataFrame, inside: Inside, depth: int) -> pl.DataFrame:
    """Return `on_level` of one run and one chart, which are no columns."""
    named = table.with_columns(run=pl.lit(0, pl.UInt32), chart=pl.lit(None, pl.String))
    return on_level(named, lambda _run, _chart: inside, depth).drop("run", "chart")


def depth_of(inside: Inside) -> int:
    """Return the number of levels of a chart."""
    around = {each: composite for composite, states in inside.items() for each in states}
    return max((len([*_path(state, around)]) for state in around), default=1)


def _levels(state: str, inside: Inside, depth: int) -> Iterator[str]:
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
