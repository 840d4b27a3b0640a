"""Who follows whom."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import merge_by_first
from prism.telemetry.events import AGENT_JOINED

_PAIR = ["run", "agent_id", "author_id"]


def pairs_of(logs: RunLogs) -> pl.DataFrame:
    """Return who follows whom by number of run, as far as the logs say."""
    joined = merge_by_first(["run", "agent_id"])
    for frame in logs.blocks(AGENT_JOINED, columns=["agent_id", "follows"]):
        joined.add(frame.select("run", "agent_id", "follows").drop_nulls())

    pairs = joined.table().explode("follows").drop_nulls().rename({"follows": "author_id"})
    return pairs.sort(_PAIR)
