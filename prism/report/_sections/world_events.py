"""The events that a world has logged itself."""

from __future__ import annotations

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.colours import colour_of
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures
from prism.report._figures.stacking import Bars, draw_bars
from prism.report._figures.timeline import rounds_timeline

EXPLANATION = (
    "What the world logged by names of its own. Round 0 is its setup. One kind with all its keys:  "
    "prism log world RUN --event NAME"
)
NOTHING = "The world logged no events of its own."

_MOST_DRAWN = 10
_MOST = 100


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
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
