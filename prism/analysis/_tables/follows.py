"""Who follows whom, as agents had it when they joined."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import merge_by_first
from prism.analysis._reading.notes import Note
from prism.analysis._tables.engagement import gini
from prism.telemetry.events import AGENT_JOINED, AGENT_REMOVED

_PAIR = ["run", "agent_id", "author_id"]


def follows(logs: RunLogs) -> pl.DataFrame:
    """List who follows whom, from a log that tells it (the feed's parameter ``logs_follows``).

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each follow, by name: ``agent_id`` (who follows), ``author_id`` (whom),
        ``mutual`` (whether that is returned) and ``ended`` (the round in which either was removed,
        which ends the follow; null for one that lasts). With ``run`` first if there are several.
    """
    pairs, removed = _pairs(_told(logs)), _removed(logs)
    for name in _PAIR[1:]:
        gone = removed.rename({"agent_id": name, "round": f"{name}_gone"})
        pairs = pairs.join(gone, on=["run", name], how="left", maintain_order="left")

    ended = pl.min_horizontal(pl.col("^.*_gone$"))

    return logs.labelled(pairs.select(*_PAIR, "mutual", ended=ended))


def follow_networks(logs: RunLogs) -> pl.DataFrame:
    """Describe the follow network with which each run began, from a log that tells it.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each run that tells it: ``agents``, ``follows``, ``mean_follows`` (follows
        divided by agents), ``reciprocity`` (the share of follows that are returned; null without
        any; Newman, Forrest and Balthrop 2002), ``most_followers``, and ``gini`` of the numbers of
        followers. With ``run`` first if there are several.
    """
    joined = _told(logs)
    pairs = _pairs(joined)
    followers = (
        joined.select("run", author_id="agent_id")
        .join(pairs.group_by("run", "author_id").agg(n=pl.len()), on=_PAIR[::2], how="left")
        .with_columns(pl.col("n").fill_null(0))
    )
    rows = []
    for (run,), counted in followers.group_by("run", maintain_order=True):
        own = pairs.filter(run=run)
        rows.append(
            {
                "run": run,
                "agents": counted.height,
                "follows": own.height,
                "mean_follows": own.height / counted.height,
                "reciprocity": own["mutual"].mean(),
                "most_followers": counted["n"].max(),
                "gini": gini(counted["n"]),
            }
        )

    schema = {
        "run": joined.schema["run"],
        **dict.fromkeys(("agents", "follows"), pl.Int64()),
        **dict.fromkeys(("mean_follows", "reciprocity"), pl.Float64()),
        "most_followers": pl.Int64(),
        "gini": pl.Float64(),
    }

    return logs.labelled(pl.DataFrame(rows, schema=schema))


def pairs_of(logs: RunLogs) -> pl.DataFrame:
    """Return the table of `follows` by number of run, without a remark where a log has none."""
    return _pairs(_joined(logs))


def _told(logs: RunLogs) -> pl.DataFrame:
    """Return the agents with whom they follow, and remark which runs do not tell."""
    table = _joined(logs)
    told = set(table["run"])
    for number, run in enumerate(logs.runs):
        if number not in told:
            text = "does not tell who follows whom: run it with the parameter logs_follows"
            logs.remark(Note("no_follows", str(run.path), None, text))

    return table


def _joined(logs: RunLogs) -> pl.DataFrame:
    """Return all agents of the logs that tell whom they follow."""
    joined = merge_by_first(["run", "agent_id"])
    for frame in logs.blocks(AGENT_JOINED, columns=["agent_id", "follows"]):
        joined.add(frame.select("run", "agent_id", "follows").drop_nulls())

    return joined.table().sort("run", "agent_id")


def _removed(logs: RunLogs) -> pl.DataFrame:
    """Return the agents that have been removed, with the round of that."""
    removed = merge_by_first(["run", "agent_id"])
    for frame in logs.blocks(AGENT_REMOVED, columns=["agent_id", "round"]):
        removed.add(frame.select("run", "agent_id", "round"))

    return removed.table()


def _pairs(joined: pl.DataFrame) -> pl.DataFrame:
    pairs = joined.explode("follows").drop_nulls().rename({"follows": "author_id"})
    returned = pairs.select("run", agent_id="author_id", author_id="agent_id", mutual=True)
    return (
        pairs.join(returned, on=_PAIR, how="left")
        .with_columns(pl.col("mutual").fill_null(False))
        .sort(_PAIR)
    )
