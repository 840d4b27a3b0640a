"""The number of agents in each state, over time."""

from __future__ import annotations

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.page_figures import PageFigures
from prism.report._figures.stacking import Bars, draw_bars
from prism.report._figures.timeline import Timeline, states_timeline

EXPLANATION = (
    "Counted at the end of every tick, before the end of a round sends all to idle; in a log "
    "without ticks, at the end of every round or step of time."
)
NOTHING = "The log names no agent."

_BY_CHART = Markup("<h3>By the chart {}</h3>")
_RHYTHM = Markup(
    '<h3>Within a round</h3><p class="soft">How many agents are in each state at each tick: '
    "the mean of all rounds.</p>"
)


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Where to add the figures.
    """
    if facts.states.is_empty():
        return None
    if "chart" not in facts.states.columns:
        return _draw(facts.states, name, figures)

    charts = facts.states.partition_by("chart", maintain_order=True, include_key=True)
    parts = [
        _BY_CHART.format(counts["chart"][0] or "without a name")
        + _draw(counts, f"{name}-{number}", figures)
        for number, counts in enumerate(charts, start=1)
    ]

    return Markup("").join(parts)


def _draw(counts: pl.DataFrame, name: str, figures: PageFigures) -> Markup:
    timeline = states_timeline(counts, by_round=figures.by_round)
    about = "Agents in each state over time, one state above the other"
    figure = figures.add_chart(f"states-{name}", _stacked(timeline, figures), about)

    # A timeline of means over rounds does not show what happens within them.
    if "tick" not in counts.columns or "tick" in timeline.table.columns:
        return figure

    rhythm = _rhythm(counts)
    if rhythm is None:
        return figure

    about = "Agents in each state within a round, the mean of all rounds"

    return (
        figure
        + _RHYTHM
        + figures.add_chart(f"rhythm-{name}", _stacked(rhythm, figures, 0.6), about)
    )


def _rhythm(counts: pl.DataFrame) -> Timeline | None:
    """Return the mean round; None if there are not several rounds of several ticks."""
    rounds = counts.filter(pl.col("round") > 0)
    if rounds["tick"].n_unique() < 2 or rounds["round"].n_unique() < 2:
        return None

    mean = rounds.group_by("tick", "state", maintain_order=True).agg(
        pl.col("agents", "share").mean()
    )

    return states_timeline(mean.with_columns(round=pl.lit(1, pl.Int64)), by_round=False)


def _stacked(timeline: Timeline, figures: PageFigures, height: float = 1.0) -> alt.Chart:
    bars = Bars(
        "agents",
        "state",
        figures.state_colours(timeline.table["state"]),
        "agents",
        is_full=True,
        height=height,
    )
    return draw_bars(timeline, bars, figures)
