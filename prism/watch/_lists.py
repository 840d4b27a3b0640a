"""Agents as lists: those behind a state or an arrow, and all of them as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from markupsafe import Markup

from prism.drawing import showable
from prism.errors import InputError
from prism.runlog._reader import in_words
from prism.watch._charts import MOVES, charts_of
from prism.watch._html import Section, View, cell, cut, framed, link
from prism.watch._watched import Watched

MOST_AGENTS = 200
MOST_ROWS = 100

_IN = f"""
{MOVES}
select agent_id, arg_max(target, line) as state, 1 as times from moves
where $number is null
   or round <= $number and not (round = $number and (closes or coalesce(tick > $tick, false)))
group by chart, agent_id having state <> ''
"""
_TOOK = """
select agent_id, from_state, to_state, count(*) as times from events
where event = 'statechart.transition' and round is not distinct from $number
  and agent_id is not null and from_state is not null and to_state is not null
group by all order by times desc, min(line)
"""
_UNLISTED = ("interests", "following", "display_name", "chart")


def agents_behind(
    watched: Watched, number: int | None, query: Mapping[str, str], tick: int | None
) -> View:
    """Return the agents in a state, or those that took an arrow, and how often each did.

    Args:
        watched: The run.
        number: The round.
        query: The address of the page: a ``state``, or the ``source`` and ``target`` of an arrow.
        tick: The tick of the round, for a state.
    """
    is_arrow = "source" in query
    wanted = (query["source"], query["target"]) if is_arrow else query["state"]
    with watched.reading():
        charts = charts_of(watched)
        levels = [*charts.levels.values()] if charts else []
        values = {"number": number} if is_arrow else {"number": number, "tick": tick}
        rows = watched.rows(_TOOK if is_arrow else _IN, **values)

    @cache
    def is_wanted(*states: str) -> bool:
        if is_arrow:
            return states == wanted or any(wanted in each.used(*states) for each in levels)
        return states[0] == wanted or any(wanted in each.active(states[0]) for each in levels)

    counts = Counter[str]()
    for row in rows:
        names = ("from_state", "to_state") if is_arrow else ("state",)
        if is_wanted(*(showable(row[name]) for name in names)):
            counts[row["agent_id"]] += row["times"]

    agents = counts.most_common()
    listed = Markup("").join(
        Markup("<li>{}{}</li>").format(
            link("agent", agent), f" {times:,} times" if times > 1 else ""
        )
        for agent, times in agents[:MOST_AGENTS]
    )
    text = f"{len(agents):,} agent{'' if len(agents) == 1 else 's'}"
    if len(agents) > MOST_AGENTS:
        text = f"The first {MOST_AGENTS} of {text}"
    section = Section("names", "", text, Markup('<ul class="names">{}</ul>').format(listed))
    some = [{"agent": agent, "times": times} for agent, times in agents[:MOST_AGENTS]]
    return View([section], more={"agents": some, "found": len(agents)})


def agent_table(watched: Watched, words: str = "", sort: str = "", first: int = 0) -> View:
    """Return a page of the table of all agents, as far as the log is read.

    Args:
        watched: The run.
        words: Parts of their ids and states; each must be there.
        sort: The column to sort by, the lowest first, or after ``-`` the highest first.
        first: Agents to pass over.

    Raises:
        InputError: If there is no such column.
    """
    with watched.reading() as log:
        table = log.table("agents")
        names = dict.fromkeys(["agent_id", "state", *table.columns])
        columns = {showable(name): name for name in names if name not in _UNLISTED}
        shown = sort.removeprefix("-")
        column = columns.get(shown)
        if column is not None:
            # it stands beside the names, where a phone shows it
            columns = {"agent_id": "agent_id", shown: column, **columns}
        if sort and column is None:
            raise InputError(f"the table of agents has no column {sort[:80]!r}")

        named = "lower(concat_ws(' ', agent_id, state))"
        matches = [f"contains({named}, {_text(word)})" for word in words.lower().split()]
        falling = "desc" if sort.startswith("-") else ""
        order = f"{_name(column)} {falling} nulls last, " if column else ""
        listed = table.query(
            "listed",
            f"select {', '.join(map(_name, columns.values()))}, count(*) over () from listed "
            f"where {' and '.join(['true', *matches])} "
            f"order by {order} natural_order(agent_id), agent_id "
            f"limit {MOST_ROWS} offset {first}",
        )
        rows = listed.fetchall() if listed is not None else []

    values = [list(map(_plain, row[:-1])) for row in rows]
    found, last = rows[0][-1] if rows else 0, first + len(rows)
    pages = (
        (max(first - MOST_ROWS, 0), "Before", first > 0),
        (last, "Next", last < found),
    )
    html = framed(
        "all-agents",
        [_heading(name, sort) for name in columns],
        [[cell(link("agent", row[0])), *map(cell, row[1:])] for row in values],
    ) + Markup("").join(
        Markup('<button type="button" data-first="{}">{}</button> ').format(place, text)
        for place, text, is_there in pages
        if is_there
    )
    text = (
        f"{first + 1:,} to {last:,} of {found:,}. Choose a heading to sort by it, and an agent for "
        "all that it did. States and counts are those of the whole run so far."
    )
    section = Section("all", "", text if rows else "There is no such agent.", html)
    return View([section], more={"columns": [*columns], "rows": values, "found": found})


def _heading(name: str, sort: str) -> Markup:
    order = {name: "ascending", f"-{name}": "descending"}.get(sort, "none")
    head = '<th scope="col" aria-sort="{}"><button type="button" data-column="{}">{}</button></th>'
    return Markup(head).format(order, name, cut(name).replace("_", " "))


def _text(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _name(value: str) -> str:
    escaped = value.replace('"', '""')
    return f'"{escaped}"'


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | None) else showable(in_words(value))
