"""The figures of a fit: the posterior of each parameter, and the results beside the targets."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import altair as alt
import polars as pl

from prism.science._arrays import np
from prism.science._libraries import library

_WIDTH, _HEIGHT, _ROW = 260, 110, 34
_BLUE, _ORANGE, _GREY = "#1f5fa8", "#b5541c", "#8a8a8a"
_STEPS = 120
_LONGEST_LINE = 48


def posterior_figure(
    posterior: pl.DataFrame, estimates: pl.DataFrame, scales: Mapping[str, str]
) -> dict[str, Any]:
    """Draw the density of each parameter before and after the fit, as Vega-Lite.

    Args:
        posterior: What `Fit.posterior` returns.
        estimates: What `Fit.estimates` returns.
        scales: The scale of each parameter, ``linear`` or ``log``.
    """
    rows = estimates.to_dicts()
    charts = [_density(posterior, row, is_log=scales[row["parameter"]] == "log") for row in rows]
    figure: dict[str, Any] = alt.concat(*charts, columns=2).to_dict()

    return figure


def targets_figure(targets: pl.DataFrame) -> dict[str, Any]:
    """Draw each target with its spread, and the figure of the fit with its interval.

    Args:
        targets: What `Fit.targets` returns.
    """
    charts = [_target(row) for row in targets.to_dicts()]
    figure: dict[str, Any] = alt.vconcat(*charts, spacing=10).to_dict()

    return figure


def _density(posterior: pl.DataFrame, row: dict[str, Any], *, is_log: bool) -> Any:
    """Draw the weighted kernel density of one parameter, its interval, and the flat prior."""
    name = row["parameter"]
    read, write = (np.log, np.exp) if is_log else (np.array, np.array)
    least, most = read(row["least"]), read(row["most"])
    places = np.linspace(least, most, _STEPS)
    values = read(posterior[name].to_numpy())
    if np.ptp(values) > 0:
        kernel = library("scipy.stats").gaussian_kde(values, weights=posterior["weight"].to_numpy())
        heights = kernel(places) * (most - least)
    else:
        heights = np.zeros(_STEPS)

    table = pl.DataFrame({"value": write(places), "after": heights})
    title = f"{name} (median {row['median']:.3g}, 90 % {row['low']:.3g} to {row['high']:.3g})"
    x = alt.X(
        "value:Q",
        title=[title, *wrap(row["remark"], _LONGEST_LINE)] if row["remark"] else title,
        scale=alt.Scale(type="log" if is_log else "linear", nice=False, zero=False),
    )
    curve = (
        alt.Chart(table)
        .mark_area(color=_BLUE, opacity=0.5)
        .encode(x, alt.Y("after:Q", title="density / prior", axis=alt.Axis(tickCount=4)))
    )
    flat = alt.Chart(pl.DataFrame({"prior": [1.0]}))
    prior = flat.mark_rule(color=_GREY, strokeDash=[4, 3]).encode(y="prior:Q")
    ends = alt.Chart(pl.DataFrame({"end": [row["low"], row["median"], row["high"]]}))
    chart: Any = alt.layer(curve, prior, ends.mark_rule(color=_BLUE).encode(x="end:Q"))

    return chart.properties(width=_WIDTH, height=_HEIGHT)


def _target(row: dict[str, Any]) -> Any:
    """Draw one target: its spread above, the interval of the fit below."""
    value, spread = row["value"], row["spread"]
    held = " (held out)" if row["held_out"] else ""
    sides = [
        (f"target{held}", value, value - spread, value + spread),
        ("fit", row["mean"], row["low"], row["high"]),
    ]
    table = pl.DataFrame(sides, schema=["what", "at", "from", "to"], orient="row")
    names = [each[0] for each in sides]
    base = alt.Chart(table).encode(
        y=alt.Y("what:N", sort=names, title=None, axis=alt.Axis(minExtent=110)),
        color=alt.Color(
            "what:N", scale=alt.Scale(domain=names, range=[_ORANGE, _BLUE]), legend=None
        ),
    )
    x = alt.Scale(zero=False)
    line = base.mark_rule(strokeWidth=2).encode(alt.X("from:Q", scale=x, title=None), x2="to:Q")
    dot = base.mark_point(filled=not row["held_out"], size=60, opacity=1).encode(x="at:Q")
    parts = [row["measure"], row["arm"], row["round"] and f"round {row['round']}"]
    title = ", ".join(str(each) for each in parts if each)
    return alt.layer(line, dot).properties(
        width=2 * _WIDTH, height=_ROW, title=alt.TitleParams(title, anchor="start", fontSize=11)
    )
