"""Parts of the page as data for its script, and what a run's chart looks like at an instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

from markupsafe import Markup

from prism.analysis import rows_of
from prism.drawing import draw_svg, showable
from prism.report import Section
from prism.report.charts import Charts, Traffic, charts_of
from prism.report.conversations import object_in
from prism.report.drawing import figure_spec
from prism.report.report import report_sections
from prism.report.table import joined, link, short
from prism.watch._watched import Watched

MOST_AGENTS = 200

_ENDED = """
select round, states from events
where event = 'round.ended' and states is not null and round <= $number
order by round desc, line desc limit 1
"""
_NOW = """
select chart, state, count(*) as agents from (
    select coalesce(chart, (select max(first_chart) from runs)) as chart,
           arg_max(case event when 'agent.left' then '' when 'agent.joined' then state
                   else to_state end, line) as state
    from events where event in ('agent.joined', 'statechart.transition', 'agent.left')
                  and agent_id is not null and ($number is null or coalesce(round, 0) <= $number)
    group by 1, agent_id)
where state <> '' group by chart, state
"""
_IN = """
select chart, agent_id, arg_max("end", line) as state, 1 as times from steps
where $number is null
   or round <= $number and not (round = $number and (closes or coalesce(tick > $tick, false)))
group by chart, agent_id having state <> ''
"""
_TOOK = """
select chart, agent_id, from_state, to_state, count(*) as times from events
where event = 'statechart.transition' and round is not distinct from $number
  and agent_id is not null and from_state is not null and to_state is not null
group by all order by times desc, min(line)
"""


def view(sections: Iterable[Section], **more: Any) -> dict[str, Any]:
    """Return sections as plain data, which holds nothing that a page would run.

    Args:
        sections: The sections; those with nothing to show are left out.
        more: What else the page's script needs.
    """
    visible = [each for each in sections if each]
    return {
        "sections": [
            {
                "anchor": each.anchor,
                "heading": showable(each.title),
                "explanation": showable(each.about),
                "html": showable(str(each.body())),
            }
            for each in visible
        ],
        "figures": {
            f"figure-{name}": figure_spec(figure)
            for each in visible
            for name, figure in each.figures.items()
            if not isinstance(figure, str)
        },
        **more,
    }


def sentence(row: Mapping[str, Any]) -> Markup:
    """Return an event in words, in which the mention of a post leads to it."""
    text = short(row["what"] or row["event"])
    before, mention, after = text.partition(short(row["post_id"] or "\0"))
    return Markup("{}{}{}").format(before, link("post", row["post_id"]) if mention else "", after)


def run_charts(watched: Watched) -> Charts | None:
    """Return the charts that a run follows; None as long as its log has no event."""
    with watched.reading() as log:
        return charts_of(log, watched.charts) if log.runs else None


def agents_at(
    watched: Watched, charts: Charts, number: int | None
) -> dict[str | None, dict[str, int]]:
    """Return how many agents of each chart are in each state at a round's end, or now."""
    with watched.reading() as log:
        ended = rows_of(log.sql(_ENDED, number=number)) if number is not None else []
        # a sample of the agents says nothing of the others
        is_sampled = log.runs[0].logged_agents is not None
        is_over = len(charts.names) == 1 and ended and ended[0]["round"] == number
        if ended and (is_sampled or is_over):
            states = object_in(ended[0], "states")
            agents = {showable(state): n for state, n in states.items() if type(n) is int}
            return dict.fromkeys(charts.names, agents)
        rows = rows_of(log.sql(_NOW, number=number))
    counts: dict[str | None, dict[str, int]] = {name: {} for name in charts.names}
    for row in rows:
        chart = row["chart"] if row["chart"] in counts else charts.names[0]
        counts[chart][showable(row["state"])] = row["agents"]
    return counts


