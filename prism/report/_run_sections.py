"""The sections of a report: a title, a query on the tables of the log, and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from prism.analysis import Log, rows_of
from prism.report.charts import titles_kept
from prism.report.html import Figure, Section
from prism.report.table import Rows, with_values

_HEIGHT, _SMALL = 260, 300
_MOST_MOMENTS, _MOST_POINTS = 240, 300
_SOURCES = ("model", "cache", "policy", "fallback")
# bars between two numbers ignore tickMinStep, and 2.5 would be labelled 3
_WHOLE = alt.Axis(format=",d", tickMinStep=1, labelExpr="datum.value % 1 ? '' : datum.label")


States = Sequence[str]
"""All states of a page in the order of their colours."""

Draw = Callable[[list[dict[str, Any]], States], alt.TopLevelMixin]


@dataclass(frozen=True, slots=True)
class Kind:
    """A section of a report.

    Args:
        title: Its heading.
        about: How to read it.
        query: The rows of its table; columns without values are left out.
        plots: Its figures: the name of each, the query for its rows, and what draws them.
        headings: Headings of columns, if they differ from the names.
        most: Most rows to show.
    """

    title: str
    about: str = ""
    query: str = ""
    plots: Sequence[tuple[str, str, Draw]] = ()
    headings: Mapping[str, str] = field(default_factory=dict)
    most: int = 40


def section_of(kind: Kind, log: Log, states: States) -> Section:
    """Return a section of a report with its rows and figures, which may be none."""
    rows = with_values(_titled(log, kind.query)) if kind.query else []
    figures: dict[str, Figure] = {}
    for name, query, draw in kind.plots:
        if drawn := with_values(_titled(log, query)):
            figures[name] = draw(drawn, states).properties(description=kind.title)
    return Section(kind.title, kind.about, figures, rows, kind.headings, kind.most)


def _titled(log: Log, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query, with measures in words where the run has them."""
    rows = rows_of(log.sql(query))
    titles = titles_kept(log.runs[0]) if rows and "measure" in rows[0] else {}
    for row in rows if titles else ():
        row["measure"] = titles.get(row["measure"], row["measure"])
    return rows


def _data(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=list(rows))


def _beside(chart: Any, rows: Rows, height: int) -> alt.TopLevelMixin:
    """Draw the charts of a run beside each other, on the same scales."""
    drawn: alt.TopLevelMixin = chart.properties(height=height)
    if "chart" in rows[0]:
        small = chart.properties(width=_SMALL, height=height)
        drawn = small.facet(alt.Facet("chart:N", sort=None), columns=3)
    return drawn


def _colour(column: str, rows: Rows, names: Sequence[str]) -> alt.Color:
    """Return colours for the values of a column, the names first."""
    drawn = dict.fromkeys(row[column] for row in rows)
    domain = list(dict.fromkeys([*names, *drawn]))
    legend = alt.Legend(values=[name for name in domain if name in drawn])
    return alt.Color(f"{column}:N", scale=alt.Scale(domain=domain), sort=domain, legend=legend)


# Of many moments, as many are drawn as an axis has room for.
_STATES = f"""
with placed as (
    select *, dense_rank() over (order by round, tick, time) - 1 as place,
           coalesce(epoch(time) - epoch(min(time) over ()),
                    round + coalesce((tick - 1) / max(tick) over (), 0)) as moment
    from states
), ends as (
    select place, any_value(moment) as moment, any_value(time is not null) as by_time,
           any_value(round) as round, any_value(tick) as tick
    from placed where place % (1 + (select max(place) from placed) // {_MOST_MOMENTS}) = 0
    group by place
), spans as (
    -- the last moment is as long as the one before it
    select place, by_time, round, tick, coalesce(lead(moment) over moments,
               2 * moment - lag(moment) over moments, moment + 1) as until
    from ends window moments as (order by place)
)
select chart, state, agents, s.round, s.tick, moment as begin, until,
       if(by_time, 'seconds', null) as unit
from placed join spans s using (place) where agents > 0 order by chart, begin, state
"""


def _bars(key: str, count: str, names: Sequence[str] = (), stack: Any = "zero") -> Draw:
    """Return what draws counts by round or time, each as a part of a bar."""
    title, axis = (f"share of {count}", alt.Axis()) if stack == "normalize" else (count, _WHOLE)

    def draw(rows: list[dict[str, Any]], states: States) -> alt.TopLevelMixin:
        x = alt.X(
            "begin:Q",
            bin="binned",
            title=rows[0].get("unit", "round"),
            axis=_WHOLE,
            scale=alt.Scale(zero=False, nice=False),
        )
        chart = alt.Chart(_data(rows)).mark_bar(binSpacing=0)
        drawn = chart.encode(
            x,
            alt.X2("until"),
            alt.Y(f"{count}:Q", stack=stack, title=title, axis=axis, scale=alt.Scale(nice=False)),
            _colour(key, rows, names or states),
            tooltip=_tips("begin:Q", f"{key}:N", f"{count}:Q"),
        )
        return _beside(drawn, rows, _HEIGHT)

    return draw


