"""The chart, with the number of times each transition was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from markupsafe import Markup

from prism.drawing import Arrow, Diagram, draw_svg
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.kinds import Kind

_BY_CHART = Markup("<h3>The chart {}</h3>")

Traffic = dict[tuple[str, str], int]


def _make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if facts.transitions.is_empty():
        return None

    charts = facts.chart_names
    parts = []
    for number, chart in enumerate(charts, start=1):
        if len(charts) > 1:
            parts.append(_BY_CHART.format(chart or "without a name"))

        drawn = _drawing(chart, facts, figures.runs or (facts,))
        place = f"chart-{name}" if len(charts) == 1 else f"chart-{name}-{number}"
        parts.append(
            Markup('<div class="scroll" tabindex="0">{}</div>').format(
                figures.add_drawing(place, drawn)
            )
        )

    table = html_table(
        f"transitions-{name}",
        facts.in_order(facts.transitions, "from_state"),
        {"from_state": "from", "to_state": "to"},
    )

    return Markup("{}<details><summary>As a table</summary>{}</details>").format(
        Markup("").join(parts), table
    )


CHART = Kind(
    "chart",
    "The chart and its traffic",
    "The wider an arrow, the more often its transitions were made. A faint arrow was never used. "
    "The report knows prism's own charts and those named with --chart. Of other charts, it draws "
    "the transitions that were made.",
    "No agent made a transition.",
    _make,
    lambda _facts: True,
)


def _drawing(chart: str | None, facts: RunFacts, runs: Sequence[RunFacts]) -> str:
    """Draw the chart with the traffic of one run, in the layout of all runs that have it."""
    sharing = [run for run in runs if chart in run.chart_names]
    diagram = diagram_of(chart, sharing)
    if len(runs) == 1 and chart not in facts.charts:
        diagram = replace(diagram, name=facts.run.label)

    others = [traffic_of(chart, run) for run in sharing if run is not facts]
    return draw_svg(diagram, traffic_of(chart, facts), beside=others)


def diagram_of(chart: str | None, runs: Sequence[RunFacts]) -> Diagram:
    """Return a chart as it was defined, or else as far as the logs show it."""
    known = [run.charts[chart] for run in runs if chart is not None and chart in run.charts]
    seen = _seen(chart, runs)
    if known:
        return replace(known[0], states=tuple(dict.fromkeys([*known[0].states, *seen])))

    deciding = {state for run in runs for state in run.decisions["state"].drop_nulls()}
    initial = next((run.initial for run in runs if run.initial in seen), None)

    return Diagram(
        seen,
        _arrows(chart, runs),
        initial=initial,
        name=chart or "statechart",
        decision_states=frozenset(deciding & set(seen)),
    )


def _arrows(chart: str | None, runs: Sequence[RunFacts]) -> tuple[Arrow, ...]:
    """Return an arrow for each two states between which agents went, with all triggers."""
    labels: dict[tuple[str, str], dict[str, None]] = {}
    for run in runs:
        for source, target, trigger, _ in _of(chart, run).iter_rows():
            labels.setdefault((source, target), {})[trigger or ""] = None

    return tuple(Arrow(*ends, tuple(found)) for ends, found in labels.items())


def _of(chart: str | None, run: RunFacts) -> pl.DataFrame:
    """Return the transitions of one chart."""
    own = run.traffic.filter(pl.col("chart").eq_missing(pl.lit(chart)))
    return own.select("from_state", "to_state", "trigger", "count")


def _seen(chart: str | None, runs: Sequence[RunFacts]) -> tuple[str, ...]:
    """Return the states of one chart, in the order of each run."""
    seen: dict[str, None] = {}
    for run in runs:
        own = _of(chart, run)
        there = {*own["from_state"], *own["to_state"]}
        seen |= dict.fromkeys(state for state in run.state_names if state in there)

    return tuple(seen)


def traffic_of(chart: str | None, run: RunFacts) -> Traffic:
    traffic: Traffic = {}
    for source, target, _, count in _of(chart, run).iter_rows():
        traffic[source, target] = traffic.get((source, target), 0) + count

    return traffic
