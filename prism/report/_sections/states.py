"""The number of agents in each state over time, and how long agents stay in it."""

from __future__ import annotations

from collections.abc import Sequence, Set

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.analysis._tables.levels import Inside, depth_of, on_level_of
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import INK, PAPER, PageFigures, tips
from prism.report._figures.timeline import Bars, Timeline, draw_bars, states_timeline
from prism.report._sections.kinds import Kind
from prism.statechart.states import SEPARATOR

_BY_CHART = Markup("<h3>By the chart {}</h3>")
_LEVEL = Markup("<h3>Level {} of the chart</h3>")
_SEVERAL = Markup('<p class="soft">An agent in several regions counts in each of them.</p>')
_MOST_LEVELS = 4


def _states(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if facts.is_of_turns or facts.states.is_empty():
        return None
    trees = facts.run.charts
    if "chart" not in facts.states.columns:
        only: Inside = next(iter(trees.values()), {})
        return _draw(facts.states, name, figures) + _by_level(facts.states, only, name, figures)

    charts = facts.states.partition_by("chart", maintain_order=True, include_key=True)
    parts = [
        _BY_CHART.format(counts["chart"][0] or "without a name")
        + _draw(counts, f"{name}-{number}", figures)
        + _by_level(counts, trees.get(counts["chart"][0], {}), f"{name}-{number}", figures)
        for number, counts in enumerate(charts, start=1)
    ]

    return Markup("").join(parts)


def _by_level(counts: pl.DataFrame, inside: Inside, name: str, figures: PageFigures) -> Markup:
    """Draw the agents on each level of a chart with nested states."""
    if not inside:
        return Markup("")

    parts = [Markup("")]
    has_regions = counts["state"].str.contains(SEPARATOR, literal=True).any()
    # without regions, the last level has already been drawn
    deepest = depth_of(inside) - (not has_regions)
    for depth in range(1, min(deepest, _MOST_LEVELS) + 1):
        level = on_level_of(counts.drop("chart", strict=False), inside, depth)
        timeline = states_timeline(level, by_round=figures.by_round, unit=figures.unit)
        about = f"Agents in each state on level {depth} of the chart, one state above the other"
        drawn = figures.add_chart(f"levels-{name}-{depth}", _stacked(timeline, figures, 0.6), about)
        parts += [_LEVEL.format(depth), *[_SEVERAL] * has_regions, drawn]

    return Markup("").join(parts)


STATES = Kind(
    "states",
    "Agents in each state",
    "How many agents are in each state at the end of a tick; what closes a round counts in the "
    "next tick. A log without ticks is counted by rounds or steps of time.",
    "No tick with agents has ended.",
    _states,
    lambda facts: not facts.is_of_turns,
)


def _draw(counts: pl.DataFrame, name: str, figures: PageFigures) -> Markup:
    timeline = states_timeline(counts, by_round=figures.by_round, unit=figures.unit)
    about = "Agents in each state over time, one state above the other"
    return figures.add_chart(f"states-{name}", _stacked(timeline, figures), about)


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


_ROW = 26
_TENS = tuple(digit * 10**power for power in range(1, 10) for digit in (1, 2, 5))
_SYMLOG_LABELS = (0, 1, 2, 3, 5, *_TENS)


def _dwelling(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if facts.is_of_turns or facts.dwelling.is_empty():
        return None

    beside = [run.dwelling for run in figures.runs]
    if "chart" not in facts.dwelling.columns:
        return _draw_dwelling(facts, facts.dwelling, beside, name, figures)

    parts = []
    charts = facts.dwelling["chart"].unique(maintain_order=True)
    for number, chart in enumerate(charts, start=1):
        own, *others = (_by_chart(dwelling, chart) for dwelling in (facts.dwelling, *beside))
        parts.append(_BY_CHART.format(chart or "without a name"))
        parts.append(_draw_dwelling(facts, own, others, f"{name}-{number}", figures))

    return Markup("").join(parts)


DWELLING = Kind(
    "dwell",
    "How long agents stay",
    "Ticks from entering a state to leaving it: the median (tick), the mean (diamond), the 90th "
    "percentile (end of the bar) and the 99th (end of the line). Visits that were cut short are "
    "censored (Kaplan and Meier 1958). Where events happen at rates, times are in rounds.",
    "No transition says how long its agent had stayed.",
    _dwelling,
    lambda facts: not facts.is_of_turns,
)


def _by_chart(table: pl.DataFrame, chart: str | None) -> pl.DataFrame:
    return table.filter(pl.col("chart").eq_missing(pl.lit(chart))).drop("chart")


def _draw_dwelling(
    facts: RunFacts,
    dwelling: pl.DataFrame,
    beside: Sequence[pl.DataFrame],
    name: str,
    figures: PageFigures,
) -> Markup:
    """Draw the visits of one chart; `beside` has those of all runs of the page."""
    unit = "rounds" if facts.run.seconds_per_round else "ticks"
    states = {state for other in beside for state in other["state"]}
    about = f"{unit.capitalize()} that agents stay in each state"
    figure = figures.add_chart(f"dwell-{name}", _overview(dwelling, states, unit, figures), about)

    headings = {"timeout_share": "by time-out", "zero": f"of no {unit[:-1]}"}
    ordered = facts.in_order(dwelling.drop("at_risk"), "state")

    return figure + html_table(f"dwell-{name}", ordered, headings)


def _overview(
    dwelling: pl.DataFrame, beside: Set[str], unit: str, figures: PageFigures
) -> alt.LayerChart:
    # a percentile that no observed visit reaches is beyond the longest visit
    dwelling = dwelling.with_columns(pl.coalesce(name, "max") for name in ("median", "p90", "p99"))
    is_timed = unit == "rounds"
    mean = pl.col("mean").max()
    longest = pl.max_horizontal(pl.col("p99").max(), mean if is_timed else mean.ceil())
    most = dwelling.select(longest).item() or 1
    axis = alt.Axis(values=[label for label in _SYMLOG_LABELS if label <= most], format=",d")
    scale = alt.Scale(type="symlog", constant=1, domain=[0, most], nice=False)
    if is_timed:  # times have no least length
        axis, scale = alt.Axis(tickCount=6), alt.Scale(domain=[0, most], nice=False)
    colours = figures.state_colours(dwelling["state"])
    lengths = ("median", "p90", "p99", "max")
    told_lengths = [(f"{name}:Q", ".3g") for name in lengths] if is_timed else lengths
    tooltip = tips("state", "visits", ("mean:Q", ".3g"), *told_lengths)
    rows = alt.Y("state:N", sort=list(colours), title=None, axis=alt.Axis(labelLimit=170))
    base = alt.Chart(dwelling).encode(rows, tooltip=tooltip)
    coloured = base.encode(
        alt.X(
            "median:Q",
            scale=scale,
            axis=axis,
            title=f"{unit} in the state",
        ),
        figures.colour("state", colours, legend=False),
    )
    layers = [
        coloured.mark_rule(strokeWidth=2).encode(alt.X2("p99")),
        coloured.mark_bar(height=10, opacity=1).encode(alt.X2("p90")),
        coloured.mark_tick(thickness=4, height=16, opacity=1),
        base.mark_point(
            fill=INK, stroke=PAPER, strokeWidth=1, size=60, opacity=1, shape="diamond"
        ).encode(alt.X("mean:Q")),
    ]
    # The same rows as in the figures beside it, which show the states of all runs.
    rows_shown = len(beside | set(colours))
    chart: alt.LayerChart = alt.LayerChart(layer=layers).properties(height=_ROW * rows_shown)

    return chart
