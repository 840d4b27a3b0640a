"""Sections for worlds: their measures, their treatments, and the events they logged."""

from __future__ import annotations

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import BLUE, GREY, HEIGHT, PageFigures, colour_of, tips
from prism.report._figures.timeline import Bars, draw_bars, rounds_timeline, thinned_rounds
from prism.report._sections.kinds import Kind
from prism.report._sections.picture import draw_picture

MOST_DRAWN = 24
"""Most measures to draw; the table has all of them."""

_MOST_ROUNDS = 1000
_MOST_POINTS = 60


def _measures(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
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
    shown, x = thinned_rounds(values.select("round", "value"), _MOST_ROUNDS)
    point = alt.OverlayMarkDef(color=BLUE, size=14) if shown.height <= _MOST_POINTS else False
    y = alt.Y("value:Q", title=measure, scale=alt.Scale(zero=True))
    line = (
        alt.Chart(shown)
        # the line is interrupted if there was nothing to measure
        .mark_line(color=BLUE, point=point, invalid="break-paths-show-domains")
        .encode(x, y, tooltip=tips("round", ("value:Q", ",.4~g", measure)))
    )
    layers = [line]
    if treatments.height:
        marks = treatments.group_by("round", maintain_order=True).agg(
            pl.col("treatment").str.join(", ")
        )
        rule = alt.Chart(marks).mark_rule(color=GREY, strokeDash=[4, 3], strokeWidth=1.5)
        layers.insert(0, rule.encode(x, tooltip=tips("treatment", "round")))

    chart: alt.LayerChart = alt.LayerChart(layer=layers).properties(height=round(HEIGHT * 0.7))

    return chart


MEASURES = Kind(
    "measures",
    "Measures",
    "Measured at the end of each round. A dashed line marks a round that began with a treatment.",
    "The run measured nothing.",
    _measures,
)

_MOST = 100


_MOST_DRAWN = 10


def _world_events(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if facts.own_events.is_empty():
        return None

    number, events = pl.col("round"), pl.col("events")
    table = (
        facts.own_events.group_by("event")
        .agg(events=events.sum(), first=number.min(), last=number.max(), most=events.max())
        .sort(events.neg(), "event")
    )
    drawn = facts.own_events.join(table.head(_MOST_DRAWN), "event", "semi", maintain_order="left")
    figure = figures.add_chart(
        f"events-{name}", _bars(drawn, figures), f"The world's own events in each {figures.unit}"
    )
    headings = {"first": "first round", "last": "last round", "most": "most in a round"}

    return figure + html_table(f"events-{name}", table, headings, most=_MOST)


def _bars(counts: pl.DataFrame, figures: PageFigures) -> alt.Chart:
    names = sorted(counts["event"].unique())
    # the first colours of states are faint or very dark, but these are neither
    colours = {name: colour_of(place + 3) for place, name in enumerate(names)}
    bars = Bars("events", "event", colours, "events", height=0.6)

    return draw_bars(rounds_timeline(counts.drop("agents"), figures.unit), bars, figures)


WORLD_EVENTS = Kind(
    "events",
    "World events",
    "Events that the world logged under its own names. Round 0 is its setup. For one kind with "
    "all its keys:  prism log world RUN --event NAME",
    "The world logged no events of its own.",
    _world_events,
)


def _picture(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    return None if facts.picture is None else draw_picture(facts.picture, name, figures)


PICTURE = Kind(
    "picture",
    "The world",
    "The agents after the last round, in the colours of their states or those that the world "
    "defines.",
    "The run has no picture.",
    _picture,
)
