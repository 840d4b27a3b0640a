"""Every agent of a run, with what it is and what it did."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger, merge_by_first, merge_by_sum
from prism.analysis._tables.engagement import activity_by_number
from prism.telemetry.events import AGENT_JOINED, DECISION, POST_WEIGHED, TRANSITION

_AGENT = ["run", "agent_id"]
_FACTS = ("display_name", "archetype", "interests", "following")
_COUNTS = ("transitions", "weighed", "decisions", "fallbacks")
_READ = ("agent_id", *_FACTS, "state", "from_state", "to_state", "source")


def agents(logs: RunLogs) -> pl.DataFrame:
    """Describe every agent: what it is, and how much it did.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each agent of the log, by name: ``agent_id``; what it was when it joined, null
        in a log that does not say: ``display_name``, ``archetype``, ``interests`` and ``following``
        (a number); ``state`` (its last); ``transitions``, ``weighed`` (posts), ``decisions`` and
        ``fallbacks`` among them; and the counts of `activity`. With ``run`` first if there are
        several.
    """
    facts, counts = merge_by_first(_AGENT), merge_by_sum(_AGENT)
    last = TableMerger(lambda tables: tables.unique(_AGENT, keep="last", maintain_order=True))
    kinds = [AGENT_JOINED, TRANSITION, DECISION, POST_WEIGHED]

    for frame in logs.blocks(*kinds, columns=_READ):
        known = frame.drop_nulls("agent_id")
        facts.add(known.filter(event=AGENT_JOINED).select(*_AGENT, *_FACTS))
        last.add(_last_states(known))
        counts.add(_counted(known))

    table = activity_by_number(logs)
    acted = [name for name in table.columns if name not in _AGENT]
    for part in (facts.table(), last.table(), counts.table()):
        table = table.join(part, on=_AGENT, how="left")

    table = table.with_columns(pl.col(*_COUNTS).fill_null(0)).sort(_AGENT)

    return logs.labelled(table.select(*_AGENT, *_FACTS, "state", *_COUNTS, *acted))


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
