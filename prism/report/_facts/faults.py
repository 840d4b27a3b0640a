"""What went wrong in a run, by its own account."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger
from prism.telemetry.events import (
    ACTION_FAILED,
    ANSWER_DISCARDED,
    CACHE_FAILED,
    GUARD_FAILED,
    MODE_UNKNOWN,
)

_FAULTS = {
    GUARD_FAILED: "guard_failed",
    ACTION_FAILED: "action_failed",
    ANSWER_DISCARDED: "answer_discarded",
    CACHE_FAILED: "cache_failed",
    MODE_UNKNOWN: "mode_unknown",
}
_KEYS = ["run", "fault", "chart", "from_state", "to_state", "trigger", "error"]


def faults(logs: RunLogs) -> pl.DataFrame:
    """Count what went wrong, alike faults together.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``fault``, ``chart``, ``from_state``, ``to_state``, ``trigger``, ``error``, ``count``, and
        ``round``, ``tick`` and ``line`` of the first, with ``run`` first if there are several.
    """
    merger = TableMerger(_added_up)
    columns = (*_KEYS[2:], "round", "tick", "asked_in", "chosen")

    for frame in logs.blocks(*_FAULTS, columns=columns):
        found = frame.select(
            "run",
            "line",
            "round",
            "tick",
            "chart",
            "trigger",
            "error",
            fault=pl.col("event").replace_strict(_FAULTS, return_dtype=pl.String),
            from_state=pl.coalesce("asked_in", "from_state"),
            to_state=pl.coalesce("chosen", "to_state"),
            count=pl.lit(1, pl.Int64),
        )
        merger.add(_added_up(found))

    places = {name: place for place, name in enumerate(_FAULTS.values())}
    rank = pl.col("fault").replace_strict(places, return_dtype=pl.Int64)

    return logs.labelled(merger.table().sort("run", rank, -pl.col("count"), "line"))


def _added_up(tables: pl.DataFrame) -> pl.DataFrame:
    first = pl.col("line").arg_min()
    return tables.group_by(_KEYS).agg(
        pl.col("round", "tick").get(first), pl.col("line").min(), pl.col("count").sum()
    )
