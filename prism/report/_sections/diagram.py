"""The chart, with the number of times each transition was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import filterfalse

import polars as pl
from markupsafe import Markup

from prism.analysis._tables.levels import Inside
from prism.drawing import Arrow, Box, Diagram, Levels, draw_svg, showable
from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures
from prism.report._sections.kinds import Kind

_BY_CHART = Markup("<h3>The chart {}</h3>")

Traffic = dict[tuple[str, str], int]
_Tree = dict[str, tuple[str, ...]]


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
    "The report knows prism's own charts, those in run.json and those named with --chart. Of other "
    "charts, it draws the transitions that were made.",
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
    """Return a chart as it was defined, or else the part that the logs show."""
    known = [run.charts[chart] for run in runs if chart is not None and chart in run.charts]
    seen = _seen(chart, runs)
    if known:
        return _with_states(known[0], seen)

    drawn = _met(chart, runs, seen)
    deciding = pl.concat([run.decisions["state"] for run in runs]).drop_nulls()
    return replace(
        drawn,
        arrows=_arrows(chart, runs, Levels(drawn)),
        decision_states=frozenset(deciding).intersection(drawn.states),
    )


def _met(chart: str | None, runs: Sequence[RunFacts], seen: tuple[str, ...]) -> Diagram:
    """Return the states of a chart in the logs, nested, and the arrows between them."""
    initial = next((run.initial for run in runs if run.initial in seen), None)
    drawn = Diagram(seen, (), initial, chart or "statechart")
    trees = (_tree(run.run.charts.get(chart or "", {})) for run in runs)
    if tree := next(filter(None, trees), None):
        told = (run.run.arrows.get(chart or "") for run in runs)
        return _boxed(drawn, tree, _told_arrows(next(filter(None, told), ())))

    return drawn


def _with_states(diagram: Diagram, seen: Sequence[str]) -> Diagram:
    """Add states of agents that a diagram lacks."""
    if diagram.boxes:
        levels = Levels(diagram)
        seen = [each for state in seen for each in levels.active(state)]

    return replace(diagram, states=tuple(dict.fromkeys([*diagram.states, *seen])))


def _told_arrows(told: Sequence[Sequence[str]]) -> tuple[Arrow, ...]:
    """Return the arrows of a chart that a log describes, used or not."""
    labels: dict[tuple[str, str], dict[str, None]] = {}
    for source, target, trigger in told:
        labels.setdefault((showable(source), showable(target)), {})[showable(trigger)] = None

    return tuple(Arrow(*ends, tuple(found)) for ends, found in labels.items())


def _boxed(plain: Diagram, tree: _Tree, arrows: Sequence[Arrow]) -> Diagram:
    """Nest states, given the contents of composite states in a log and the states of agents."""
    ends = (end for arrow in arrows for end in (arrow.source, arrow.target) if end is not None)
    named = tuple(dict.fromkeys([*plain.states, *ends]))
    states = tuple(dict.fromkeys(each for state in tree for each in (state, *tree[state])))
    boxes = {state: Box(each) for state, each in tree.items()}
    levels = Levels(Diagram(states, (), name=plain.name, boxes=boxes))
    begun = {} if plain.initial is None else levels.active(plain.initial)
    together = [levels.active(state).keys() for state in named]

    def box_of(inside: tuple[str, ...]) -> Box:
        is_parallel = any(len(active & {*inside}) > 1 for active in together)
        first = () if is_parallel else tuple(each for each in inside if each in begun)
        return Box(inside, first, is_parallel)

    boxes = {state: box_of(inside) for state, inside in tree.items()}
    found = _with_states(replace(levels.diagram, boxes=boxes), named)
    return replace(found, arrows=tuple(arrows), initial=next(iter(begun), None))


def _tree(inside: Inside) -> _Tree:
    """Return the states inside each composite state, outermost first, each state only once."""
    shown = {showable(state): [*map(showable, states)] for state, states in inside.items()}
    children = {each for states in shown.values() for each in states}
    waiting = [state for state in shown if state not in children]
    found = {}
    # a log may list a state in two places
    for state in waiting:
        own = dict.fromkeys(each for each in shown.get(state, ()) if each not in waiting)
        waiting += own
        if own:
            found[state] = tuple(own)

    return found


def _arrows(chart: str | None, runs: Sequence[RunFacts], levels: Levels) -> tuple[Arrow, ...]:
    """Return an arrow, with its triggers, for each pair of states with transitions."""
    labels = {
        (arrow.source or arrow.target, arrow.target): dict.fromkeys(arrow.labels)
        for arrow in levels.diagram.arrows
    }
    for run in runs:
        for source, target, trigger, _ in _of(chart, run).iter_rows():
            for ends in filterfalse(levels.has, levels.used(source, target)):
                labels.setdefault(ends, {})[trigger or ""] = None

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
        is_own = pl.col("chart").eq_missing(pl.lit(chart))
        if run.traffic.is_empty():
            is_own |= pl.col("chart").is_null()
        joined = run.met.filter(is_own)["state"]
        there = {*own["from_state"], *own["to_state"], *joined}
        seen |= dict.fromkeys(state for state in run.state_names if state in there)

    return tuple(seen)


def traffic_of(chart: str | None, run: RunFacts, within: RunFacts | None = None) -> Traffic:
    """Return how often agents moved, and how often they decided to stay where they were.

    Args:
        chart: The chart's name.
        run: The facts of a run, or of a part of it.
        within: The facts of the whole run, if those are of a part.
    """
    traffic: Traffic = {}
    for source, target, _, count in _of(chart, run).iter_rows():
        traffic[source, target] = traffic.get((source, target), 0) + count

    own = _states_of(chart, within or run)
    for state, count in run.stays.iter_rows():
        if state in own:
            # the log of an application may have the transitions of these decisions, too
            traffic[state, state] = max(count, traffic.get((state, state), 0))

    return traffic


def _states_of(chart: str | None, run: RunFacts) -> set[str]:
    """Return the states of a chart that no other chart of the run has."""
    others = (_seen(other, [run]) for other in run.chart_names if other != chart)
    return {*_seen(chart, [run])}.difference(*others)
