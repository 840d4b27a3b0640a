"""What only worlds have: their measures, treatments, and the events that they logged themselves."""

from __future__ import annotations

from typing import Any

import altair as alt
import orjson
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table, shown
from prism.report._figures.page_figures import BLUE, GREY, HEIGHT, PageFigures, colour_of
from prism.report._figures.timeline import Bars, draw_bars, rounds_timeline

MEASURES_EXPLANATION = (
    "What the world measured at the end of each round. A dashed line marks a round at whose "
    "beginning a treatment was applied."
)
MEASURES_NOTHING = "The run measured nothing."

MOST_DRAWN = 24
"""Most measures that are drawn; the table has all."""

_MOST_ROUNDS = 1000
_MOST_POINTS = 60


def make_measures(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
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


TREATMENTS_EXPLANATION = (
    "The rounds at whose beginning a treatment was applied, and the parameters it changed."
)
TREATMENTS_NOTHING = "The run was given no treatment."

_MOST = 100


def make_treatments(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:  # noqa: ARG001
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Not used: the measures have the marks.
    """
    if facts.treatments.is_empty():
        return None

    changes = pl.Series("changed", map(_changes, facts.treatments["parameters"]), dtype=pl.String)
    table = facts.treatments.select("round", "treatment", changes)

    return html_table(f"treatments-{name}", table, {"changed": "changed parameters"}, most=_MOST)


def _changes(text: str | None) -> str:
    try:
        changed = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:  # a long text is cut
        return text or ""

    if not isinstance(changed, dict):
        return text or ""
    return ", ".join(f"{name} {_value(value)}" for name, value in changed.items()) or "none"


def _value(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return shown(value) if is_number else str(value)


WORLD_EVENTS_EXPLANATION = (
    "What the world logged by names of its own. Round 0 is its setup. One kind with all its keys:  "
    "prism log world RUN --event NAME"
)
WORLD_EVENTS_NOTHING = "The world logged no events of its own."

_MOST_DRAWN = 10


def make_world_events(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Where to add the figure.
    """
    if facts.own_events.is_empty():
        return None

    number, events = pl.col("round"), pl.col("events")
    table = (
        facts.own_events.group_by("event")
        .agg(
            events=events.sum(),
            first=number.min(),
            last=number.max(),
            most=events.max(),
        )
        .sort(events.neg(), "event")
    )
    drawn = facts.own_events.filter(
        pl.col("event").is_in(table["event"].head(_MOST_DRAWN).implode())
    )
    figure = figures.add_chart(
        f"events-{name}", _bars(drawn, figures), "The world's own events in each round"
    )
    headings = {"first": "first round", "last": "last round", "most": "most in a round"}

    return figure + html_table(f"events-{name}", table, headings, most=_MOST)


def _bars(counts: pl.DataFrame, figures: PageFigures) -> alt.Chart:
    names = sorted(counts["event"].unique())
    # the first colours of states are faint or very dark: these are neither
    colours = {name: colour_of(place + 3) for place, name in enumerate(names)}
    bars = Bars("events", "event", colours, "events", height=0.6)

    return draw_bars(rounds_timeline(counts.drop("agents")), bars, figures)
