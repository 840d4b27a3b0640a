"""The measures of a world as time series, with the rounds in which it was treated."""

from __future__ import annotations

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.colours import BLUE, GREY
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import HEIGHT, PageFigures

EXPLANATION = (
    "What the world measured at the end of each round. A dashed line marks a round at whose "
    "beginning a treatment was applied."
)
NOTHING = "The run measured nothing."

MOST_DRAWN = 24
"""Most measures that are drawn; the table has all."""

_MOST_ROUNDS = 1000
_MOST_POINTS = 60


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Where to add the figures.
    """
    if facts.measures.is_empty():
        return None

    drawn = facts.measures["measure"].unique(maintain_order=True).head(MOST_DRAWN)
    parts = [
        figures.add_chart(
            f"measure-{name}-{number}",
            _series(facts.measures.filter(measure=measure), facts.treatments, measure),
            f"The measure {measure} in each round",
        )
        for number, measure in enumerate(drawn, start=1)
    ]

    return Markup('<div class="half">{}</div>{}').format(
        Markup("").join(parts), html_table(f"measures-{name}", _described(facts.measures))
    )


def _described(measures: pl.DataFrame) -> pl.DataFrame:
    value = pl.col("value")
    return measures.group_by("measure", maintain_order=True).agg(
        first=value.drop_nulls().first(),
        last=value.drop_nulls().last(),
        least=value.min(),
        most=value.max(),
        mean=value.mean(),
    )


def _series(values: pl.DataFrame, treatments: pl.DataFrame, measure: str) -> alt.LayerChart:
    step = -(-values.height // _MOST_ROUNDS)
    shown = values.select("round", "value").gather_every(step)
    point = alt.OverlayMarkDef(color=BLUE, size=14) if shown.height <= _MOST_POINTS else False
    x = alt.X(
        "round:Q",
        title="round" if step == 1 else f"round (each {step}th)",
        axis=alt.Axis(format=",d", grid=False, tickMinStep=1),
        scale=alt.Scale(zero=False, nice=False),
    )
    y = alt.Y("value:Q", title=measure, scale=alt.Scale(zero=True))
    line = (
        alt.Chart(shown)
        # where there was nothing to measure the line is interrupted
        .mark_line(color=BLUE, point=point, invalid="break-paths-show-domains")
        .encode(x, y, tooltip=["round", alt.Tooltip("value:Q", format=",.4~g", title=measure)])
    )
    layers = [line]
    if treatments.height:
        marks = treatments.group_by("round", maintain_order=True).agg(
            pl.col("treatment").str.join(", ")
        )
        rule = alt.Chart(marks).mark_rule(color=GREY, strokeDash=[4, 3], strokeWidth=1.5)
        layers.insert(0, rule.encode(x, tooltip=["treatment", "round"]))

    chart: alt.LayerChart = alt.LayerChart(layer=layers).properties(height=round(HEIGHT * 0.7))

    return chart
