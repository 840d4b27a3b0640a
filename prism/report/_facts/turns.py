"""The effects of workflow steps: refused transitions, calls to models, and actions."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import TableMerger
from prism.telemetry.events import TEXT_WRITTEN, WORKFLOW_ACTION, WORKFLOW_STEP

_REFUSED = ("step", "state", "target", "reason")
_SPENT = ("calls", "requests", "asked_again", "failed", "actions", "succeeded")
_STEP_OF_KEY = r"^\d+:(.*?)(?::again)?$"

OF_TURNS = (*_REFUSED, "outcome", "key", "source", "attempts", "succeeded")
"""Keys of events that these tables read."""


def refusal_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the refused transitions of steps, by reason.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``step``, ``state``, ``target`` (null if a reply matched no answer), ``reason`` and
        ``times``, the most frequent first, with ``run`` first if there are several.
    """
    keys = ["run", *_REFUSED]

    def added_up(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.group_by(keys).agg(pl.col("times").sum(), pl.col("line").min())

    merger = TableMerger(added_up)
    is_refused = (pl.col("outcome") == "done") & pl.col("reason").is_not_null()
    for frame in logs.blocks(WORKFLOW_STEP, columns=(*_REFUSED, "outcome")):
        rows = frame.filter(is_refused).select(*keys, "line", times=pl.lit(1, pl.Int64))
        merger.add(added_up(rows))

    table = merger.table().sort("run", -pl.col("times"), "line")
    return logs.labelled(table.drop("line"))


def call_counts(logs: RunLogs) -> pl.DataFrame:
    """Count the calls of workflow steps to models, and the actions in the replies.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        ``step``, ``calls``, ``requests`` (including retries), ``asked_again`` (calls that were
        repeated because the reply was unclear), ``failed``, ``actions`` and ``succeeded`` (of the
        actions), in the order in which steps first asked, with ``run`` first if there are several.
    """
    keys = ["run", "step"]

    def added_up(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.group_by(keys).agg(pl.col("line").min(), pl.col(_SPENT).sum())

    merger = TableMerger(added_up)
    is_text = pl.col("event") == TEXT_WRITTEN
    is_again = is_text & pl.col("key").str.ends_with(":again").fill_null(False)
    counted = {
        "calls": is_text & ~is_again,
        "asked_again": is_again,
        "failed": is_text & (pl.col("source") == "failed").fill_null(False),
        "actions": ~is_text,
        "succeeded": ~is_text & pl.col("succeeded").fill_null(False),
    }
    step = pl.when(is_text).then(pl.col("key").str.extract(_STEP_OF_KEY)).otherwise("step")
    requests = pl.when(is_text).then(pl.col("attempts").fill_null(0)).otherwise(0)
    columns = ("step", "key", "source", "attempts", "succeeded")
    for frame in logs.blocks(TEXT_WRITTEN, WORKFLOW_ACTION, columns=columns):
        rows = frame.select(
            "run",
            "line",
            step=step,
            requests=requests.cast(pl.Int64),
            **{name: which.cast(pl.Int64) for name, which in counted.items()},
        )
        merger.add(added_up(rows.drop_nulls("step")))

    table = merger.table().sort("run", "line").select("run", "step", *_SPENT)
    return logs.labelled(table)
