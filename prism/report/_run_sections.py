"""The sections of a report on runs: a title, a query on the tables of their logs, and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import altair as alt
from duckdb import DuckDBPyRelation

from prism.analysis import Log
from prism.report._html import Figure, Section
from prism.report._table import Rows, rows_of, short, turned

HEIGHT = 260
_SMALL, _LOW = 300, 180
_MOST_MOMENTS, _MOST_BARS, _MOST_POINTS = 240, 120, 300
_MOST_MEASURES, _MOST_LEVELS = 24, 4
_SOURCES = ("model", "cache", "replay", "policy", "fallback")
_LENGTHS = ("median", "mean", "p90", "p99", "max")


@dataclass(frozen=True)
class Scope:
    """What the figures of a page have in common.

    Args:
        states: All states in the order of their colours.
        unit: The name of a round.
    """

    states: Sequence[str]
    unit: str = "round"

    def colour(self, column: str, rows: Rows, names: Sequence[str] = ()) -> alt.Color:
        """Return colours for the values of a column: of states, or of other names."""
        domain = list(names) or list(self.states)
        drawn = {row[column] for row in rows}
        domain += [
            name for name in dict.fromkeys(row[column] for row in rows) if name not in domain
        ]
        legend = alt.Legend(values=[name for name in domain if name in drawn])
        return alt.Color(f"{column}:N", scale=alt.Scale(domain=domain), sort=domain, legend=legend)


Draw = Callable[[list[dict[str, Any]], Scope], alt.TopLevelMixin]


class Plot(NamedTuple):
    """A figure: its name, the query for its rows, and what draws them."""

    name: str
    query: str
    draw: Draw


@dataclass(frozen=True, slots=True)
class Kind:
    """A section of a report.

    Args:
        title: Its heading.
        about: How to read it.
        query: The rows of its table; columns without values are left out.
        plots: Its figures.
        headings: Headings of columns, if they differ from the names.
        most: Most rows to show.
        searchable: Whether readers can search and sort the table.
        is_turned: Whether the table has a row for each column, as there are many.
    """

    title: str
    about: str = ""
    query: str = ""
    plots: Sequence[Plot] = ()
    headings: Mapping[str, str] = field(default_factory=dict)
    most: int = 40
    searchable: bool = False
    is_turned: bool = False


def section_of(kind: Kind, log: Log, scope: Scope) -> Section:
    """Return a section of a report with its rows and figures, which may be none."""
    rows = with_values(log.sql(kind.query), log) if kind.query else []
    figures: dict[str, Figure] = {}
    for plot in kind.plots:
        if drawn := with_values(log.sql(plot.query), log):
            figures[plot.name] = plot.draw(drawn, scope).properties(description=kind.title)
    return Section(
        kind.title,
        kind.about,
        figures,
        turned(rows) if kind.is_turned else rows,
        kind.headings,
        kind.most,
        kind.searchable,
    )


def with_values(relation: DuckDBPyRelation, log: Log) -> list[dict[str, Any]]:
    """Return rows without columns that have no value, or one ``run`` or ``chart`` for all."""
    rows = rows_of(relation)
    hidden = {"run"} if len(log.runs) == 1 else set()
    hidden |= {"chart"} if len({row.get("chart") for row in rows}) == 1 else set()
    names = [
        name
        for name in (rows[0] if rows else ())
        if name not in hidden and any(row[name] is not None for row in rows)
    ]
    return [
        {name: short(row[name]) if isinstance(row[name], str) else row[name] for name in names}
        for row in rows
    ]


def _data(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=list(rows))


def _tips(*columns: str) -> list[alt.Tooltip]:
    """Return what a reader sees when pointing at a mark: columns, with a format after a space."""
    parts = (column.partition(" ") for column in columns)
    return [
        alt.Tooltip(name, format=form) if form else alt.Tooltip(name) for name, _, form in parts
    ]


def _beside(chart: Any, rows: Rows, height: int) -> alt.TopLevelMixin:
    """Draw runs and charts beside each other, on the same scales."""
    runs = {row.get("run") for row in rows}
    keys = ["run"] if len(runs) > 1 else []
    if len({(row.get("run"), row.get("chart")) for row in rows}) > len(runs):
        keys.append("chart")
    if not keys:
        sized: alt.TopLevelMixin = chart.properties(height=height)
        return sized

    for row in rows:
        row["part"] = ", ".join(str(row.get(name) or "") for name in keys)  # type: ignore[index]
    small = chart.properties(width=_SMALL, height=height)
    drawn: alt.TopLevelMixin = small.facet(alt.Facet("part:N", sort=None), columns=3)
    return drawn


def _rounds(scope: Scope) -> alt.X:
    axis = alt.Axis(format=",d", tickMinStep=1)
    return alt.X("round:Q", title=scope.unit, axis=axis, scale=alt.Scale(zero=False, nice=False))


# Moments are drawn as they are if an axis has room for them, else the means of whole rounds, or
# of several; a log without rounds is drawn by time.
STATES = f"""
with counts as materialized (from {{states}}),
sizes as (
    select count(distinct (round, tick, time)) as moments, min(round) as first,
           max(round) - min(round) + 1 as rounds, max(tick) as ticks,
           epoch_ms(min(time)) as begun,
           1 + coalesce(epoch_ms(max(time)) - epoch_ms(min(time)), if(rounds = 1, moments, rounds))
               // {_MOST_MOMENTS} as step
    from counts
)
select run, chart, state, avg(agents) as agents, case
    when time is not null then begun + (epoch_ms(time) - begun) // step * step
    when rounds = 1 and tick is not null then tick // step * step
    when moments <= {_MOST_MOMENTS} then round + coalesce((tick - 1) / ticks, 0)
    else first + (round - first) // step * step end as moment,
    min(round) as round, min(tick) as tick,
    any_value(case when time is not null then 'time'
                   when rounds = 1 and tick is not null then 'tick' end) as unit
