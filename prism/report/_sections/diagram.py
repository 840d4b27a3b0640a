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

EXPLANATION = (
    "The wider an arrow, the more often agents made its transitions; a faint one was never used. "
    "The report knows prism's own chart and those that it was given by --chart. Of others it draws "
    "the transitions that were made."
)
NOTHING = "No agent made a transition."

_BY_CHART = Markup("<h3>The chart {}</h3>")

Traffic = dict[tuple[str, str], int]


def make(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    """Make the section of one run; None if there is nothing to show.

    Args:
        facts: The run.
        name: Its name in ids.
        figures: Where to add the drawings.
    """
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


def _drawing(chart: str | None, facts: RunFacts, runs: Sequence[RunFacts]) -> str:
    """Draw the chart with the traffic of one run, in the layout of all runs that have it."""
    sharing = [run for run in runs if chart in run.chart_names]
    diagram = _diagram(chart, sharing)
    if len(runs) == 1 and chart not in facts.charts:
        diagram = replace(diagram, name=facts.run.label)

    others = [_traffic(chart, run) for run in sharing if run is not facts]
    return draw_svg(diagram, _traffic(chart, facts), beside=others)


def _diagram(chart: str | None, runs: Sequence[RunFacts]) -> Diagram:
    """Return a chart as it was defined, or else as far as the logs show it."""
    known = [run.charts[chart] for run in runs if chart is not None and chart in run.charts]
    seen = dict.fromkeys(
        state for run in runs for state in run.state_names if state in _states(chart, run)
    )
    if known:
        return replace(known[0], states=tuple(dict.fromkeys([*known[0].states, *seen])))

    labels: dict[tuple[str, str], dict[str, None]] = {}
    for run in runs:
        for source, target, trigger in (
            _of(chart, run).select("from_state", "to_state", "trigger").iter_rows()
        ):
            labels.setdefault((source, target), {})[trigger or ""] = None

    deciding = {state for run in runs for state in run.decisions["state"].drop_nulls()}
    initial = next((run.initial for run in runs if run.initial in seen), None)

    return Diagram(
        tuple(seen),
        tuple(Arrow(*ends, tuple(found)) for ends, found in labels.items()),
        initial=initial,
        name=chart or "statechart",
        decision_states=frozenset(deciding & set(seen)),
    )


def _of(chart: str | None, run: RunFacts) -> pl.DataFrame:
    """Return the transitions of one chart."""
    return run.traffic.filter(pl.col("chart").eq_missing(pl.lit(chart)))


def _states(chart: str | None, run: RunFacts) -> set[str]:
    own = _of(chart, run)
    return {*own["from_state"], *own["to_state"]}


def _traffic(chart: str | None, run: RunFacts) -> Traffic:
    traffic: Traffic = {}
    for source, target, count in (
        _of(chart, run).select("from_state", "to_state", "count").iter_rows()
    ):
        traffic[source, target] = traffic.get((source, target), 0) + count

    return traffic
