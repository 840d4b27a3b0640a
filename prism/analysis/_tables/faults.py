"""What went wrong in a run: guards and actions that raised, and answers that were not used."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger, merge_by_first
from prism.telemetry.events import (
    ACTION_FAILED,
    ANSWER_DISCARDED,
    CACHE_FAILED,
    DECISION,
    GUARD_FAILED,
    MODE_UNKNOWN,
)

# The most serious first: a fault in the user's code, then what prism has dealt with.
_FAULTS = {
    GUARD_FAILED: "guard_failed",
    ACTION_FAILED: "action_failed",
    ANSWER_DISCARDED: "answer_discarded",
    CACHE_FAILED: "cache_failed",
    MODE_UNKNOWN: "mode_unknown",
    DECISION: "fallback",
}
READ = (
    *("round", "tick", "chart", "agent_id", "from_state", "to_state", "trigger", "error"),
    *("source", "reason", "state", "chosen", "asked_in", "now_in"),
)
"""Keys of events that the table is made from."""

_KEYS = ["run", "fault", "chart", "from_state", "to_state", "trigger", "error"]


def faults(logs: RunLogs) -> pl.DataFrame:
    """Count what went wrong, alike faults together.

    A trigger that no transition of the chart has is no fault of the run: nothing happens, so no log
    has it. The chart warns of it once, on the standard library's logger ``prism.statechart``.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each kind of fault: ``fault`` (``guard_failed``: its transition was not enabled;
        ``action_failed``: its transition took place nevertheless; ``answer_discarded``: it came
        after the agent had left the state, or its guard did not pass any more; ``cache_failed``;
        ``mode_unknown``; ``fallback``: a decision without a usable answer), ``chart``,
        ``from_state``, ``to_state``, ``trigger``,
        ``error`` (the exception, or the reason), ``count``, ``agents`` (how many it concerned), and
        ``round``, ``tick`` and ``line`` of the first. The most serious kind first, and of each kind
        the most frequent. With ``run`` first if there are several.
    """
    counts, agents = TableMerger(_added_up), merge_by_first([*_KEYS, "agent_id"])
    is_fault = pl.col("event").is_in(list(_FAULTS)) & ~(
        (pl.col("event") == DECISION) & pl.col("source").ne_missing(pl.lit("fallback"))
    )

    for frame in logs.blocks_where(is_fault, columns=READ):
        found = _described(frame)
        counts.add(_added_up(found.drop("agent_id").with_columns(count=pl.lit(1, pl.Int64))))
        agents.add(found.select(*_KEYS, "agent_id").unique())

    concerned = agents.table().group_by(_KEYS).agg(agents=pl.col("agent_id").count())
    table = counts.table().join(concerned, on=_KEYS, how="left", nulls_equal=True)
    seriousness = pl.col("fault").replace_strict(
        {name: place for place, name in enumerate(_FAULTS.values())}, return_dtype=pl.Int8
    )
    table = table.sort("run", seriousness, -pl.col("count"), "line")

    return logs.labelled(
        table.select(*_KEYS, "count", pl.col("agents").cast(pl.Int64), "round", "tick", "line")
    )


def _described(frame: pl.DataFrame) -> pl.DataFrame:
    """Bring the events of all faults to the same columns."""
    is_decision = pl.col("event") == DECISION
    is_discarded = pl.col("event") == ANSWER_DISCARDED
    chosen = pl.when(is_decision | is_discarded).then("chosen").otherwise("to_state")
    before = pl.when(is_decision).then("state").when(is_discarded).then("asked_in")
    why = pl.when(is_decision).then("reason")
    # logs from before there were reasons know of one
    is_barred = is_discarded & pl.col("reason").eq_missing(pl.lit("not_enabled"))
    barred = why.when(is_barred).then(pl.lit("its guard did not pass any more"))
    moved = barred.when(is_discarded).then(pl.format("the agent was in {} by then", "now_in"))

    return frame.select(
        "run",
        "line",
        "round",
        "tick",
        "chart",
        "trigger",
        "agent_id",
        fault=pl.col("event").replace_strict(_FAULTS, return_dtype=pl.String),
        from_state=before.otherwise("from_state"),
        to_state=chosen,
        error=moved.otherwise("error"),
    )


def _added_up(tables: pl.DataFrame) -> pl.DataFrame:
    first = pl.col("line").arg_min()
    return tables.group_by(_KEYS).agg(
        pl.col("round", "tick").get(first), pl.col("line").min(), count=pl.col("count").sum()
    )