def draw_charts(
    charts: Charts, number: int | None, agents: Mapping[str | None, Mapping[str, int]]
) -> Markup:
    """Draw charts with the traffic of a round, on the scale of the busiest.

    Args:
        charts: The charts.
        number: The round; None for a log without rounds.
        agents: The agents of each chart in each state at its end.
    """
    drawn = []
    for name, levels in charts.levels.items():
        rounds, busiest = charts.traffic_of(name), Traffic()
        for each in rounds.values():
            busiest |= levels.traffic(each)
        states = {*levels.diagram.states}
        scale = {ends: count for ends, count in busiest.items() if states.issuperset(ends)}
        here = rounds.get(number, Traffic())
        drawn.append(draw_svg(levels.diagram, here, beside=[scale], agents=agents.get(name, {})))
    return joined(
        Markup('<div class="scroll chart" tabindex="0" data-chart="{}">{}</div>').format(
            name or "", Markup(each)
        )
        for name, each in zip(charts.levels, drawn, strict=True)
    )


def agents_behind(
    watched: Watched, number: int | None, query: Mapping[str, str], tick: int | None
) -> dict[str, Any]:
    """Return the agents in a state, or those that took an arrow, and how often each did.

    Args:
        watched: The run.
        number: The round.
        query: The address of the page: a ``state``, or the ``source`` and ``target`` of an arrow,
            and their ``chart`` if there are several.
        tick: The tick of the round, for a state.
    """
    is_arrow = "source" in query
    wanted = (query["source"], query["target"]) if is_arrow else query["state"]
    charts = run_charts(watched)
    levels = [*charts.levels.values()] if charts else []
    chart = query.get("chart") if len(levels) > 1 else None
    values = {"number": number} if is_arrow else {"number": number, "tick": tick}
    counts = Counter[str]()
    for row in watched.rows(_TOOK if is_arrow else _IN, **values):
        if is_arrow:
            ends = showable(row["from_state"]), showable(row["to_state"])
            is_there = ends == wanted or any(wanted in each.used(*ends) for each in levels)
        else:
            state = showable(row["state"])
            is_there = state == wanted or any(wanted in each.active(state) for each in levels)
        if is_there and chart in (None, row["chart"]):
            counts[row["agent_id"]] += row["times"]

    agents = counts.most_common()
    lines = joined(
        Markup("<li>{}{}</li>").format(
            link("agent", agent), f" {times:,} times" if times > 1 else ""
        )
        for agent, times in agents[:MOST_AGENTS]
    )
    text = f"{len(agents):,} agent{'' if len(agents) == 1 else 's'}"
    if len(agents) > MOST_AGENTS:
        text = f"The first {MOST_AGENTS} of {text}"
    named = Markup('<p class="soft">{}</p><ul class="names">{}</ul>').format(text, lines)
    return view([Section("Agents", more=named)], agents=agents[:MOST_AGENTS], number=len(agents))


_OF_ROUND = ("The chart and its traffic", "The world")
"""The sections of a report that the view of a round has."""

REST = 20
"""How many times as long as it took to make the sections a running run is left alone."""


class OverTime:
    """The sections of one run, made anew when the run has gone on and a rest is over.

    Args:
        watched: The run.
        rest: The rest, for each second that making the sections took.

    Attributes:
        watched: The run.
    """

    def __init__(self, watched: Watched, rest: float = REST) -> None:
        self.watched: Watched = watched
        self._rest = rest
        self._view: dict[str, Any] = view([])
        self._read = -1
        self._due = 0.0

    def view(self) -> dict[str, Any]:
        """Return the sections, the last round in them, and the seconds until they are renewed."""
        with self.watched.reading():
            is_old = self._read != self.watched.read
            rest = self._due - monotonic() if self.watched.status.state == "running" else 0.0
            if is_old and rest <= 0:
                began = monotonic()
                self._view, self._read = self._made(), self.watched.read
                self._due = monotonic() + self._rest * (monotonic() - began)
                is_old = False
            return {**self._view, "due": max(rest, 0.0) if is_old else None}

    def _made(self) -> dict[str, Any]:
        with self.watched.reading() as log:
            charts = run_charts(self.watched)
            parts = report_sections(log, charts) if charts else []
            visible = [each for each in parts if each.title not in _OF_ROUND]
            return view(visible, round=self.watched.head()["rounds"])