def _tips(*fields: str) -> list[alt.Tooltip]:
    # altair looks for the class of a bare text in its whole schema, 20 ms each
    return [alt.Tooltip(each) for each in fields]


_TIMES = [0, *(digit * 10**power for power in range(-1, 7) for digit in (1, 2, 5))]
# A percentile that no observed visit reaches is beyond the longest visit.
_DWELL = """
select * exclude run replace (coalesce(median, max) as median, coalesce(p90, max) as p90)
from dwell where max is not null
"""


def _dwell(rows: list[dict[str, Any]], states: States) -> alt.TopLevelMixin:
    title = "ticks, or rounds where events happen at rates"
    axis = alt.Axis(values=_TIMES, format="~g", labelOverlap="greedy")
    x = alt.X("median:Q", title=title, scale=alt.Scale(type="symlog"), axis=axis)
    y = alt.Y("state:N", sort=list(states), title=None)
    colour = alt.Color("state:N", scale=alt.Scale(domain=list(states)), legend=None)
    tips = _tips("state:N", "visits:Q", "median:Q", "p90:Q", "max:Q")
    base = alt.Chart().encode(y, colour, x, tooltip=tips)
    bars = base.mark_bar(height=10).encode(alt.X2("p90"))
    layers = alt.layer(bars, base.mark_tick(thickness=4, height=16), data=_data(rows))
    return _beside(layers, rows, 26 * len({row["state"] for row in rows}))


_MEASURES = f"""
with sized as (select max(round) - min(round) as rounds from measures),
named as (select round, string_agg(treatment, ', ' order by line) as treatment
          from treatments group by round)
select measure, m.round, value, treatment
from measures m left join named n using (round) cross join sized
where m.round % (1 + rounds // {_MOST_POINTS}) = 0 or treatment is not null order by m.round
"""


def _measures(rows: list[dict[str, Any]], _states: States) -> alt.TopLevelMixin:
    scale = alt.Scale(zero=False, nice=False)
    x, y = alt.X("round:Q", axis=_WHOLE, scale=scale), alt.Y("value:Q", title=None)
    # a value between two rounds without one has no line
    line = alt.Chart().mark_line(invalid="break-paths-show-domains", point={"size": 12})
    layers = [line.encode(x, y, tooltip=_tips("round:Q", "value:Q"))]
    if "treatment" in rows[0]:
        rule = alt.Chart().transform_filter("isValid(datum.treatment)").mark_rule(strokeDash=[4, 3])
        layers.insert(0, rule.encode(x, tooltip=_tips("treatment:N", "round:Q")))
    charts = alt.layer(*layers, data=_data(rows)).properties(width=_SMALL - 40, height=140)
    grid: Any = charts.facet(alt.Facet("measure:N", sort=None), columns=3)
    drawn: alt.TopLevelMixin = grid.resolve_scale(y="independent").resolve_axis(x="independent")
    return drawn


def _by_round(column: str) -> str:
    """Return a query for decisions in each round."""
    return (
        f"select coalesce(round, 0) as begin, begin + 1 as until, {column}, count(*) as decisions "
        f"from decided where {column} is not null group by all order by all"
    )


_STEPS = """
select step, type, count(*) filter (outcome = 'done') as done,
       nullif(count(*) filter (outcome = 'skipped'), 0) as skipped,
       nullif(count(*) filter (outcome = 'failed'), 0) as failed,
       nullif(count(*) filter (outcome = 'done' and reason is not null), 0) as refused,
       sum(seconds) as seconds, sum(input_tokens)::bigint as input_tokens,
       sum(output_tokens)::bigint as output_tokens
from events where event = 'workflow.step' group by step, type order by min(line)
"""
_CYCLES = """
select state, count(*) filter (outcome = 'done') as done,
       nullif(count(*) filter (outcome = 'refused'), 0) as refused,
       nullif(count(*) filter (outcome = 'unusable'), 0) as unusable,
       nullif(count(*) filter (outcome = 'failed'), 0) as failed,
       max(prompt_tokens) as largest_prompt,
       sum(input_tokens)::bigint as input_tokens, sum(output_tokens)::bigint as output_tokens
from events where event = 'cognition.cycle' group by state order by min(line)
"""
_THOUGHTS = """
select agent_id, cycle, thought from (
    select line, agent_id, cycle, thought from events
    where event = 'cognition.cycle' and thought is not null order by line desc limit 30)
order by line
"""
_POSITIONS = """
select *, times / sum(times) over (partition by options) as share from (
    select len(options) as options,
           (if(list_max(chances) is null, list_position(options, chosen),
               list_position(chances, list_max(chances)))
            - 1 - rotation + len(options)) % len(options) + 1 as position,
           count(*) as times
    from (select *, list_transform(options, lambda o: try_cast(probabilities ->> o as double))
                 as chances from events)
    where event = 'reasoner.decision' and source = 'model' and rotation is not null
          and list_contains(options, chosen) group by all)
order by options, position
"""
_FROM_TO = {"from_state": "from", "to_state": "to"}

