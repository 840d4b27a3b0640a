"""Bars that stand on each other, along an axis of intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from prism.report._figures.page_figures import HEIGHT, PageFigures, Tooltips
from prism.report._figures.timeline import Timeline

_OVERLAP = 1.3 / 760
"""Of full stacks each reaches so far, in widths of the figure, below the next; else white would shine through."""


@dataclass(frozen=True, slots=True)
class Bars:
    """What bars on each other stand for.

    Args:
        counted: Column of their heights.
        key: Column of what they stand for.
        colours: The colour of each of its values, from below.
        title: What the vertical axis is.
        is_full: Whether all stacks are equally high.
        as_shares: Whether they are to be made so.
        height: Of the figure, as a part of the usual one.
    """

    counted: str
    key: str
    colours: Mapping[str, str]
    title: str
    is_full: bool = False
    as_shares: bool = False
    height: float = 1.0


def draw_bars(timeline: Timeline, bars: Bars, figures: PageFigures) -> alt.Chart:
    """Draw bars on each other.

    Where one ends and the next begins is worked out here, since Vega-Lite does not stack what
    stands on intervals.

    Args:
        timeline: The counts.
        bars: What they stand for.
        figures: The page.
    """
    x, x2 = timeline.encodings()
    axis = (
        alt.Axis(format="%")
        if bars.as_shares
        else alt.Axis(format=",d", tickCount=6, tickMinStep=1)
    )
    y = alt.Y("low:Q", title=bars.title, axis=axis, scale=alt.Scale(zero=True, nice=False))
    tooltip: Tooltips = ["when", bars.key, alt.Tooltip(f"{bars.counted}:Q", format=",.4~g")]
    if "share" in timeline.table.columns:
        tooltip.append(alt.Tooltip("share:Q", format=".1%"))

    table = stack(
        timeline.table, bars.counted, bars.key, list(bars.colours), as_shares=bars.as_shares
    )
    if bars.is_full or bars.as_shares:
        first, last = pl.col("begin").min(), pl.col("end").max()
        table = table.with_columns(
            end=pl.min_horizontal(pl.col("end") + (last - first) * _OVERLAP, last)
        )

    chart: alt.Chart = alt.Chart(table).mark_rect(opacity=1)
    chart = chart.encode(
        x, x2, y, alt.Y2("high"), figures.colour(bars.key, bars.colours), tooltip=tooltip
    )
    sized: alt.Chart = chart.properties(height=round(HEIGHT * bars.height))

    return sized


def stack(
    table: pl.DataFrame, counted: str, key: str, order: Sequence[str], *, as_shares: bool = False
) -> pl.DataFrame:
    """Add where each bar begins and ends.

    Args:
        table: The bars, with ``begin`` and ``end`` of their intervals.
        counted: Column of their heights.
        key: Column of what they stand for.
        order: Its values, from below.
        as_shares: Whether heights are divided by those of their stack.

    Returns:
        The bars that can be seen, from left to right and from below, with ``low`` and ``high``.
    """
    places = {name: place for place, name in enumerate(order)}
    ordered = table.filter(pl.col(counted) > 0).sort(
        "begin", pl.col(key).replace_strict(places, return_dtype=pl.Int64)
    )
    high = pl.col(counted).cum_sum().over("begin")
    whole = pl.col(counted).sum().over("begin") if as_shares else pl.lit(1)

    return ordered.with_columns(low=(high - pl.col(counted)) / whole, high=high / whole)
