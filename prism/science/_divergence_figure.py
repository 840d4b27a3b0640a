"""The divergence of a model and a policy, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

_WIDTH, _STEP = 420, 18


def divergence_figure(table: pl.DataFrame) -> dict[str, Any]:
    """Draw what `divergence` returned: a dot for the policy, a bar for the model's own floor.

    Args:
        table: The divergences.

    Returns:
        The figure as Vega-Lite.
    """
    import altair as alt

    rows = table.to_dicts()
    order = list(dict.fromkeys(row["level"] for row in rows))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("level:N", sort=order, title=None, axis=alt.Axis(labelLimit=240))
    )
    title = "Jensen-Shannon divergence (bits)"
    floor = base.mark_bar(color="#c8cdd4", height=10).encode(
        x=alt.X("floor_high:Q", title=title, scale=alt.Scale(domainMin=0))
    )
    interval = base.mark_rule(color="#b5541c").encode(x=alt.X("low:Q", title=title), x2="high:Q")
    whole = base.mark_tick(color="#b5541c", thickness=2).encode(
        x=alt.X("divergence:Q", title=title)
    )
    halves = base.mark_point(filled=True, color="#1f5fa8", size=60, opacity=1).encode(
        x=alt.X("halves:Q", title=title),
        tooltip=["level:N", "n:Q", "halves:Q", "floor:Q", "floor_high:Q"],
    )
    layers = alt.layer(floor, interval, whole, halves).properties(
        width=_WIDTH, height=alt.Step(_STEP)
    )
    drawn = layers.facet(
        row=alt.Row(
            "by:N",
            title=None,
            sort=list(dict.fromkeys(row["by"] for row in rows)),
            header=alt.Header(labelAngle=0, labelAlign="left", labelPadding=12),
        )
    ).resolve_scale(y="independent")
    subtitle = [
        "Dot: one half of the model against the policy.",
        "Bar: 97.5 % of the model's halves against each other.",
        "Tick and line: everything, with its 95 % interval.",
    ]

    spec: dict[str, Any] = drawn.properties(
        title=alt.TitleParams("Model and policy", subtitle=subtitle, anchor="start")
    ).to_dict()
    return spec
