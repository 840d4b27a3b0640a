"""Decisions: what was chosen, by which source, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.errors import PrismError
from prism.reasoner._order import place_effect
from prism.report._facts.queries import BINS_A_DECADE
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import BLUE, HEIGHT, PAPER, PageFigures, tips
from prism.report._figures.timeline import Bars, draw_bars, rounds_timeline, stack
from prism.report._sections.kinds import Kind
from prism.runs._folder import read_summary

_MOST_REASONS = 10
_SOURCES = {
    "model": "#4477aa",
    "cache": "#66ccee",
    "replay": "#ccbb44",
    "policy": "#228833",
    "fallback": "#ee6677",
}
_TOKENS = {"input": "#4477aa", "output": "#ccbb44"}
_HEADINGS = {
    "entropy": "entropy, bits",
    "latency_p50": "latency p50, s",
    "latency_p90": "latency p90, s",
    "latency_p99": "latency p99, s",
    "latency_max": "latency max, s",
}


def _make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if facts.decisions.is_empty():
        return None

    chosen = facts.chosen.select("round", "chosen", "asked").drop_nulls("chosen")
    parts = [
        figures.add_chart(
            f"choices-{name}",
            _choices(chosen, figures),
            f"What was decided in each {figures.unit}, as shares",
        ),
        figures.add_chart(
            f"sources-{name}",
            _sources(facts.by_round, figures),
            f"Who decided in each {figures.unit}",
        ),
        html_table(
            f"decisions-{name}",
            _without_empty(facts.in_order(facts.decisions, "state")),
            _HEADINGS,
        ),
        Markup('<div class="half">{}</div>').format(Markup("").join(_costs(facts, name, figures))),
    ]
    if effect := _place_effect(facts):
        parts.insert(0, Markup("<p><b>Beware: {}.</b></p>").format(effect))
    if facts.reasons.height:
        reasons = facts.reasons.sort("asked", "reason", descending=[True, False]).select(
            "reason", "asked"
        )
        table = html_table(f"reasons-{name}", reasons, {"asked": "decisions"}, most=_MOST_REASONS)
        parts += [Markup("<h3>Why fallbacks were taken</h3>"), table]

    return Markup("").join(parts)


def _place_effect(facts: RunFacts) -> str | None:
    """Return in words how many choices the place in the list explains, if a run's folder says."""
    with suppress(PrismError):
        return place_effect(read_summary(facts.run.path.parent).get("spent", {}).get("places", {}))
    return None


DECISIONS = Kind(
    "decisions",
    "Decisions",
    "What was chosen when an event enabled several transitions, and which source chose. Entropy, "
    "in bits, measures how undecided the probabilities of the options were: 0 means that one "
    "option was certain. Its share is relative to the largest possible value.",
    "No reasoner was asked.",
    _make,
    lambda facts: facts.has_decisions,
)


def _without_empty(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out columns without values, and sources that were never used."""
    sums = {name: table[name].sum() for name in table.columns if name.startswith("from_")}
    unused = [
        name
        for name in table.columns
        if table[name].null_count() == table.height or sums.get(name) == 0
    ]
    return table.drop(unused)


def _choices(chosen: pl.DataFrame, figures: PageFigures) -> alt.Chart:
    colours = figures.state_colours(chosen["chosen"])
    bars = Bars("asked", "chosen", colours, "share of the decisions", as_shares=True, height=0.7)
    return draw_bars(rounds_timeline(chosen, figures.unit), bars, figures)


def _sources(by_round: pl.DataFrame, figures: PageFigures) -> alt.Chart:
    counts = _long(by_round, {name: f"from_{name}" for name in _SOURCES}, "source", "decisions")
    bars = Bars("decisions", "source", _used(counts["source"], _SOURCES), "decisions", height=0.5)
    return draw_bars(rounds_timeline(counts, figures.unit), bars, figures)


def _costs(facts: RunFacts, name: str, figures: PageFigures) -> Iterator[Markup]:
    """Draw the latencies, tokens and entropies that the log has."""
    if facts.latencies.height:
        yield figures.add_chart(
            f"latency-{name}", _latencies(facts.latencies, figures), "Decisions of each latency"
        )

    tokens = _long(facts.by_round, {name: f"{name}_tokens" for name in _TOKENS}, "what", "tokens")
    if tokens.height:
        yield figures.add_chart(
            f"tokens-{name}",
            _tokens(tokens, figures),
            f"Tokens read and written in each {figures.unit}",
        )

    entropies = facts.by_round.select("round", "entropy").drop_nulls()
    if entropies.height > 1:
        yield figures.add_chart(
            f"entropy-{name}",
            _entropies(entropies, figures.unit),
            f"Mean entropy of the decisions of each {figures.unit}",
        )


def _latencies(counts: pl.DataFrame, figures: PageFigures) -> alt.Chart:
    begin = pl.col("step") / BINS_A_DECADE
    steps = counts.with_columns(
        begin=pl.lit(10.0).pow(begin), end=pl.lit(10.0).pow(begin + 1 / BINS_A_DECADE)
    )
    colours = _used(counts["source"], _SOURCES)
    table = stack(steps, "decisions", "source", list(colours))
    axis = alt.Axis(format=".2~g", labelOverlap=True, tickCount=6, grid=False)
    seconds = ("begin", ".2~g", "seconds, from"), ("end", ".2~g", "to")
    chart: alt.Chart = (
        alt.Chart(table)
        .mark_rect(stroke=PAPER, strokeWidth=0.5)
        .encode(
            alt.X(
                "begin:Q",
                scale=alt.Scale(type="log", nice=False),
                title="seconds for an answer",
                axis=axis,
            ),
            alt.X2("end"),
            alt.Y("low:Q", title="decisions"),
            alt.Y2("high"),
            figures.colour("source", colours),
            tooltip=tips(*seconds, "source", ("decisions", ",")),
        )
        .properties(height=round(HEIGHT * 0.7))
    )

    return chart


def _tokens(tokens: pl.DataFrame, figures: PageFigures) -> alt.Chart:
    bars = Bars("tokens", "what", _used(tokens["what"], _TOKENS), "tokens", height=0.7)
    return draw_bars(rounds_timeline(tokens, figures.unit), bars, figures)


def _entropies(means: pl.DataFrame, unit: str) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(means)
        .mark_line(color=BLUE, point=alt.OverlayMarkDef(color=BLUE, size=14))
        .encode(
            alt.X(
                "round:Q",
                title=unit,
                axis=alt.Axis(format=",d", grid=False, tickMinStep=1),
                scale=alt.Scale(zero=False),
            ),
            alt.Y("entropy:Q", title="entropy, bits (mean)", scale=alt.Scale(zero=True)),
            tooltip=tips(("round:Q", ",d", unit), ("entropy:Q", ".4~g")),
        )
        .properties(height=round(HEIGHT * 0.7))
    )
    return chart


def _used(values: pl.Series, colours: dict[str, str]) -> dict[str, str]:
    used = set(values)
    return {name: colour for name, colour in colours.items() if name in used}


def _long(by_round: pl.DataFrame, columns: dict[str, str], key: str, value: str) -> pl.DataFrame:
    """Stack columns of counts into rows, without zeros."""
    named = by_round.select("round", **{name: pl.col(column) for name, column in columns.items()})
    return named.unpivot(index="round", variable_name=key, value_name=value).filter(
        pl.col(value) > 0
    )
