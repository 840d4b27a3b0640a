"""Tables by round, tick or time as intervals on an axis, and stacked bars along it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from prism.report._figures.page_figures import HEIGHT, PageFigures, tips

MOST_MOMENTS = 240
"""Most intervals on an axis, so that each is still a few pixels wide."""

_MOST_LABELS = 20


@dataclass(frozen=True)
class Timeline:
    """A table whose rows cover intervals of an axis.

    Args:
        table: The rows, with ``begin``, ``end`` and ``when`` (the interval in words).
        title: Title of the axis.
        labels: Numbers to show on it; None leaves the choice to Vega-Lite.
        is_time: Whether it is an axis of real time.
    """

    table: pl.DataFrame
    title: str | None
    labels: Sequence[int] | None = None
    is_time: bool = False

    def encodings(self) -> tuple[alt.X, alt.X2]:
        """Return the encodings of the axis."""
        axis = alt.Axis(grid=False)
        if self.labels is not None:
            axis = alt.Axis(grid=False, values=self.labels, format=",d", labelOverlap="greedy")

        begin, scale = "begin:Q", alt.Scale(zero=False, nice=False)
        if self.is_time:
            begin, scale = "begin:T", alt.Scale(type="utc", nice=False)

        return alt.X(begin, title=self.title, axis=axis, scale=scale), alt.X2("end")


def are_many(counts: pl.DataFrame) -> bool:
    """Return True if a run has more ticks than an axis has intervals."""
    if not {"round", "tick"} <= set(counts.columns):
        return False
    return counts.select("round", "tick").n_unique() > MOST_MOMENTS


def states_timeline(counts: pl.DataFrame, *, by_round: bool, unit: str = "round") -> Timeline:
    """Put the states of a run on an axis, by tick, or as means of several ticks if there are many.

    Args:
        counts: States of one run, from `prism.analysis.state_counts`.
        by_round: Whether to take the mean of every round, if there are several.
        unit: The name of a round.
    """
    if "time" in counts.columns:
        return _by_time(counts)
    if "tick" not in counts.columns:
        return _by_number(counts, "round", unit)
    if counts["round"].n_unique() == 1:
        return _by_number(counts, "tick", "tick")
    if by_round:
        return _by_number(_mean(counts, "round"), "round", unit, "mean over its ticks")

    return _by_tick(counts, unit)


def rounds_timeline(table: pl.DataFrame, unit: str = "round") -> Timeline:
    """Put counts by round on an axis, several rounds together if there are many.

    Args:
        table: ``round`` (null if the log has none), perhaps a column of texts, and counts.
        unit: The name of a round.
    """
    keys = [name for name, kind in table.schema.items() if kind == pl.String]
    if table["round"].null_count() == table.height:
        counts = table.drop("round")
        whole = counts.group_by(keys, maintain_order=True).sum() if keys else counts.sum()
        return Timeline(whole.with_columns(begin=0.0, end=1.0, when=pl.lit("all")), None, labels=[])

    rounds = table.with_columns(pl.col("round").fill_null(0))
    step = _step(rounds, "round")
    binned = rounds.group_by(_binned("round", rounds, step), *keys, maintain_order=True)
    summed = binned.agg(pl.exclude("round", *keys).sum())

    return _numbered(summed, "round", unit, step, _range_of(rounds, "round"), "")


def thinned_rounds(table: pl.DataFrame, most: int) -> tuple[pl.DataFrame, alt.X]:
    """Return some rounds of a table that are equally far apart, and the axis to draw them on.

    Args:
        table: A row for each ``round``.
        most: Most rounds to draw.
    """
    step = -(-table.height // most)
    axis = alt.X(
        "round:Q",
        title="round" if step == 1 else f"round (each {step}th)",
        axis=alt.Axis(format=",d", grid=False, tickMinStep=1),
        scale=alt.Scale(zero=False, nice=False),
    )

    return table.gather_every(step), axis


def _by_tick(counts: pl.DataFrame, unit: str) -> Timeline:
    first, last = _range_of(counts, "tick")
    length = 1 / (last - first + 1)
    before = pl.col("tick") - first
    # only some rounds have a tick 0, with what happened as they began
    is_earliest = pl.col("tick") == pl.col("tick").min().over("round")
    begin = pl.when(is_earliest).then(0).otherwise(before) * length
    table = counts.with_columns(
        begin=pl.col("round") - 0.5 + begin,
        end=pl.col("round") - 0.5 + (before + 1) * length,
        when=pl.format(f"{unit} {{}}, tick {{}}", "round", "tick"),
    )

    return Timeline(table, unit, _labels(*_range_of(counts, "round")))


def _by_number(counts: pl.DataFrame, column: str, unit: str, note: str | None = None) -> Timeline:
    step = _step(counts, column)
    notes = [note] if note else []
    if step > 1:
        notes.append(f"{step} {unit}s together")

    table = _mean(counts.with_columns(_binned(column, counts, step)), column)

    return _numbered(table, column, unit, step, _range_of(counts, column), ", ".join(notes))


def _numbered(
    table: pl.DataFrame, column: str, unit: str, step: int, edges: tuple[int, int], note: str
) -> Timeline:
    """Put each number in the middle of its interval."""
    last = pl.min_horizontal(pl.col(column) + (step - 1), pl.lit(edges[1]))
    when = pl.format(f"{unit} {{}}", column)
    if step > 1:
        when = pl.format(f"{unit}s {{}} to {{}}", column, last)

    table = table.with_columns(begin=pl.col(column) - 0.5, end=last + 0.5, when=when)

    return Timeline(table, f"{unit} ({note})" if note else unit, _labels(*edges))


def _by_time(counts: pl.DataFrame) -> Timeline:
    """Put every count on the interval up to the next one."""
    times = counts.select(pl.col("time").unique().sort())
    step = -(-times.height // MOST_MOMENTS)
    kept = times.gather_every(step)

    # The last interval has no next count, so it gets the length of the shortest.
    gap = kept.select(pl.col("time").diff().min()).item() or pl.duration(seconds=1)
    ends = kept.with_columns(end=pl.col("time").shift(-1).fill_null(pl.col("time") + gap))

    table = counts.join(ends, on="time", maintain_order="left").with_columns(
        begin="time", when=pl.col("time").dt.strftime("%Y-%m-%d %H:%M:%S")
    )

    return Timeline(table.drop("time"), "time (UTC)", is_time=True)


def _mean(counts: pl.DataFrame, column: str) -> pl.DataFrame:
    return counts.group_by(column, "state", maintain_order=True).agg(
        pl.col("agents", "share").mean()
    )


def _step(table: pl.DataFrame, column: str) -> int:
    first, last = _range_of(table, column)
    return -(-(last - first + 1) // MOST_MOMENTS)


def _binned(column: str, table: pl.DataFrame, step: int) -> pl.Expr:
    first, _ = _range_of(table, column)
    return (pl.col(column) - first) // step * step + first


def _range_of(table: pl.DataFrame, column: str) -> tuple[int, int]:
    first, last = table.select(first=pl.col(column).min(), last=pl.col(column).max()).row(0)
    return int(first), int(last)


def _labels(first: int, last: int) -> list[int]:
    """Choose whole numbers for an axis, in steps of 1, 2, 5, 10, 20, 50, ..."""
    steps = (digit * 10**power for power in range(19) for digit in (1, 2, 5))
    step = next(step for step in steps if (last - first) / step < _MOST_LABELS)
    multiples = range(-(-first // step) * step, last + 1, step)

    # The axis shows the first number unless a multiple is too close to it.
    if multiples and multiples[0] - first > step / 2:
        return [first, *multiples]

    return list(multiples)


# Full stacks overlap by this part of the figure's width, or white would shine through.
_OVERLAP = 1.3 / 760
_TICKS = 6


@dataclass(frozen=True, slots=True)
class Bars:
    """How bars are stacked and coloured.

    Args:
        counted: Column of their heights.
        key: Column that determines their order and colour.
        colours: The colour of each of its values, from the bottom.
        title: Title of the vertical axis.
        is_full: Whether all stacks are equally high.
        as_shares: Whether to make the stacks equally high, as shares.
        height: Height of the figure, relative to the usual one.
    """

    counted: str
    key: str
    colours: Mapping[str, str]
    title: str
    is_full: bool = False
    as_shares: bool = False
    height: float = 1.0


def draw_bars(timeline: Timeline, bars: Bars, figures: PageFigures) -> alt.Chart:
    """Draw stacked bars.

    Args:
        timeline: The counts.
        bars: How to stack and colour them.
        figures: The figures of the page.
    """
    # Vega-Lite does not stack marks on intervals, so the ends of bars are computed here.
    table = stack(
        timeline.table, bars.counted, bars.key, list(bars.colours), as_shares=bars.as_shares
    )
    if bars.is_full or bars.as_shares:
        first, last = pl.col("begin").min(), pl.col("end").max()
        overlapping = pl.col("end") + (last - first) * _OVERLAP
        table = table.with_columns(end=pl.min_horizontal(overlapping, last))

    x, x2 = timeline.encodings()
    axis = alt.Axis(format="%") if bars.as_shares else whole_numbers(table["high"].to_list())
    y = alt.Y("low:Q", title=bars.title, axis=axis, scale=alt.Scale(zero=True, nice=False))
    tooltip = tips("when", bars.key, (f"{bars.counted}:Q", ",.4~g"))
    if "share" in timeline.table.columns:
        tooltip += tips(("share:Q", ".1%"))

    chart: alt.Chart = alt.Chart(table).mark_rect(opacity=1)
    chart = chart.encode(
        x, x2, y, alt.Y2("high"), figures.colour(bars.key, bars.colours), tooltip=tooltip
    )
    sized: alt.Chart = chart.properties(height=round(HEIGHT * bars.height))

    return sized


def whole_numbers(heights: Sequence[float]) -> alt.Axis:
    """Return an axis on which no number appears twice.

    Args:
        heights: Where the stacks end.
    """
    highest = int(max(heights, default=0))
    if highest < _TICKS:
        # Vega puts ticks between small numbers, and rounds two of them to the same label
        return alt.Axis(format=",d", values=list(range(highest + 1)))

    return alt.Axis(format=",d", tickCount=_TICKS, tickMinStep=1)


def stack(
    table: pl.DataFrame, counted: str, key: str, order: Sequence[str], *, as_shares: bool = False
) -> pl.DataFrame:
    """Add where each bar begins and ends.

    Args:
        table: The bars, with ``begin`` and ``end`` of their intervals.
        counted: Column of their heights.
        key: Column that determines their order and colour.
        order: Its values, from the bottom.
        as_shares: Whether to divide heights by those of their stacks.

    Returns:
        The bars with a height above 0, from left to right and bottom to top, with ``low`` and
        ``high``.
    """
    places = {name: place for place, name in enumerate(order)}
    place = pl.col(key).replace_strict(places, return_dtype=pl.Int64)
    ordered = table.filter(pl.col(counted) > 0).sort("begin", place)
    high = pl.col(counted).cum_sum().over("begin")
    whole = pl.col(counted).sum().over("begin") if as_shares else pl.lit(1)

    return ordered.with_columns(low=(high - pl.col(counted)) / whole, high=high / whole)
