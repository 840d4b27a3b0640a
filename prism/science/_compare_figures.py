"""The figures of a comparison: effects on one scale, the rounds, and distributions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import altair as alt
import polars as pl

from prism.report._figures.colours import AXIS, PAPER, colour_of
from prism.report._figures.page_figures import HEIGHT, PageFigures
from prism.science._comparison import Comparison

MOST_DRAWN = 24
"""Most measures whose rounds are drawn."""

_ROW = 17
_WIDEST = 8
_LEVEL = 0.05
_DECADES = 20
_PLACES = (2, 4, 5, 6, 8, 7, 9, 3, 1, 0)

_TOOLTIP = [
    "measure",
    "group",
    *(alt.Tooltip(f"{name}:Q", format=".3g") for name in ("effect", "low", "high", "difference")),
    alt.Tooltip("p:Q", format=".2g", title="p (Holm)"),
]


def colours_of(comparison: Comparison) -> dict[str, str]:
    """Return the colour of each group."""
    labels = [group.label for group in comparison.groups]
    return {label: colour_of(_PLACES[place % len(_PLACES)]) for place, label in enumerate(labels)}


def effects(comparison: Comparison, figures: PageFigures) -> alt.TopLevelMixin | None:
    """Draw every difference with its interval, in standard deviations of the runs; or None."""
    rows = [row for row in comparison.differences if row.standardised is not None]
    if not rows:
        return None

    colours = colours_of(comparison)
    seconds = list(dict.fromkeys(row.second for row in rows))
    table = pl.DataFrame(
        {
            "measure": [row.measure for row in rows],
            "group": [row.second for row in rows],
            "effect": [row.standardised for row in rows],
            "low": [row.standardised_low for row in rows],
            "high": [row.standardised_high for row in rows],
            "difference": [row.difference for row in rows],
            "p": [row.p_holm for row in rows],
            "significant": [row.p_holm is not None and row.p_holm < _LEVEL for row in rows],
        }
    )
    names = list(dict.fromkeys(table["measure"]))
    widest = table.select(pl.max_horizontal(pl.col("effect", "low", "high").abs()).max()).item()
    scale = alt.Scale(type="symlog", constant=1) if widest > _WIDEST else alt.Scale()
    of_group = figures.colour(
        "group", {label: colours[label] for label in seconds}, legend=len(seconds) > 1
    )
    title = f"standard deviations from {comparison.groups[0].label}"
    x = alt.X("effect:Q", scale=scale, title=title)
    y = alt.Y("measure:N", sort=names, title=None, axis=alt.Axis(labelLimit=200, grid=True))
    shared: dict[str, Any] = {"y": y, "color": of_group, "tooltip": _TOOLTIP}
    if len(seconds) > 1:
        shared["yOffset"] = alt.YOffset("group:N", sort=seconds)

    base = alt.Chart(table)
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(color=AXIS).encode(alt.X("zero:Q"))
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale, title=title), x2=alt.X2("high:Q"), **shared
    )
    rest = base.transform_filter(~alt.datum.significant)
    hollow = rest.mark_point(filled=False, size=46, fill=PAPER, opacity=1).encode(x=x, **shared)
    sure = base.transform_filter(alt.datum.significant)
    full = sure.mark_point(filled=True, size=60, opacity=1).encode(x=x, **shared)
    rows_each = 1 if len(seconds) == 1 else 0.75 * len(seconds)
    chart: alt.TopLevelMixin = alt.layer(zero, lines, hollow, full).properties(
        height=round(_ROW * len(names) * rows_each)
    )

    return chart


def rounds(
    table: pl.DataFrame, measure: str, comparison: Comparison, figures: PageFigures
) -> alt.TopLevelMixin:
    """Draw the mean of each group in each round, with its band.

    Args:
        table: What `Comparison.rounds` gives for the measure.
        measure: The measure.
        comparison: The comparison.
        figures: The figures of the page.
    """
    base = alt.Chart(table)
    x = alt.X(
        "round:Q",
        axis=alt.Axis(format=",d", grid=False, tickMinStep=1),
        scale=alt.Scale(zero=False, nice=False),
    )
    of_group = figures.colour("group", colours_of(comparison))
    ends = base.transform_filter("isValid(datum.low)")
    shade = ends.mark_area(opacity=0.22).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), of_group)
    line = base.mark_line(strokeWidth=2, invalid="break-paths-show-domains").encode(
        x,
        alt.Y("mean:Q", title=measure, scale=alt.Scale(zero=False)),
        of_group,
        tooltip=[
            "group",
            "round",
            *(alt.Tooltip(name, format=",.4~g") for name in ("mean", "low", "high")),
            "runs",
        ],
    )
    chart: alt.TopLevelMixin = alt.layer(shade, line).properties(height=round(HEIGHT * 0.7))

    return chart


def distribution(name: str, comparison: Comparison, figures: PageFigures) -> alt.Chart:
    """Draw which share of all values is at least so large, in each group.

    Args:
        name: The distribution.
        comparison: The comparison.
        figures: The figures of the page.
    """
    parts = []
    for group, runs in zip(comparison.groups, comparison.measured, strict=True):
        counts: Counter[float] = Counter()
        for run in runs:
            counts.update(run.distributions.get(name, {}))
        found = pl.DataFrame(
            {"value": list(counts), "count": list(counts.values())},
            schema={"value": pl.Float64, "count": pl.Int64},
        ).sort("value", descending=True)
        share = pl.col("count").cum_sum() / pl.col("count").sum()
        parts.append(found.with_columns(group=pl.lit(group.label), share=share))

    table = pl.concat(parts).sort("group", "value")
    values: list[float] = table["value"].to_list()
    least, most = min(values), max(values)
    is_long = least > 0 and most / least > _DECADES
    scale = alt.Scale(type="log") if is_long else alt.Scale(zero=False)
    heights = alt.Scale(type="log") if is_long else alt.Scale(zero=True)
    axis = alt.Axis(format=",d", grid=False, tickMinStep=1, tickCount=5)
    chart: alt.Chart = (
        alt.Chart(table)
        .mark_line(interpolate="step-before", strokeWidth=2)
        .encode(
            alt.X("value:Q", title=f"{name}, at least", scale=scale, axis=axis),
            alt.Y("share:Q", scale=heights, axis=alt.Axis(format="~%", tickCount=5)),
            figures.colour("group", colours_of(comparison)),
            tooltip=["group", "value", alt.Tooltip("share", format=".2%"), "count"],
        )
        .properties(height=round(HEIGHT * 0.7))
    )

    return chart