from counts, sizes group by run, chart, state, moment order by run, chart, moment, state
"""


def _states(rows: list[dict[str, Any]], scope: Scope) -> alt.TopLevelMixin:
    unit = next((row["unit"] for row in rows if row.get("unit")), scope.unit)
    places = sorted({row["moment"] for row in rows})
    # the last moment is as long as the one before it
    length = places[-1] - places[-2] if len(places) > 1 else 1
    ends = dict(zip(places, [*places[1:], places[-1] + length], strict=True))
    order = {name: place for place, name in enumerate(scope.states)}
    tops: dict[tuple[Any, ...], float] = {}
    for row in sorted(rows, key=lambda row: order.get(row["state"], len(order))):
        bar = row.get("run"), row.get("chart"), row["moment"]
        low = tops.get(bar, 0.0)
        tops[bar] = low + row["agents"]
        row |= {"end": ends[row["moment"]], "low": low, "high": tops[bar]}
    if unit == "time":
        x = alt.X("moment:T", title="time (UTC)", scale=alt.Scale(type="utc"))
    else:
        axis = alt.Axis(format=",d", tickMinStep=1)
        x = alt.X("moment:Q", title=unit, axis=axis, scale=alt.Scale(zero=False, nice=False))
    chart = (
        alt.Chart(_data([row for row in rows if row["agents"]]))
        .mark_rect()
        .encode(
            x,
            alt.X2("end"),
            alt.Y("low:Q", title="agents", scale=alt.Scale(nice=False)),
            alt.Y2("high"),
            scope.colour("state", rows),
            tooltip=_tips("state:N", "agents:Q ,.4~g", "moment:Q .4~g"),
        )
    )
    return _beside(chart, rows, HEIGHT)


def _dwell(rows: list[dict[str, Any]], scope: Scope) -> alt.TopLevelMixin:
    for row in rows:
        # a percentile that no observed visit reaches is beyond the longest visit
        row |= {name: row["max"] if row.get(name) is None else row[name] for name in _LENGTHS}
    title = "ticks, or rounds where events happen at rates"
    x = alt.X("median:Q", title=title, scale=alt.Scale(type="symlog"))
    y = alt.Y("state:N", sort=list(scope.states), title=None)
    colour = alt.Color("state:N", scale=alt.Scale(domain=list(scope.states)), legend=None)
    numbers = [f"{name}:Q .3~g" for name in _LENGTHS]
    base = alt.Chart().encode(y, colour, tooltip=_tips("state:N", "visits:Q ,", *numbers))
    layers = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x, alt.X2("p99")),
        base.mark_bar(height=10).encode(x, alt.X2("p90")),
        base.mark_tick(thickness=4, height=16).encode(x),
        base.mark_point(
            filled=True, size=60, shape="diamond", stroke="white", strokeWidth=1
        ).encode(alt.X("mean:Q", title=title)),
        data=_data(rows),
    )
    return _beside(layers, rows, 26 * len({row["state"] for row in rows}))


_MEASURES = f"""
with sized as (select max(round) - min(round) as rounds from measures),
named as (select run, round, string_agg(treatment, ', ' order by line) as treatment
          from treatments group by run, round)
