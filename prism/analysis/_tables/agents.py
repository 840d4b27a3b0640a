"""Every agent of a run: its attributes, and how much it did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import merge_by_first, merge_by_last, merge_by_sum
from prism.analysis._reading.scanning import as_columns, read_object
from prism.analysis._tables.engagement import activity_by_number, runs_with_feed
from prism.analysis._tables.treated import with_arms
from prism.telemetry.events import AGENT_JOINED, DECISION, POST_WEIGHED, TRANSITION

_AGENT = ["run", "agent_id"]
_FACTS = ("display_name", "archetype", "interests", "following")
_DESCRIBED = (*_FACTS, "name", "chart", "arm")
_COUNTS = ("transitions", "weighed", "decisions", "fallbacks")
_OF_FEED = ("archetype", "interests", "following", "weighed")
_DIGITS = 20
_READ = ("agent_id", "chart", "attributes", "state", "from_state", "to_state", "source")


def agents(logs: RunLogs) -> pl.DataFrame:
    """Describe every agent: its attributes, and how much it did.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each agent of the log, by name (``agent_2`` before ``agent_10``): ``agent_id``;
        its description when it joined, even if it has changed since, null if the log lacks it:
        ``display_name``, ``archetype``, ``interests``, ``following`` (a number), and a column for
        each of its attributes or fields, if any (prefixed with ``attribute_`` if another column has
        the name); ``state`` (its last); ``transitions``, ``weighed`` (posts), ``decisions`` and
        ``fallbacks`` among them; and the posts, replies, reshares and likes that it gave and
        received. If agents were assigned to the arms
        of an experiment, ``arm`` follows the id (``a+b`` for two experiments). If there are several
        runs, ``run`` is the first column. In runs without posts, ``chart`` replaces the columns
        that only feeds have.
    """
    return logs.labelled(with_arms(logs, described_agents(logs, _FACTS)))


def described_agents(logs: RunLogs, facts: Sequence[str]) -> pl.DataFrame:
    """Return the table of `agents` with only some of the columns, by number of run."""
    parts = _read(logs, facts)
    table = activity_by_number(logs)
    acted = [name for name in table.columns if name not in _AGENT]
    feeds = runs_with_feed(logs, table)
    for part in parts:
        table = table.join(part, on=_AGENT, how="left")

    of_feed = [name for name in (*_OF_FEED, *acted) if name in table.columns]
    table = table.with_columns(pl.col(*_COUNTS).fill_null(0))
    table = table.sort("run", _in_natural_order("agent_id"), "agent_id")
    table = table.with_columns(pl.when(pl.col("run").is_in(feeds)).then(pl.col(of_feed)))

    columns = [*facts, "state", *_COUNTS, *acted]
    if table.height and not feeds:
        columns = ["chart", *(name for name in columns if name not in of_feed)]

    return _with_attributes(table, [*_AGENT, *columns])


def fields_in(columns: Sequence[str]) -> list[str]:
    """Return the columns of a table of agents that are their own fields, as agents joined."""
    begin, end = columns.index("agent_id"), columns.index("state")
    return [name for name in columns[begin + 1 : end] if name not in _DESCRIBED]


def fields_of(described: pl.DataFrame, measured: pl.DataFrame) -> list[tuple[str, Any, Any]]:
    """Return the fields of one agent: the value of each when it joined, and as it was measured.

    Args:
        described: Its row of `agents`.
        measured: Its rows of `agent_measures`, of one round.
    """
    joined = described.select(described.columns[1 : described.columns.index("state")])
    values = {name: [value, None] for row in joined.to_dicts() for name, value in row.items()}
    for name, value in measured.select("measure", "value").iter_rows():
        values.setdefault(name, [None, None])[1] = value

    return [
        (name, then, now) for name, (then, now) in values.items() if (then, now) != (None, None)
    ]


def _in_natural_order(name: str) -> pl.Expr:
    """Return a sort key for names in which all numbers have the same number of digits."""
    filled = pl.col(name).str.replace_all("([0-9]+)", "0" * _DIGITS + "$1")
    return filled.str.replace_all(f"0+([0-9]{{{_DIGITS}}})", "$1")


def _read(logs: RunLogs, facts: Sequence[str]) -> tuple[pl.DataFrame, ...]:
    """Return the agents' descriptions when they joined, their last states, and their counts."""
    joins, counts = merge_by_first(_AGENT), merge_by_sum(_AGENT)
    last = merge_by_last(_AGENT)
    kinds = [AGENT_JOINED, TRANSITION, DECISION, POST_WEIGHED]

    for frame in logs.blocks(*kinds, columns=[*_READ, *facts]):
        known = frame.drop_nulls("agent_id")
        joined = known.filter(event=AGENT_JOINED)
        joins.add(joined.select(*_AGENT, "chart", *facts, "attributes"))
        last.add(_last_states(known))
        counts.add(_counted(known))

    return joins.table(), last.table(), counts.table()


def _with_attributes(table: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Select columns, with the agents' own attributes before the state."""
    objects = [read_object(text) for text in table["attributes"]]
    own = as_columns(objects, otherwise="attributes")
    own = own.rename({name: f"attribute_{name}" for name in own.columns if name in columns})
    place = columns.index("state")

    return table.with_columns(own).select(*columns[:place], *own.columns, *columns[place:])


def _last_states(frame: pl.DataFrame) -> pl.DataFrame:
    is_joining = pl.col("event") == AGENT_JOINED
    changes = frame.filter(pl.col("event").is_in([AGENT_JOINED, TRANSITION]))
    state = pl.when(is_joining).then("state").otherwise("to_state")
    return (
        changes.select(*_AGENT, state=state)
        .drop_nulls()
        .unique(_AGENT, keep="last", maintain_order=True)
    )


def _counted(frame: pl.DataFrame) -> pl.DataFrame:
    event = pl.col("event")
    conditions = (
        # The log of an application's own loop may have transitions from a state to itself.
        event == TRANSITION,
        event == POST_WEIGHED,
        event == DECISION,
        (event == DECISION) & (pl.col("source") == "fallback"),
    )
    return frame.group_by(_AGENT).agg(
        condition.sum().cast(pl.Int64).alias(name)
        for name, condition in zip(_COUNTS, conditions, strict=True)
    )
