"""Sections for worlds: their measures, their treatments, and the events they logged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import orjson
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table, shown
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

_MOST_AGENT_MEASURES = 12
_MOST_LINES = 30
_MOST_ROUNDS_OF_AGENTS = 200
_BINS = 20
_POINTS = 10
"""Number of values that represent the agents between two quantiles."""

_BY = ["kind", "measure"]


def _agent_measures(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    table = facts.of_agents.drop_nulls("value")
    if table.is_empty():
        return None

    parts = []
    groups = table.group_by(_BY, maintain_order=True)
    for number, ((kind, measure), rows) in enumerate(groups, start=1):
        if number > _MOST_AGENT_MEASURES:
            break

        title = f"{measure} of {kind}"
        parts += [
            figures.add_chart(
                f"agents-{name}-{number}", _courses(rows, title), f"{title} in each round"
            ),
            figures.add_chart(
                f"spread-{name}-{number}", _histogram(rows, title), f"The spread of {title}"
            ),
        ]

    return Markup('<div class="half">{}</div>{}').format(
        Markup("").join(parts), html_table(f"agents-{name}", _described_ends(table))
    )


def _everybody(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that represent all agents: the quantiles of many, or else the agents."""
    found = rows.filter(pl.col("quantile").is_not_null().any().over([*_BY, "round"]))
    return found.drop_nulls("quantile") if found.height else rows


def _described_ends(table: pl.DataFrame) -> pl.DataFrame:
    """Describe the first and the last round."""
    value, number = pl.col("value"), pl.col("round")
    ends = number.is_in([table["round"].min(), table["round"].max()])
    groups = _everybody(table).filter(ends).group_by([*_BY, "round"], maintain_order=True)

    return groups.agg(
        least=value.min(),
        quarter=value.quantile(0.25, "linear"),
        median=value.median(),
        three_quarters=value.quantile(0.75, "linear"),
        most=value.max(),
    )


def _courses(rows: pl.DataFrame, title: str) -> alt.LayerChart:
    """Draw the median, the band with nine of ten agents, and the courses of some."""
    value = pl.col("value")
    all_rounds = (
        _everybody(rows)
        .group_by("round", maintain_order=True)
        .agg(
            low=value.quantile(0.05, "linear"),
            median=value.median(),
            high=value.quantile(0.95, "linear"),
        )
        .sort("round")
    )
    shown, x = thinned_rounds(all_rounds, _MOST_ROUNDS_OF_AGENTS)
    each = rows.drop_nulls("agent_id")
    some = each["agent_id"].unique(maintain_order=True).head(_MOST_LINES)
    lines = each.filter(
        pl.col("agent_id").is_in(some.to_list()), pl.col("round").is_in(shown["round"].to_list())
    ).select("round", "agent_id", "value")

    y = alt.Y("median:Q", title=title)
    band = alt.Chart(shown).mark_area(color=BLUE, opacity=0.15)
    courses = alt.Chart(lines).mark_line(color=GREY, opacity=0.5, strokeWidth=0.7)
    middle = alt.Chart(shown).mark_line(color=BLUE, strokeWidth=2)
    layers = (
        band.encode(x, alt.Y("low:Q", title=title), alt.Y2("high:Q")),
        courses.encode(
            x, alt.Y("value:Q", title=title), detail="agent_id:N", tooltip=tips("agent_id", "round")
        ),
        middle.encode(x, y, tooltip=tips("round", "low", "median", "high")),
    )
    chart: alt.LayerChart = alt.LayerChart(layer=list(layers))

    return chart.properties(height=round(HEIGHT * 0.7))


def _histogram(rows: pl.DataFrame, title: str) -> alt.LayerChart:
    """Draw the shares of agents by their values, in the first and in the last round."""
    numbers = rows["round"]
    first, last = (
        _points(rows.filter(pl.col("round") == number)) for number in (numbers.min(), numbers.max())
    )
    edges = _edges([*first, *last])
    x = alt.X("begin:Q", title=title, scale=alt.Scale(zero=False, nice=False))
    y, ground = alt.Y("share:Q", title="share of agents"), alt.Y2Datum(0)
    bars = alt.Chart(_shares(last, edges)).mark_bar(color=BLUE, opacity=0.7)
    outline = alt.Chart(_shares(first, edges)).mark_bar(fillOpacity=0, stroke=GREY)
    seen = tips("begin", "end", ("share:Q", ".1%", "share"))
    layers = (
        bars.encode(x, alt.X2("end:Q"), y, ground, tooltip=seen),
        outline.encode(x, alt.X2("end:Q"), y, ground),
    )
    chart: alt.LayerChart = alt.LayerChart(layer=list(layers))

    return chart.properties(height=round(HEIGHT * 0.7))


def _points(rows: pl.DataFrame) -> list[float]:
    """Return the values of one round, interpolated between quantiles if there are many agents."""
    everybody = _everybody(rows)
    values = everybody["value"].to_list()
    if everybody["quantile"].null_count():
        return values

    return [
        low + (high - low) * (step + 0.5) / _POINTS
        for low, high in pairwise(values)
        for step in range(_POINTS)
    ]


def _edges(values: Sequence[float]) -> list[float]:
    """Return the edges of the bars: one per value for a few whole numbers, or else twenty."""
    least, most = min(values), max(values)
    if all(value == int(value) for value in values) and most - least <= _BINS:
        return [least - 0.5 + step for step in range(int(most - least) + 2)]

    width = (most - least) / _BINS or 1.0
    return [least + width * step for step in range(_BINS + 1)]


def _shares(values: Sequence[float], edges: Sequence[float]) -> pl.DataFrame:
    counts = [0] * (len(edges) - 1)
    for value in values:
        place = int((value - edges[0]) / (edges[1] - edges[0]))
        counts[min(place, len(counts) - 1)] += 1

    shares = [count / len(values) for count in counts]
    return pl.DataFrame({"begin": edges[:-1], "end": edges[1:], "share": shares})


AGENT_MEASURES = Kind(
    "agent-measures",
    "Agents\u2019 measures",
    "Measures of each agent. Left: the median, a band with nine of ten agents, and the courses of"
    " some. Right: the distribution in the last round, with the first as an outline. For all "
    "values:  prism log agent-measures RUN",
    "Nothing was measured of agents.",
    _agent_measures,
)

_MOST = 100


def _treatments(facts: RunFacts, name: str, _figures: PageFigures) -> Markup | None:
    """Make the part of one run, without a figure, since the figures of measures have the marks."""
    if facts.treatments.is_empty():
        return None

    changes = pl.Series("changed", map(_changes, facts.treatments["parameters"]), dtype=pl.String)
    table = facts.treatments.select("round", "treatment", changes)

    return html_table(f"treatments-{name}", table, {"changed": "changed parameters"}, most=_MOST)


def _changes(text: str | None) -> str:
    try:
        changed = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:  # a long text was cut
        return text or ""

    if not isinstance(changed, dict):
        return text or ""
    return ", ".join(f"{name} {_value(value)}" for name, value in changed.items()) or "none"


def _value(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return shown(value) if is_number else str(value)


TREATMENTS = Kind(
    "treatments",
    "Treatments",
    "The rounds that began with a treatment, and the parameters that it changed.",
    "The run was given no treatment.",
    _treatments,
)

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
