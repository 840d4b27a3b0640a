"""The number of agents in each state over time, and how long agents stay in it."""

from __future__ import annotations

from collections.abc import Sequence, Set

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.analysis._tables.levels import Inside, depth_of, on_level_of
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import GREY, INK, PAPER, PageFigures, tips
from prism.report._figures.timeline import Bars, Timeline, draw_bars, states_timeline
from prism.report._sections.kinds import Kind
from prism.statechart._nesting import SEPARATOR

_BY_CHART = Markup("<h3>By the chart {}</h3>")
_LEVEL = Markup("<h3>Level {} of the chart</h3>")
_SEVERAL = Markup('<p class="soft">An agent in several regions counts in each of them.</p>')
_MOST_LEVELS = 4
_RHYTHM = Markup(
    '<h3>Within a round</h3><p class="soft">How many agents are in each state at each tick: '
    "the mean of all rounds.</p>"
)


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
    """Return the mean round; None without several rounds of several ticks."""
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


_MOST_BARS = 30
_ROW = 26
_HALF_BAR = 0.45
_TENS = tuple(digit * 10**power for power in range(1, 10) for digit in (1, 2, 5))
_SYMLOG_LABELS = (0, 1, 2, 3, 5, *_TENS)


def _dwelling(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if facts.is_of_turns or facts.dwelling.is_empty():
        return None

    beside = [(run.visits, run.dwelling) for run in figures.runs]
    if "chart" not in facts.dwelling.columns:
        return _draw_dwelling(facts, facts.visits, facts.dwelling, beside, name, figures)

    parts = []
    charts = facts.dwelling["chart"].unique(maintain_order=True)
    for number, chart in enumerate(charts, start=1):
        (own, dwelling), *others = (
            (_by_chart(visits, chart), _by_chart(dwelling, chart))
            for visits, dwelling in [(facts.visits, facts.dwelling), *beside]
        )
        parts.append(_BY_CHART.format(chart or "without a name"))
        parts.append(_draw_dwelling(facts, own, dwelling, others, f"{name}-{number}", figures))

    return Markup("").join(parts)


DWELLING = Kind(
    "dwell",
    "How long agents stay",
    "Ticks from entering a state to leaving it. Above: the median (tick), the mean (diamond), the "
    "90th percentile (end of the bar) and the 99th (end of the line); visits that were cut short "
    "are censored (Kaplan and Meier 1958). Below: the share of visits of each length (bars), and "
    "what it would be with the same chance p of leaving in every tick (dots). The distance between "
    "the two is from 0 to 1 (Kolmogorov). Where events happen at rates, times are in rounds, and "
    "the dots are those of a constant rate.",
    "No transition says how long its agent had stayed.",
    _dwelling,
    lambda facts: not facts.is_of_turns,
)


def _by_chart(table: pl.DataFrame, chart: str | None) -> pl.DataFrame:
    return table.filter(pl.col("chart").eq_missing(pl.lit(chart))).drop("chart")


def _draw_dwelling(
    facts: RunFacts,
    visits: pl.DataFrame,
    dwelling: pl.DataFrame,
    beside: Sequence[tuple[pl.DataFrame, pl.DataFrame]],
    name: str,
    figures: PageFigures,
) -> Markup:
    """Draw the visits of one chart; `beside` has those of all runs of the page."""
    is_timed = "time" in visits.columns
    about = f"{'Rounds' if is_timed else 'Ticks'} that agents stay in each state"
    states = {state for _, other in beside for state in other["state"]}
    parts = [figures.add_chart(f"dwell-{name}", _overview(dwelling, states, figures), about)]

    fitted = fit_table(visits, dwelling)
    if fitted.height:
        fit = "exponential" if is_timed else "geometric"
        about = f"Visits of each length in each state, and the {fit} distribution fitted to them"
        reach = reaches([fit_table(*each) for each in beside] or [fitted])
        chart = _fits(fitted, reach, figures)
        parts.append(figures.add_chart(f"fit-{name}", chart, about, stretches=False))

    headings = {"timeout_share": "by time-out", "zero": "of no time" if is_timed else "of no tick"}
    hidden = ("p_se", "rate_se", "at_risk", "agent_ticks", "log_likelihood")
    ordered = facts.in_order(dwelling.drop(hidden, strict=False), "state")
    parts.append(html_table(f"dwell-{name}", ordered, headings))

    return Markup("").join(parts)


def fit_table(visits: pl.DataFrame, dwelling: pl.DataFrame) -> pl.DataFrame:
    """Compare the visits of each length with those of the fit, in bins if there are many lengths.

    Args:
        visits: Visits of one run, from `dwell_survival`.
        dwelling: Dwell times of the same run, from `dwell_times`.

    Returns:
        For every state that agents do not always leave after the first tick: ``state``, ``ticks``
        and ``until`` (the range of lengths), ``visits`` (complete ones), ``share`` (of the visits
        of one tick or more that end there, by the survival curve) and ``expected`` (P(ticks <= k <=
        until) = (1 - p)^(ticks - 1) - (1 - p)^until), up to the 99th percentile. Where events
        happen at rates, ``time`` and ``until`` are in rounds, and of an exponential distribution.
    """
    if "time" in visits.columns:
        return _timed_fit(visits, dwelling)

    ticks, width, last = pl.col("ticks"), pl.col("width"), pl.col("last")
    fits = dwelling.filter(pl.col("p").is_between(0, 1, closed="none")).select(
        "state", "p", last=pl.coalesce("p99", "max").clip(lower_bound=1)
    )
    fits = fits.with_columns(width=(last + _MOST_BARS - 1) // _MOST_BARS)

    before = pl.col("survival").shift(1, fill_value=1.0).over("state")
    timed = visits.with_columns(before=before).filter(ticks > 0)
    timed = timed.join(fits, on="state", maintain_order="left")
    share = (pl.col("before") - pl.col("survival")) / pl.col("before").first().over("state")
    shown = timed.select("state", "ticks", "last", "width", visits="exits", share=share)
    shown = shown.filter(ticks <= last)
    begin = (ticks - 1) // width * width + 1
    bins = shown.group_by("state", ticks=begin, maintain_order=True)
    binned = bins.agg(pl.col("visits", "share").sum())

    # Bins without visits are also drawn, since the fit expects some in them.
    lengths = pl.int_ranges(1, last + 1, "width", dtype=pl.Int64)
    grid = fits.with_columns(ticks=lengths).explode("ticks")
    filled = grid.join(binned, on=["state", "ticks"], how="left", maintain_order="left")

    until, stay = ticks + width - 1, 1 - pl.col("p")
    expected = stay.pow(ticks - 1) - stay.pow(until)

    return filled.select(
        "state",
        "ticks",
        until.alias("until"),
        pl.col("visits", "share").fill_null(0),
        expected=expected,
    )


def _timed_fit(visits: pl.DataFrame, dwelling: pl.DataFrame) -> pl.DataFrame:
    """Compare visits that are measured in rounds with those of an exponential distribution."""
    time, width, place = pl.col("time"), pl.col("width"), pl.col("place")
    fits = dwelling.filter(pl.col("rate") > 0).select(
        "state", "rate", last=pl.coalesce("p99", "max")
    )
    fits = fits.with_columns(width=pl.col("last") / _MOST_BARS)

    lost = pl.col("survival").shift(1, fill_value=1.0).over("state") - pl.col("survival")
    timed = visits.with_columns(lost=lost).filter(time > 0)
    stayed = (pl.col("lost") + pl.col("survival")).first().over("state")
    timed = timed.with_columns(lost=pl.col("lost") / stayed).join(fits, on="state")
    bar = (time / width).ceil().cast(pl.Int64).clip(1, _MOST_BARS) - 1
    shown = timed.filter(time <= pl.col("last")).with_columns(place=bar)
    binned = shown.group_by("state", "place").agg(
        visits=pl.col("exits").sum(), share=pl.col("lost").sum()
    )

    grid = fits.join(pl.select(place=pl.int_range(0, _MOST_BARS)), how="cross")
    filled = grid.join(binned, on=["state", "place"], how="left", maintain_order="left")
    begin, until, rate = place * width, (place + 1) * width, pl.col("rate")

    return filled.select(
        "state",
        begin.alias("time"),
        until.alias("until"),
        pl.col("visits", "share").fill_null(0),
        expected=(-rate * begin).exp() - (-rate * until).exp(),
    )


def reaches(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the ranges of the axes of each state for figures that are side by side.

    Args:
        tables: The table of each run, from `fit_table`.

    Returns:
        ``state``, ``begin`` and ``end`` of the axis of lengths, and ``reach`` of the axis of
        shares.
    """
    both = pl.max_horizontal("share", "expected")
    ranges = (
        table.select("state", **_bar(table), reach=both).cast({"begin": float, "end": float})
        for table in tables
    )
    return (
        pl.concat(ranges)
        .group_by("state", maintain_order=True)
        .agg(pl.col("begin").min(), pl.col("end").max(), pl.col("reach").max())
    )


def _bar(table: pl.DataFrame) -> dict[str, pl.Expr]:
    """Return where the bar of each length begins and ends."""
    if "time" in table.columns:
        return {"begin": pl.col("time"), "end": pl.col("until")}
    return {"begin": pl.col("ticks") - _HALF_BAR, "end": pl.col("until") + _HALF_BAR}


def _overview(dwelling: pl.DataFrame, beside: Set[str], figures: PageFigures) -> alt.LayerChart:
    # a percentile that no observed visit reaches is beyond the longest visit
    dwelling = dwelling.with_columns(pl.coalesce(name, "max") for name in ("median", "p90", "p99"))
    is_timed = "rate" in dwelling.columns
    mean = pl.col("mean").max()
    longest = pl.max_horizontal(pl.col("p99").max(), mean if is_timed else mean.ceil())
    most = dwelling.select(longest).item() or 1
    axis = alt.Axis(values=[label for label in _SYMLOG_LABELS if label <= most], format=",d")
    scale = alt.Scale(type="symlog", constant=1, domain=[0, most], nice=False)
    if is_timed:  # times have no least length
        axis, scale = alt.Axis(tickCount=6), alt.Scale(domain=[0, most], nice=False)
    unit = "rounds" if is_timed else "ticks"
    colours = figures.state_colours(dwelling["state"])
    lengths = ("median", "p90", "p99", "max")
    told_lengths = [(f"{name}:Q", ".3g") for name in lengths] if is_timed else lengths
    tooltip = tips("state", "visits", ("mean:Q", ".3g"), *told_lengths)
    rows = alt.Y("state:N", sort=list(colours), title=None, axis=alt.Axis(labelLimit=170))
    base = alt.Chart(dwelling.drop("log_likelihood")).encode(rows, tooltip=tooltip)
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


def _fits(fitted: pl.DataFrame, reach: pl.DataFrame, figures: PageFigures) -> alt.FacetChart:
    # A state that occurs only in other runs keeps its place, which is empty.
    length = "time" if "time" in fitted.columns else "ticks"
    nothing = reach.join(fitted, on="state", how="anti").select(
        "state",
        pl.lit(1, fitted.schema[length]).alias(length),
        until=pl.lit(1, fitted.schema["until"]),
        visits=pl.lit(0, pl.Int64),
        share=pl.lit(0.0),
        expected=pl.lit(0.0),
    )
    table = pl.concat([fitted, nothing])
    table = table.with_columns(**_bar(table), middle=(pl.col(length) + pl.col("until")) / 2)
    table = table.join(reach.rename({"begin": "from", "end": "to"}), on="state")

    colours = figures.state_colours(table["state"])
    shares = [(f"{share}:Q", ".2%") for share in ("share", "expected")]
    ends = [(f"{name}:Q", ".3g") if length == "time" else f"{name}:Q" for name in (length, "until")]
    told = tips("state:N", *ends, ("visits:Q", ","), *shares)
    base = alt.Chart().encode(tooltip=told)
    bars = _fit_bars(
        base, figures.colour("state", colours, legend=False), is_whole=length == "ticks"
    )
    dots = alt.OverlayMarkDef(color=INK, size=14)
    curve = base.mark_line(color=INK, strokeWidth=1, point=dots).encode(
        alt.X("middle:Q"), alt.Y("expected:Q")
    )

    # Invisible, but it makes the axes of a state the same in every run. It is below the bars, so
    # these can be pointed at.
    room = alt.Chart().mark_rect(opacity=0, color=GREY)
    room = room.encode(alt.X("from:Q"), alt.Y("reach:Q"), alt.Y2(datum=0), alt.X2("to:Q"))

    width, columns = (112, 3) if figures.narrow else (168, 4)
    small = alt.layer(room, bars, curve, data=table).properties(width=width, height=80)
    facet = alt.Facet("state:N", sort=list(colours), title=None, header=alt.Header(labelLimit=150))
    many: alt.FacetChart = small.facet(facet, columns=columns)
    resolved: alt.FacetChart = many.resolve_scale(x="independent", y="independent")

    return resolved


def _fit_bars(base: alt.Chart, colour: alt.Color, *, is_whole: bool) -> alt.Chart:
    whole = alt.Axis(tickMinStep=1, tickCount=6, format=",d", grid=False)
    lengths = whole if is_whole else alt.Axis(tickCount=4, grid=False)
    percent = alt.Axis(format="%", tickCount=3)
    bars: alt.Chart = base.mark_rect(opacity=1).encode(
        alt.X(
            "begin:Q", title=None, axis=lengths, scale=alt.Scale(nice=False, zero=False, padding=4)
        ),
        alt.Y("share:Q", title=None, axis=percent, scale=alt.Scale(zero=True)),
        alt.Y2(datum=0),
        colour,
        alt.X2("end:Q"),
    )

    return bars
