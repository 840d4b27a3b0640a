"""The cycles of a thinking agent one by one: sizes, thoughts, pagings; and its actions."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger
from prism.telemetry.events import (
    COGNITION_ACTION,
    COGNITION_CYCLE,
    COGNITION_PAGED,
    COGNITION_REFUSED,
)

_SIZES = ("prompt_tokens", "memory_tokens", "soft_limit", "hard_limit")
_OF_CYCLE = ("cycle", "state", "outcome", "thought", *_SIZES)
_OF_PAGING = ("cycle", "why", "by", "tokens_before", "tokens_after", "moved_out", "moved_in")
_OUTCOMES = ("done", "missing", "refused")

OF_THINKING = (*_OF_CYCLE, *_OF_PAGING, "type")
"""Keys of events that these tables read."""


def cycle_sizes(logs: RunLogs) -> pl.DataFrame:
    """Return every cycle of a thinking agent, with the sizes of its prompt and its memory.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``agent_id``, ``cycle``, ``state``, ``outcome``, ``thought``, ``prompt_tokens``,
        ``memory_tokens``, ``soft_limit`` and ``hard_limit``, in the order of the log, with ``run``
        first if there are several.
    """
    keys = ("agent_id", *_OF_CYCLE)
    frames = logs.blocks(COGNITION_CYCLE, columns=keys)
    table = pl.concat([frame.select("run", *keys) for frame in frames])
    return logs.labelled(table)


def paging_sizes(logs: RunLogs) -> pl.DataFrame:
    """Return every paging, with how much moved.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``agent_id``, ``cycle``, ``why``, ``by``, ``moved_out`` and ``moved_in`` (tags),
        ``tokens_before`` and ``tokens_after``, with ``run`` first if there are several.
    """
    keys = ("agent_id", *_OF_PAGING)
    frames = logs.blocks(COGNITION_PAGED, columns=keys)
    moved = pl.col("moved_out", "moved_in").list.join(", ")
    table = pl.concat([frame.select("run", *keys).with_columns(moved) for frame in frames])
    return logs.labelled(table)


def action_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the actions of thinking agents by their results.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``action``, ``done``, ``missing`` and ``refused``, the most frequent first, with ``run``
        first if there are several.
    """

    def added_up(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.group_by("run", "action").agg(pl.col(_OUTCOMES).sum())

    merger = TableMerger(added_up)
    is_refused = pl.col("event") == COGNITION_REFUSED
    outcome = pl.when(is_refused).then(pl.lit("refused")).otherwise(pl.col("outcome"))
    action = pl.when(pl.col("type").fill_null("") == "").then(pl.lit("none")).otherwise("type")
    columns = ("type", "outcome")
    for frame in logs.blocks(COGNITION_ACTION, COGNITION_REFUSED, columns=columns):
        named = frame.select("run", action=action, outcome=outcome)
        counted = {name: (pl.col("outcome") == name).cast(pl.Int64) for name in _OUTCOMES}
        merger.add(added_up(named.select("run", "action", **counted)))

    total = sum((pl.col(name) for name in _OUTCOMES), pl.lit(0))
    return logs.labelled(merger.table().sort("run", -total, "action"))
