"""One agent, or one thread, as a part of the page: what was done, and what it was asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from markupsafe import Markup

from prism.analysis import rows_of
from prism.drawing import draw_svg, showable
from prism.errors import InputError
from prism.report import Section
from prism.report.charts import Traffic
from prism.report.conversations import (
    DECISIONS,
    THREADS,
    decision,
    listed,
    object_in,
    records_of,
    thread,
    transcript,
    what_of,
    when,
)
from prism.report.table import Rows, joined, link, short
from prism.watch._view import run_charts, sentence, view
from prism.watch._watched import Watched

_MOST_EVENTS, _MOST_DECISIONS = 300, 40

_DECISIONS = f"""
{DECISIONS} where agent_id = $agent and event in ('reasoner.decision', 'text.written')
and ($number is null or coalesce(round, 0) <= $number) order by line desc limit {_MOST_DECISIONS}
"""
_JOINED = "select attributes from events where event = 'agent.joined' and agent_id = $agent limit 1"
_SPOKEN = """
select *, if(sender = $agent, receiver, sender) as partner from messages
where sender = $agent or receiver = $agent order by partner, line
"""
_CHOSEN = """
select root_id, count(*) as size from posts where root_id in (
    select root_id from posts where post_id = $post and kind is not null) group by root_id
"""


def agent_view(watched: Watched, agent: str, number: int | None) -> dict[str, Any]:
    """Return the page of an agent: what it did in one round and in all.

    Args:
        watched: The run.
        agent: The agent.
        number: The round that is looked at; None in a log without rounds.

    Raises:
        InputError: If the log has no such agent.
    """
    with watched.reading():
        return view(_sections(watched, agent, number))


def _sections(watched: Watched, agent: str, number: int | None) -> Iterator[Section]:
    with watched.reading() as log:
        story = log.rows("agent", agent)
        rows = rows_of(log.sql(_DECISIONS, agent=agent, number=number))
        records = records_of(log, rows)
    unit = watched.unit
    at = f"{unit} {number:,}" if number is not None else ""
    if at:
        here = [row for row in story if row["round"] == number]
        nothing = Markup("<p>Nothing.</p>")
        yield Section("What it did", f"In {at}.", more=_listed(here, unit) or nothing)
    decisions = joined(
        decision(
            f"{when(row, unit)}: {what_of(row)} ({row['source']})", row, records.get(row["id"], {})
        )
        for row in rows
    )
    about = f"Up to {at}, the last first." if at else "The last first."
    yield Section("What it was asked", about, more=decisions)
    yield Section("Its fields", rows=_fields(watched, agent))
    yield Section("Its path on the chart", more=_path(watched, story))
    yield Section("Its messages", more=_spoken(watched, agent))
    about = f"The last first, {_MOST_EVENTS} at most of {len(story):,}."
    yield Section("All that it did", about, more=_listed(story, unit))


def _listed(rows: Rows, unit: str) -> Markup:
    return listed(
        (link("round", row["round"], when(row, unit)), sentence(row))
        for row in rows[: -_MOST_EVENTS - 1 : -1]
    )


def _fields(watched: Watched, agent: str) -> Rows:
    """Return its fields as it joined."""
    joins = watched.rows(_JOINED, agent=agent)
    first = object_in(joins[0], "attributes") if joins else {}
    return [{"field": showable(name), "when it joined": value} for name, value in first.items()]


def _path(watched: Watched, story: Rows) -> Markup:
    counts = Traffic(
        (showable(row["from_state"]), showable(row["to_state"]))
        for row in story
        if None not in (row["from_state"], row["to_state"])
    )
    charts = run_charts(watched)
    for levels in charts.levels.values() if charts else ():
        states = {*levels.diagram.states}
        its = {ends: n for ends, n in levels.traffic(counts).items() if states.issuperset(ends)}
        if its:
            svg = Markup(draw_svg(levels.diagram, its))
            return Markup('<div class="scroll" tabindex="0">{}</div>').format(svg)

    return Markup("")


def _spoken(watched: Watched, agent: str) -> Markup:
    """Return what it said to each other agent, and was told, each as a transcript."""
    rows = watched.rows(_SPOKEN, agent=agent)
    return joined(
        Markup("<details><summary>With {}: {:,} messages</summary>{}</details>").format(
            short(partner or "everybody"), len(messages := [*group]), transcript(messages)
        )
        for partner, group in groupby(rows, key=lambda row: row["partner"])
    )


def thread_view(watched: Watched, post: str) -> Mapping[str, Any]:
    """Return the thread that a post belongs to, in reading order.

    Raises:
        InputError: If the log has no such post.
    """
    rows = watched.rows(THREADS.format(chosen=_CHOSEN), post=post)
    if not rows:
        raise InputError(f"the log has no post {post!r} so far")
    return view([Section("The thread", more=thread(rows, post))])