select m.run, measure, m.round, value, treatment
from measures m left join named n using (run, round) cross join sized
where m.round % (1 + rounds // {_MOST_POINTS}) = 0 or treatment is not null
order by m.run, m.round
"""


def _measures(rows: list[dict[str, Any]], scope: Scope) -> alt.TopLevelMixin:
    names = list(dict.fromkeys(row["measure"] for row in rows))[:_MOST_MEASURES]
    rows = [row for row in rows if row["measure"] in names]
    x = _rounds(scope)
    line = (
        alt.Chart()
        .mark_line(invalid="break-paths-show-domains")
        .encode(x, alt.Y("value:Q", title=None), tooltip=_tips("round:Q", "value:Q ,.4~g"))
    )
    if "run" in rows[0]:
        line = line.encode(
            scope.colour("run", rows, list(dict.fromkeys(row["run"] for row in rows)))
        )
    layers = [line]
    if "treatment" in rows[0]:
        rule = alt.Chart().transform_filter("isValid(datum.treatment)").mark_rule(strokeDash=[4, 3])
        layers.insert(0, rule.encode(x, tooltip=_tips("treatment:N", "round:Q")))
    charts = alt.layer(*layers, data=_data(rows)).properties(width=_SMALL - 40, height=_LOW - 40)
    grid: Any = charts.facet(alt.Facet("measure:N", sort=names), columns=3)
    drawn: alt.TopLevelMixin = grid.resolve_scale(y="independent").resolve_axis(x="independent")
    return drawn


def _by_round(select: str, source: str, most: int = _MOST_BARS) -> str:
    """Return a query for counts in each round, or in several together if there are many."""
    width = f"(1 + (select max(round) - min(round) from {source}) // {most})"
    begin = f"coalesce(round, 0) // {width} * {width}"
    return (
        f"select run, {begin} as round, {begin} + {width} as until, {select} from {source} "
        "group by all order by all"
    )


def _bars(
    rows: list[dict[str, Any]], scope: Scope, key: str, count: str, names: Sequence[str], stack: Any
) -> alt.TopLevelMixin:
    axis = alt.Axis(format=",d", tickMinStep=1)
    x = alt.X("round:Q", bin="binned", title=scope.unit, axis=axis, scale=alt.Scale(zero=False))
    title = f"share of {count}" if stack == "normalize" else count
    chart = (
        alt.Chart(_data(rows))
        .mark_bar(binSpacing=0.5)
        .encode(
            x,
            alt.X2("until"),
            alt.Y(f"{count}:Q", stack=stack, title=title),
            scope.colour(key, rows, names),
            tooltip=_tips("round:Q", f"{key}:N", f"{count}:Q ,"),
        )
    )
    return _beside(chart, rows, _LOW)


def _choices(rows: list[dict[str, Any]], scope: Scope) -> alt.TopLevelMixin:
    return _bars(rows, scope, "chosen", "decisions", (), "normalize")


def _sources(rows: list[dict[str, Any]], scope: Scope) -> alt.TopLevelMixin:
    return _bars(rows, scope, "source", "decisions", _SOURCES, "zero")


def _events(rows: list[dict[str, Any]], scope: Scope) -> alt.TopLevelMixin:
    names = sorted({row["event"] for row in rows})
    return _bars(rows, scope, "event", "events", names, "zero")


# 0.001 s is on the edge of a bar, and a rounding error must not move it below.
_LATENCIES = """
select run, source, floor(log10(greatest(latency, 1e-4)) * 10 + 1e-9) as bin,
       10 ** (bin / 10) as seconds, 10 ** ((bin + 1) / 10) as until, count(*) as decisions
from decided where was_asked and source is not null group by all order by run, source, bin
"""


def _latencies(rows: list[dict[str, Any]], scope: Scope) -> alt.TopLevelMixin:
    axis = alt.Axis(format=".2~g", labelOverlap=True, tickCount=6)
    log = alt.Scale(type="log", nice=False)
    chart = (
        alt.Chart(_data(rows))
        .mark_bar(binSpacing=0.5)
        .encode(
            alt.X("seconds:Q", bin="binned", scale=log, axis=axis, title="seconds for an answer"),
            alt.X2("until"),
            alt.Y("decisions:Q", stack="zero"),
            scope.colour("source", rows, _SOURCES),
            tooltip=_tips("source:N", "seconds:Q .2~g", "decisions:Q ,"),
        )
    )
    return _beside(chart, rows, _LOW)


_SIZES = """
select run, size, sum(count(*)) over (partition by run order by size desc) as cascades
from cascades group by run, size order by run, size desc
"""
_SHAPES = """
select run, size, depth, count(*) as cascades from cascades where size > 1 group by all
order by run, size, depth
"""


def _sizes(rows: list[dict[str, Any]], _scope: Scope) -> alt.TopLevelMixin:
    """Draw the complementary cumulative distribution of sizes, on logarithmic axes."""
    axis = alt.Axis(format=",d", labelOverlap=True, tickCount=5)
    log = alt.Scale(type="log", nice=False)
    chart = (
        alt.Chart(_data(rows))
        .mark_line(point=True, interpolate="step-before")
        .encode(
            alt.X("size:Q", scale=log, axis=axis, title="posts in the cascade, at least"),
            alt.Y("cascades:Q", scale=log, axis=axis),
            tooltip=_tips("size:Q", "cascades:Q ,"),
        )
    )
    return _coloured(chart, rows)


def _shapes(rows: list[dict[str, Any]], _scope: Scope) -> alt.TopLevelMixin:
    """Draw the depths of cascades by size: broadcasts are low, conversations are high."""
    axis = alt.Axis(format=",d", labelOverlap=True, tickCount=5)
    chart = (
        alt.Chart(_data(rows))
        .mark_circle(opacity=0.6)
        .encode(
            alt.X("size:Q", scale=alt.Scale(type="log"), axis=axis, title="posts in the cascade"),
            alt.Y("depth:Q", axis=alt.Axis(format=",d", tickMinStep=1)),
            alt.Size("cascades:Q", scale=alt.Scale(range=[16, 220]), legend=None),
            tooltip=_tips("size:Q", "depth:Q", "cascades:Q ,"),
        )
    )
    return _coloured(chart, rows)


def _coloured(chart: alt.Chart, rows: Rows) -> alt.TopLevelMixin:
    """Draw several runs in colours of their own."""
    sized: alt.Chart = chart.properties(height=HEIGHT)
    return sized.encode(alt.Color("run:N")) if "run" in rows[0] else sized


_PROMPTS = f"""
with sized as (select run, max(cycle) // {_MOST_POINTS} + 1 as step from events
               where event = 'cognition.cycle' group by run)
select e.run, cycle // sized.step * sized.step as round, max(prompt_tokens) as prompt,
       max(memory_tokens) as "working memory", max(soft_limit) as "paging limit",
       max(hard_limit) as "hard limit",
       max(tokens_after) filter (event = 'cognition.paged') as "after paging"
from events e join sized using (run) where event in ('cognition.cycle', 'cognition.paged')
group by all order by e.run, round
"""


def _prompts(rows: list[dict[str, Any]], scope: Scope) -> alt.TopLevelMixin:
    long = [
        {
            **({"run": row["run"]} if "run" in row else {}),
            "round": row["round"],
            "what": name,
            "tokens": value,
        }
        for row in rows
        for name, value in row.items()
        if name not in ("run", "round") and value is not None
    ]
    names = list(dict.fromkeys(row["what"] for row in long))
    chart = (
        alt.Chart(_data(long))
        .mark_line(point=len(rows) <= 100)
        .encode(
            _rounds(scope),
            alt.Y("tokens:Q"),
            scope.colour("what", long, names),
            tooltip=_tips("round:Q", "what:N", "tokens:Q ,"),
        )
    )
    return _beside(chart, long, HEIGHT)


_NUMBERS = """
select r.run, (select count(*) from everyone e where e.run = r.run) as agents,
       logged_agents as "agents in the log", rounds_seen as rounds,
       if(rounds <> rounds_seen, rounds, null) as "rounds planned",
       ticks_per_round as "ticks a round", seed, transitions, time_outs, decisions,
       fallbacks / decisions as "share of fallbacks", posts, replies, reshares, likes, messages,
       texts
from runs r left join (
    select run, nullif(count(*) filter (event = 'statechart.transition'), 0) as transitions,
           nullif(count(*) filter (event = 'statechart.transition' and "trigger" = 'timeout'), 0)
           as time_outs,
           nullif(count(*) filter (event = 'reasoner.decision'), 0) as decisions,
           count(*) filter (event = 'reasoner.decision' and source = 'fallback') as fallbacks,
           nullif(count(*) filter (event = 'post.published' and kind = 'post'), 0) as posts,
           nullif(count(*) filter (event = 'post.published' and kind = 'reply'), 0) as replies,
           nullif(count(*) filter (event = 'post.published' and kind = 'reshare'), 0) as reshares,
           nullif(count(*) filter (event = 'post.liked'), 0) as likes,
           nullif(count(*) filter (event = 'message.sent'), 0) as messages,
           nullif(count(*) filter (event = 'text.written'), 0) as texts
    from events where event in ('statechart.transition', 'reasoner.decision', 'post.published',
                                'post.liked', 'message.sent', 'text.written')
    group by run) using (run) order by r.run
"""

# A text of a step has a key such as "3:write" or, where it was asked for again, "3:write:again".
_STEPS = r"""
with asked as (
    select run, nullif(regexp_extract("key", '^\d+:(.*?)(?::again)?$', 1), '') as step,
           sum(attempts)::bigint as requests
    from events where event = 'text.written' group by all
), acted as (
    select run, step, count(*) as actions, count(*) filter (succeeded) as succeeded
    from events where event = 'workflow.action' group by all
)
select s.*, requests, actions, succeeded
from (select run, step, type, count(*) filter (outcome = 'done') as done,
             nullif(count(*) filter (outcome = 'skipped'), 0) as skipped,
             nullif(count(*) filter (outcome = 'failed'), 0) as failed,
             nullif(count(*) filter (outcome = 'done' and reason is not null), 0) as refused,
             sum(seconds) as seconds, sum(input_tokens)::bigint as input_tokens,
             sum(output_tokens)::bigint as output_tokens, min(line) as line
      from events where event = 'workflow.step' group by run, step, type) s
left join asked using (run, step) left join acted using (run, step) order by s.run, line
"""
_CYCLES = """
select run, state, count(*) filter (outcome = 'done') as done,
       nullif(count(*) filter (outcome = 'refused'), 0) as refused,
       nullif(count(*) filter (outcome = 'unusable'), 0) as unusable,
       nullif(count(*) filter (outcome = 'failed'), 0) as failed,
       max(prompt_tokens) as largest_prompt,
       sum(input_tokens)::bigint as input_tokens, sum(output_tokens)::bigint as output_tokens
from events where event = 'cognition.cycle' group by run, state order by run, min(line)
"""
_ACTIONS = """
select run, coalesce(nullif(type, ''), 'none') as action,
       count(*) filter (outcome = 'done') as done, count(*) filter (outcome = 'missing') as missing,
       count(*) filter (event = 'cognition.refused') as refused
from events where event in ('cognition.action', 'cognition.refused')
group by all order by run, done + missing + refused desc, action
"""
_THOUGHTS = """
select run, agent_id, cycle, thought from events
where event = 'cognition.cycle' and thought is not null
qualify row_number() over (partition by run order by line desc) <= 30 order by run, line
"""
_PLACES = """
select *, times / sum(times) over (partition by run, options) as share from (
    select run, len(options) as options,
           (list_position(options, chosen) - 1 - rotation + len(options)) % len(options) + 1
           as place,
           count(*) as times
    from events where event = 'reasoner.decision' and source = 'model' and rotation is not null
                  and list_contains(options, chosen) group by all)
order by run, options, place
"""
_FROM_TO = {"from_state": "from", "to_state": "to"}

FIRST = (
    Kind("Key numbers", query=_NUMBERS, is_turned=True),
    Kind(
        "What went wrong",
        "A transition is not enabled if its guard fails. If its action fails, it is made "
        "nevertheless. Exceptions of one name are one kind. The log has the traceback of each.",
        "select run, replace(fault, '_', ' ') as fault, from_state, to_state, \"trigger\", error, "
        "count, agents, round, tick, line from faults",
        headings={**_FROM_TO, "round": "first in round", "line": "first in line"},
        most=20,
    ),
    Kind(
        "Where agents were stuck",
        "Events that made no transition: no guard let one pass, or the state has none for them.",
        "select * exclude (chart, line) from stuck",
        most=20,
    ),
)
"""Sections at the top of a report, before the parameters."""

OF_WORLDS_AND_PROGRAMS = (
    Kind(
        "Measures",
        "Measured at the end of each round. Dashed lines mark rounds that began with a treatment.",
        "select run, measure, arg_min(value, round) as first, arg_max(value, round) as last, "
        "min(value) as least, max(value) as most, avg(value) as mean from measures "
        "group by run, measure order by run, measure",
        [Plot("measures", _MEASURES, _measures)],
    ),
    Kind(
        "Arms",
        "The posts in the arms of experiments: means with 95% intervals over posts. To compare "
        "runs, use prism compare.",
        "from arms",
    ),
    Kind(
        "World events",
        "Events that the world logged under its own names. For one kind with all its keys:  "
        "prism log \"from events_of('world.NAME')\" RUN",
        "select run, event, sum(events)::bigint as events, min(round) as first, max(round) as last "
        "from world group by run, event order by run, events desc, event",
        [
            Plot(
                "events",
                _by_round(
                    "event, sum(events)::bigint as events",
                    "(from world where event in (select event from world group by event "
                    "order by sum(events) desc limit 10))",
                ),
                _events,
            )
        ],
        headings={"first": "first round", "last": "last round"},
    ),
    Kind(
        "Steps",
        "How often each step of a workflow ran and how it ended. Requests include retries; a "
        "refused step named a transition that it did not get; actions are what replies asked the "
        "application to do.",
        f"select * exclude line from ({_STEPS})",
    ),
    Kind(
        "Cycles",
        "How cycles of thinking ended, by their state, and the tokens of prompts and of working "
        "memory, by the agent's own count.",
        _CYCLES,
        [Plot("cycles", _PROMPTS, _prompts)],
    ),
    Kind(
        "Actions",
        "What the model asked for: done, missing (there is no such memory), or refused.",
        _ACTIONS,
    ),
    Kind("Thoughts", "The last thoughts of the log, oldest first.", _THOUGHTS),
)
"""Sections on worlds, workflows and thinking agents, before the chart."""

OF_STATES = (
    Kind(
        "Agents in each state",
        "At the end of each tick. Transitions made at the end of a round are counted in the next "
        "tick. A log without ticks is counted by rounds or steps of time.",
        plots=[Plot("states", STATES.format(states="states"), _states)],
    ),
    Kind(
        "How long agents stay",
        "From entering a state to leaving it: the median (tick), the mean (diamond), the 90th "
        "percentile (end of the bar) and the 99th (end of the line). Visits that were cut short "
        "are censored (Kaplan and Meier 1958).",
        "select * exclude at_risk from dwell",
        [Plot("dwell", "from dwell", _dwell)],
        headings={"timeout_share": "by time-out", "zero": "of length 0"},
    ),
)
"""Sections after the chart."""

OF_DECISIONS = (
    Kind(
        "Decisions",
        "What was chosen when an event enabled several transitions, and which source chose. "
        "Entropy, in bits, measures how undecided the probabilities of the options were.",
        "from decisions",
        [
            Plot(
                "choices",
                _by_round(
                    "chosen, count(*) as decisions", "(from decided where chosen is not null)"
                ),
                _choices,
            ),
            Plot("sources", _by_round("source, count(*) as decisions", "decided"), _sources),
            Plot("latency", _LATENCIES, _latencies),
        ],
    ),
    Kind(
        "Places in the list",
        "How often a model chose each place in its list of options, where their order was drawn. "
        "Choices that depend on the options alone are the same everywhere.",
        _PLACES,
    ),
    Kind(
        "Why fallbacks were taken",
        query="select run, reason, asked as decisions from decisions_by(['source', 'reason']) "
        "where source = 'fallback' order by run, asked desc, reason",
        most=10,
    ),
    Kind(
        "Costs",
        "What each model cost, for decisions and texts together. Calls are requests, including "
        "failed ones. Seconds count the last request of each answer.",
        "from costs",
    ),
)
"""Sections on what reasoners chose, and what it cost."""

CASCADES = Kind(
    "Cascades",
    "A post and everything that replies to it or reshares it, directly or not. Depth is the "
    "longest chain from the root, breadth the most posts at one depth, virality the mean distance "
    "between two posts of the tree (Goel et al. 2016), and ticks the time until the last post.",
    "select run, root_id, author_id, size, depth, breadth, virality, agents, "
    "lifetime_ticks as ticks, text from cascades where size > 1",
    [Plot("cascades", _SIZES, _sizes), Plot("shapes", _SHAPES, _shapes)],
    most=20,
)
MESSAGES = Kind(
    "Messages",
    "The first that agents said to each other.",
    "select run, round, tick, sender, receiver, content from messages",
    most=50,
)


def levels(depth: int) -> Iterator[Kind]:
    """Yield a section for each level of charts with nested states."""
    for level in range(1, min(depth, _MOST_LEVELS) + 1):
        query = STATES.format(states=f"states_at({level})")
        yield Kind(
            f"Agents on level {level} of the chart",
            "Level 1 has the outermost states. An agent in several regions counts in each of them.",
            plots=[Plot(f"levels-{level}", query, _states)],
        )