FIRST = (
    Kind(
        "Events",
        "What the log has, those of the world's own among them. For one kind with all its keys:  "
        "prism log \"from events_of('NAME')\" RUN",
        "select event, count(*) as count, count(distinct agent_id) as agents, "
        'min(round) as "first round", max(round) as "last round" from events '
        "group by event order by count desc, event",
    ),
    Kind(
        "What went wrong",
        "A transition is not enabled if its guard fails. If its action fails, it is made "
        "nevertheless. Exceptions of one name are one kind. The log has the traceback of each.",
        "select replace(fault, '_', ' ') as fault, chart, from_state, to_state, \"trigger\", "
        "error, count, agents, round, tick, line from faults",
        headings={**_FROM_TO, "round": "first in round", "line": "first in line"},
        most=20,
    ),
    Kind(
        "Where agents were stuck",
        "Events that made no transition: no guard let one pass, or the state has none for them.",
        "select * exclude (run, chart, line) from stuck",
        most=20,
    ),
    Kind(
        "Measures",
        "Measured at the end of each round. Dashed lines mark rounds that began with a treatment.",
        "select measure, arg_min(value, round) as first, arg_max(value, round) as last, "
        "min(value) as least, max(value) as most, avg(value) as mean from measures "
        "group by measure order by measure",
        [("measures", _MEASURES, _measures)],
    ),
    Kind(
        "Steps",
        "How often each step of a workflow ran and how it ended. A refused step named a transition "
        "that it did not get.",
        _STEPS,
    ),
    Kind(
        "Cycles",
        "How cycles of thinking ended, by their state, and the tokens of prompts and of working "
        "memory, by the agent's own count.",
        _CYCLES,
    ),
    Kind("Thoughts", "The last ones.", _THOUGHTS),
)
"""Sections before the chart."""

CHART = Kind(
    "The chart and its traffic",
    "The wider an arrow, the more often its transitions were made. A faint arrow was never "
    "used. The report knows the charts in run.json and those named with --chart. Of other "
    "charts, it draws the transitions that were made.",
    "select * exclude run from transitions",
    headings=_FROM_TO,
)
AFTER = (
    Kind(
        "Agents in each state",
        "At the end of each tick. Transitions made at the end of a round are counted in the next "
        "tick. A log without ticks is counted by rounds or steps of time.",
        plots=[("states", _STATES, _bars("state", "agents"))],
    ),
    Kind(
        "How long agents stay",
        "From entering a state to leaving it: the median (tick) and the 90th percentile (end of "
        "the bar), or the longest visit if none reached it. Visits that were cut short are "
        "censored (Kaplan and Meier 1958).",
        "select * exclude (run, at_risk) from dwell",
        [("dwell", _DWELL, _dwell)],
        headings={"timeout_share": "by time-out", "zero": "of length 0"},
    ),
    Kind(
        "Decisions",
        "What was chosen when an event enabled several transitions, and which source chose. "
        "Entropy, in bits, measures how undecided the probabilities of the options were.",
        "select * exclude run from decisions",
        [
            ("choices", _by_round("chosen"), _bars("chosen", "decisions", (), "normalize")),
            ("sources", _by_round("source"), _bars("source", "decisions", _SOURCES)),
        ],
    ),
    Kind(
        "Positions in the list",
        "How often a model chose each position in its list of options, where their order was "
        "drawn; where it gave probabilities, its likeliest option counts. A model that reads the "
        "options chooses each position about equally often.",
        _POSITIONS,
    ),
    Kind(
        "Costs",
        "What each model cost, for decisions and texts together. Calls are requests, including "
        "failed ones. Seconds count the last request of each answer.",
        "select * exclude run from costs",
    ),
)
"""Sections after the chart."""

CASCADES = Kind(
    "Cascades",
    "A post and everything that replies to it or reshares it, directly or not. Depth is the "
    "longest chain from the root, breadth the most posts at one depth, virality the mean distance "
    "between two posts of the tree (Goel et al. 2016), and ticks the time until the last post.",
    "select root_id, author_id, size, depth, breadth, virality, agents, "
    "lifetime_ticks as ticks, text from cascades where size > 1",
    most=20,
)
