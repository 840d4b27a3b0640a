"""Agents as lists: those behind a state, an arrow or a bar, and all of them as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any

from prism.drawing import showable
from prism.errors import InputError
from prism.runlog._events import WORLD_EVENTS
from prism.watch._charts import MOVES, charts_of
from prism.watch._watched import Watched

MOST_AGENTS = 200
MOST_ROWS = 100
_MOST_STATES = 40

_PLACES = f"""
{MOVES}, last as (
    select agent_id, max(line) as line, arg_max(target, line) as state from moves
    where $number is null
       or round <= $number and not (round = $number and (closes or coalesce(tick > $tick, false)))
    group by chart, agent_id)
"""
_IN = f"{_PLACES} select agent_id, state from last where state <> ''"
_BEHIND = """
select agent_id, from_state, to_state, count(*) as times from events
where round is not distinct from $number and agent_id is not null and {} group by all
order by times desc, min(line)
"""
_CONDITIONS = {
    "source": "event = 'statechart.transition'",
    "chosen": "event = 'reasoner.decision' and chosen = $value",
    "by": "event = 'reasoner.decision' and source = $value",
    "event": "event = $value",
}
"""The filters for the agents behind an arrow or a bar."""

_KINDS = {
    "posts": "event = 'post.published' and kind = 'post' and coalesce(round, 1) > 0",
    "replies": "event = 'post.published' and kind = 'reply' and coalesce(round, 1) > 0",
    "reshares": "event = 'post.published' and kind = 'reshare' and coalesce(round, 1) > 0",
    "likes": "event = 'post.liked'",
    "decisions": "event = 'reasoner.decision'",
}
_ENTERED = "select distinct to_state from events where to_state is not null"
_MEASURES = """
select distinct on (agent_id, measure) agent_id, measure, value from agent_measures
where agent_id is not null order by round desc nulls last
"""


def agents_behind(
    watched: Watched, number: int | None, query: Mapping[str, str], tick: int | None
) -> dict[str, Any]:
    """Return the agents in a state, or with an event of a round, and how often each had one.

    Args:
        watched: The run.
        number: The round.
        query: The address of the page: a ``state``, or else the ``source`` and ``target`` of an
            arrow, an option (``chosen``), who decided (``by``), or an ``event`` of a world's own.
        tick: The tick of the round, for a state.
    """
    kind = next((name for name in _CONDITIONS if name in query), "state")
    with watched.reading():
        charts = charts_of(watched)
        levels = [*charts.levels.values()] if charts else []
        if kind == "state":
            rows = watched.rows(_IN, number=number, tick=tick)
        else:
            value = WORLD_EVENTS + query[kind] if kind == "event" else query[kind]
            values = {} if kind == "source" else {"value": value}
            rows = watched.rows(_BEHIND.format(_CONDITIONS[kind]), number=number, **values)

    @cache
    def is_in(state: str) -> bool:
        return state == query["state"] or any(
            query["state"] in each.active(state) for each in levels
        )

    @cache
    def took(*ends: str) -> bool:
        wanted = query["source"], query["target"]
        return ends == wanted or any(wanted in each.used(*ends) for each in levels)

    counts = Counter[str]()
    for row in rows:
        if kind == "state" and not is_in(showable(row["state"])):
            continue
        if kind == "source" and not took(showable(row["from_state"]), showable(row["to_state"])):
            continue
        counts[row["agent_id"]] += row.get("times", 1)

    agents = [{"agent": agent, "times": times} for agent, times in counts.most_common()]
    return {"agents": agents[:MOST_AGENTS], "found": len(agents)}


def agent_table(
    watched: Watched, words: str = "", sort: str = "", first: int = 0, number: int | None = None
) -> dict[str, Any]:
    """Return a page of the table of all agents: where each is, and how often it did what.

    Args:
        watched: The run.
        words: Parts of their ids and states; each must be there.
        sort: The column to sort by, the lowest first, or after ``-`` the highest first.
        first: Agents to pass over.
        number: The round at whose end the states are shown.

    Raises:
        InputError: If there is no such column.
    """
    with watched.reading():
        table, columns = _table(watched)
        shown = {showable(name): name for name in columns}
        column = shown.get(sort.removeprefix("-"))
        if sort and column is None:
            raise InputError(f"the table of agents has no column {sort[:80]!r}")

        named = "lower(concat_ws(' ', agent, state))"
        parts = dict(enumerate(words.lower().split()))
        found = " and ".join(["true", *(f"contains({named}, $word_{each})" for each in parts)])
        falling = "desc" if sort.startswith("-") else ""
        order = f"{_name(column)} {falling} nulls last, " if column else ""
        rows = watched.rows(
            f"{table} select {', '.join(map(_name, columns))}, count(*) over () as _found "
            f"from everybody where {found} "
            f"order by {order} natural_order(agent), agent limit {MOST_ROWS} offset $first",
            number=number,
            tick=None,
            first=first,
            **{f"word_{each}": part for each, part in parts.items()},
        )

    values = [[_plain(row[name]) for name in columns] for row in rows]
    return {"columns": [*shown], "rows": values, "found": rows[0]["_found"] if rows else 0}


def _table(watched: Watched) -> tuple[str, list[str]]:
    """Return the query of the table, and its columns without those that are zero for all."""
    (some,) = watched.rows(
        "select "
        + ", ".join(f"bool_or({each}) as {name}" for name, each in _KINDS.items())
        + " from events"
    )
    counts = {name: _KINDS[name] for name, is_there in some.items() if is_there}
    counts = (
        {"transitions": "event = 'statechart.transition'"}
        | {
            f"entered {state}": f"to_state in ({places}) and not coalesce(from_state in ({places}) "
            "and from_state <> to_state, false)"
            for state, places in _boxes(watched).items()
        }
        | counts
    )
    listed = ", ".join(
        f"count(*) filter ({each}) as {_name(name)}" for name, each in counts.items()
    )
    measures = [
        row["measure"] for row in watched.rows(f"select distinct measure from ({_MEASURES})")
    ]
    own = sorted(name for name in measures if name not in (*counts, "agent", "state"))
    values = "".join(
        f", any_value(value) filter (measure = {_text(name)}) as {_name(name)}" for name in own
    )
    table = (
        f"{_PLACES}, counted as (select agent_id, {listed} from events "
        "where agent_id is not null group by agent_id), "
        f"measured as (select agent_id{values} from ({_MEASURES}) group by agent_id), "
        "everybody as (select c.agent_id as agent, nullif(l.state, '') as state, "
        "c.* exclude (agent_id), m.* exclude (agent_id) from counted c "
        "left join (select agent_id, arg_max(state, line) as state from last group by agent_id) l "
        "using (agent_id) left join measured m using (agent_id))"
    )
    return table, ["agent", "state", *counts, *own]


def _boxes(watched: Watched) -> dict[str, str]:
    """Return where agents in each state are, as a list in SQL: there, or in a state inside."""
    states = sorted(row["to_state"] for row in watched.rows(_ENTERED))[:_MOST_STATES]
    places = {state: [state] for state in states}
    charts = charts_of(watched)
    nested = [each for each in charts.levels.values() if each.diagram.boxes] if charts else []
    for levels, place in product(nested, states):
        for state in levels.active(place):
            if place not in places.setdefault(state, []):
                places[state].append(place)

    return {state: ", ".join(map(_text, inside)) for state, inside in places.items()}


def _text(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _name(value: str) -> str:
    escaped = value.replace('"', '""')
    return f'"{escaped}"'


def _plain(value: Any) -> Any:
    return showable(value) if isinstance(value, str) else value
