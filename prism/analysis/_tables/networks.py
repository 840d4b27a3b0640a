"""Who replied to, reshared, liked and follows whom, as tables and as a graph."""

from __future__ import annotations

from typing import Any

import polars as pl

from prism._lazy import import_extra
from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import merge_by_first
from prism.analysis._reading.runs import Note
from prism.analysis._tables.engagement import gini, remark_no_feed
from prism.analysis._tables.happened import acts_with_authors, count_acts, what_happened
from prism.errors import InputError
from prism.telemetry.events import AGENT_JOINED, AGENT_REMOVED

KINDS = ("replies", "reshares", "likes")
"""The ways in which an agent can react to another's post."""

_PAIR = ["run", "agent_id", "author_id"]
_FACTS = ("display_name", "archetype")


def interactions(logs: RunLogs) -> pl.DataFrame:
    """Count how often each agent replied to, reshared and liked posts of each other agent.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each pair with at least one: ``agent_id`` (who acted), ``author_id`` (whose post
        it was about, which may be the agent's own; null if the log lacks that post), ``replies``,
        ``reshares``, ``likes`` and ``total``; the largest total first, then by name. With ``run``
        first if there are several.
    """
    pairs = _pairs(logs)
    remark_no_feed(logs, pairs["run"])

    return logs.labelled(pairs)


def interaction_graph(logs: RunLogs) -> Any:
    """Return the interactions of one run as a directed graph of networkx.

    Needs the extra ``science``.

    Args:
        logs: The log of one run, from `read_log`.

    Returns:
        A ``networkx.DiGraph``. Its nodes are all agents of the log by id, with ``display_name`` and
        ``archetype`` where known. An edge leads from the agent that acted to the author of the
        post, with ``replies``, ``reshares``, ``likes``, and their sum as ``weight``. Interactions
        with posts whose author is unknown are left out.

    Raises:
        InputError: If there are several runs, which would be mixed.
        MissingExtraError: If networkx is not installed.
    """
    networkx = import_extra("networkx", "analysis", extra="science")
    if len(logs.runs) > 1:
        raise InputError(f"a graph shows one run, but there are {len(logs.runs)}: name one of them")

    graph = networkx.DiGraph()
    for agent in _agents(logs).iter_rows(named=True):
        known = {name: agent[name] for name in _FACTS if agent[name] is not None}
        graph.add_node(agent["agent_id"], **known)

    pairs = _pairs(logs).drop_nulls("author_id").sort(_PAIR)
    for pair in pairs.iter_rows(named=True):
        counts = {name: pair[name] for name in KINDS}
        graph.add_edge(pair["agent_id"], pair["author_id"], **counts, weight=pair["total"])

    return graph


def _pairs(logs: RunLogs) -> pl.DataFrame:
    done = acts_with_authors(what_happened(logs, "posts", "likes"))
    about = done.filter(pl.col("what").is_in(KINDS)).drop_nulls(["agent_id", "about"])
    counts = count_acts(about, _PAIR, KINDS).with_columns(total=pl.sum_horizontal(KINDS))

    return counts.sort(-pl.col("total"), *_PAIR).sort("run")


def _agents(logs: RunLogs) -> pl.DataFrame:
    """Return every agent of one run by id, with its description when it joined."""
    agents, joined = merge_by_first(["agent_id"]), merge_by_first(["agent_id"])
    for frame in logs.blocks(columns=["agent_id", "author_id", *_FACTS]):
        for name in ("agent_id", "author_id"):
            agents.add(frame.select(agent_id=name).drop_nulls().unique())
        joined.add(
            frame.filter(event=AGENT_JOINED).select("agent_id", *_FACTS).drop_nulls("agent_id")
        )

    return agents.table().join(joined.table(), on="agent_id", how="left").sort("agent_id")


def follows(logs: RunLogs) -> pl.DataFrame:
    """List who follows whom, from a log that contains it (the feed's parameter ``logs_follows``).

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each follow, by name: ``agent_id`` (who follows), ``author_id`` (whom),
        ``mutual`` (whether the other follows back) and ``ended`` (the round in which either agent
        was removed, which ends the follow; null if it lasts). If there are several runs, ``run`` is
        the first column.
    """
    pairs, removed = _follow_pairs(_told(logs)), _removed(logs)
    for name in _PAIR[1:]:
        gone = removed.rename({"agent_id": name, "round": f"{name}_gone"})
        pairs = pairs.join(gone, on=["run", name], how="left", maintain_order="left")

    ended = pl.min_horizontal(pl.col("^.*_gone$"))

    return logs.labelled(pairs.select(*_PAIR, "mutual", ended=ended))


def follow_networks(logs: RunLogs) -> pl.DataFrame:
    """Describe the initial follow network of each run, from a log that contains it.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each run whose log contains it: ``agents``, ``follows``, ``mean_follows``
        (follows divided by agents), ``reciprocity`` (the share of follows that are returned; null
        without any; Newman, Forrest and Balthrop 2002), ``most_followers``, and ``gini`` of the
        numbers of followers. If there are several runs, ``run`` is the first column.
    """
    joined = _told(logs)
    pairs = _follow_pairs(joined)
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
    """Return the table of `follows` by number of run, without a note on logs that lack follows."""
    return _follow_pairs(_joined(logs))


def _told(logs: RunLogs) -> pl.DataFrame:
    """Return the agents and whom they follow, and note the runs whose logs lack this."""
    table = _joined(logs)
    told = set(table["run"])
    for number, run in enumerate(logs.runs):
        if number not in told:
            text = "does not say who follows whom: run it with the parameter logs_follows"
            logs.remark(Note("no_follows", str(run.path), None, text))

    return table


def _joined(logs: RunLogs) -> pl.DataFrame:
    """Return all agents whose logs say whom they follow."""
    joined = merge_by_first(["run", "agent_id"])
    for frame in logs.blocks(AGENT_JOINED, columns=["agent_id", "follows"]):
        joined.add(frame.select("run", "agent_id", "follows").drop_nulls())

    return joined.table().sort("run", "agent_id")


def _removed(logs: RunLogs) -> pl.DataFrame:
    """Return the removed agents, with the round of the removal."""
    removed = merge_by_first(["run", "agent_id"])
    for frame in logs.blocks(AGENT_REMOVED, columns=["agent_id", "round"]):
        removed.add(frame.select("run", "agent_id", "round"))

    return removed.table()


def _follow_pairs(joined: pl.DataFrame) -> pl.DataFrame:
    pairs = joined.explode("follows").drop_nulls().rename({"follows": "author_id"})
    returned = pairs.select("run", agent_id="author_id", author_id="agent_id", mutual=True)
    return (
        pairs.join(returned, on=_PAIR, how="left")
        .with_columns(pl.col("mutual").fill_null(False))
        .sort(_PAIR)
    )
