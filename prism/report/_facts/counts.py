"""Tables that a report needs beside those of `prism.analysis`, made in the same way: one pass over the logs each."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger, merge_by_first, merge_by_sum
from prism.analysis._tables.decisions import WAS_ASKED
from prism.analysis._tables.engagement import activity
from prism.telemetry.events import AGENT_JOINED, DECISION, POST_PUBLISHED, TRANSITION

BINS_A_DECADE = 10
"""Steps from a latency to one ten times as long."""

_LEAST_LATENCY = 1e-4
_AGENT = ["run", "agent_id"]
_POST = ("post_id", "parent_id", "root_id", "kind", "agent_id", "text")


def visit_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the visits of every length, as `prism.analysis.dwell_times` takes them.

    Args:
        logs: What `read_log` gave.

    Returns:
        ``state``, ``ticks`` and ``visits``, in that order, with ``run`` first if there are several.
    """
    merger = merge_by_sum(["run", "state", "ticks"])
    for frame in logs.blocks(TRANSITION, columns=("from_state", "to_state", "ticks_in_state")):
        ended = frame.drop_nulls(["from_state", "to_state", "ticks_in_state"])
        visits = ended.group_by("run", state="from_state", ticks="ticks_in_state")
        merger.add(visits.agg(visits=pl.len().cast(pl.Int64)))

    return logs.labelled(merger.table().sort("run", "state", "ticks"))


def latency_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the decisions that a model was asked for by latency, in steps that grow with it.

    Args:
        logs: What `read_log` gave.

    Returns:
        ``source``, ``step`` (latencies from 10^(step / `BINS_A_DECADE`) seconds to the next; what
        took less than 0.1 ms counts as that) and ``decisions``, with ``run`` first if there are
        several. Empty if no model was asked.
    """
    merger = merge_by_sum(["run", "source", "step"])
    step = (
        (pl.col("latency").clip(lower_bound=_LEAST_LATENCY).log10() * BINS_A_DECADE + 1e-9)
        .floor()
        .cast(pl.Int64)
    )
    for frame in logs.blocks(DECISION, columns=("source", "latency", "attempts")):
        timed = frame.filter(WAS_ASKED).drop_nulls("source").group_by("run", "source", step=step)
        merger.add(timed.agg(decisions=pl.len().cast(pl.Int64)))

    return logs.labelled(merger.table().sort("run", "source", "step"))


def agent_table(logs: RunLogs) -> pl.DataFrame:
    """Put together who each agent is, where it ended, and what it did.

    Args:
        logs: What `read_log` gave.

    Returns:
        One row for each agent: ``agent_id``, ``name``, ``archetype``, ``state`` (its last),
        ``moves``, ``decisions``, and what `prism.analysis.activity` counts; with ``run`` first if
        there are several.
    """
    joined, counts, last = merge_by_first(_AGENT), merge_by_sum(_AGENT), TableMerger(_last)
    is_move, is_decision = pl.col("event") == TRANSITION, pl.col("event") == DECISION
    columns = ("agent_id", "display_name", "archetype", "state", "to_state")
    for frame in logs.blocks(AGENT_JOINED, TRANSITION, DECISION, columns=columns):
        came = frame.filter(pl.col("event") == AGENT_JOINED)
        joined.add(came.select(*_AGENT, "archetype", name="display_name", joined_in="state"))
        sums = {
            "moves": is_move.sum().cast(pl.Int64),
            "decisions": is_decision.sum().cast(pl.Int64),
        }
        counts.add(frame.group_by(_AGENT).agg(**sums))
        last.add(_last(frame.filter(is_move).select(*_AGENT, "to_state")))

    table = activity(logs)
    for other in (joined.table(), counts.table(), last.table()):
        labelled = logs.labelled(other)
        key = [name for name in _AGENT if name in table.columns]
        table = table.join(labelled, on=key, how="left", maintain_order="left")

    known = table.with_columns(
        pl.col("moves", "decisions").fill_null(0), state=pl.coalesce("to_state", "joined_in")
    )
    first = [
        name
        for name in (*_AGENT, "name", "archetype", "state", "moves", "decisions")
        if name in known.columns
    ]

    return known.drop("to_state", "joined_in").select(*first, pl.exclude(first))


def posts_below(logs: RunLogs, roots: Collection[str]) -> pl.DataFrame:
    """Return the posts of some cascades.

    Args:
        logs: What `read_log` gave.
        roots: Ids of their roots.

    Returns:
        ``post_id``, ``parent_id``, ``root_id``, ``kind``, ``agent_id`` and ``text``, in the order
        of the logs, each post once, with ``run`` first if there are several.
    """
    wanted = list(roots)
    is_below = pl.coalesce("root_id", "parent_id", "post_id").is_in(wanted) | pl.col(
        "post_id"
    ).is_in(wanted)
    found = [
        frame.filter(is_below).select("run", *_POST)
        for frame in logs.blocks(POST_PUBLISHED, columns=_POST)
    ]
    posts = pl.concat(found).unique(["run", "post_id"], keep="first", maintain_order=True)

    return logs.labelled(posts.drop_nulls("post_id"))


def _last(moves: pl.DataFrame) -> pl.DataFrame:
    """Keep the last move of every agent."""
    return moves.unique(_AGENT, keep="last", maintain_order=True)
