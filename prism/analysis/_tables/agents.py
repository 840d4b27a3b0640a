"""Every agent of a run, with what it is and what it did."""

from __future__ import annotations

from typing import Any

import orjson
import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger, merge_by_first, merge_by_sum
from prism.analysis._reading.scanning import as_columns
from prism.analysis._tables.engagement import activity_by_number, runs_with_feed
from prism.telemetry.events import AGENT_JOINED, DECISION, POST_WEIGHED, TRANSITION

_AGENT = ["run", "agent_id"]
_FACTS = ("display_name", "archetype", "interests", "following")
_COUNTS = ("transitions", "weighed", "decisions", "fallbacks")
_OF_FEED = ("archetype", "interests", "following", "weighed")
_READ = (
    *("agent_id", "chart", "attributes", *_FACTS),
    *("state", "from_state", "to_state", "source"),
)


def agents(logs: RunLogs) -> pl.DataFrame:
    """Describe every agent: what it is, and how much it did.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each agent of the log, by name: ``agent_id``; what it was when it joined, null
        in a log that does not say: ``display_name``, ``archetype``, ``interests``, ``following``
        (a number), and a column for each of its attributes or fields, if it has any (one that is
        called as another column becomes ``attribute_`` and its name); ``state`` (its last);
        ``transitions``, ``weighed`` (posts), ``decisions`` and ``fallbacks`` among them; and the
        counts of `activity`. With ``run`` first if there are several. In worlds without posts,
        ``chart`` comes in place of what only feeds have.
    """
    facts, counts = merge_by_first(_AGENT), merge_by_sum(_AGENT)
    last = TableMerger(lambda tables: tables.unique(_AGENT, keep="last", maintain_order=True))
    kinds = [AGENT_JOINED, TRANSITION, DECISION, POST_WEIGHED]

    for frame in logs.blocks(*kinds, columns=_READ):
        known = frame.drop_nulls("agent_id")
        joined = known.filter(event=AGENT_JOINED)
        facts.add(joined.select(*_AGENT, "chart", *_FACTS, "attributes"))
        last.add(_last_states(known))
        counts.add(_counted(known))

    table = activity_by_number(logs)
    acted = [name for name in table.columns if name not in _AGENT]
    has_feed = pl.col("run").is_in(runs_with_feed(logs, table))
    for part in (facts.table(), last.table(), counts.table()):
        table = table.join(part, on=_AGENT, how="left")

    table = table.with_columns(pl.col(*_COUNTS).fill_null(0)).sort(_AGENT)
    of_feed = [*_OF_FEED, *acted]
    table = table.with_columns(pl.when(has_feed).then(pl.col(of_feed)))
    own = as_columns([_read_object(text) for text in table["attributes"]])
    columns = [*_AGENT, *_FACTS, "state", *_COUNTS, *acted]
    if table.select((~has_feed).all()).item() and table.height:
        columns = [name for name in columns if name not in of_feed]
        columns.insert(2, "chart")

    own = own.rename({name: f"attribute_{name}" for name in own.columns if name in columns})
    place = columns.index("state")
    columns[place:place] = own.columns

    return logs.labelled(table.with_columns(own).select(columns))


def _read_object(text: str | None) -> dict[str, Any]:
    value = orjson.loads(text or "{}")
    return value if isinstance(value, dict) else {}


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
        # A log of one's own loop may have transitions from a state to itself.
        event == TRANSITION,
        event == POST_WEIGHED,
        event == DECISION,
        (event == DECISION) & (pl.col("source") == "fallback"),
    )
    return frame.group_by(_AGENT).agg(
        condition.sum().cast(pl.Int64).alias(name)
        for name, condition in zip(_COUNTS, conditions, strict=True)
    )
