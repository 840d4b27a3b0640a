"""When agents act: the times between their acts, and their burstiness and memory."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT
from prism.analysis._tables.engagement import remark_no_feed
from prism.analysis._tables.happened import IN_ALL, Happened, acts, and_in_all, what_happened
from prism.analysis._tables.treated import with_arms

ALL = "all"
_KINDS = ("posts", "replies", "reshares", "likes", ALL)
_OF_AGENT = ["run", "what", "agent_id"]


def rhythm(logs: RunLogs) -> pl.DataFrame:
    """Describe the times between the acts of agents, by round and overall.

    An act is a post, a reply, a reshare or a like. The time between two acts of one agent is
    measured in ticks, continuously from the first round on, and belongs to the round of the later
    act. The times of all agents are pooled, so differences between agents in how often they act add
    to the burstiness. `agent_rhythms` describes each agent separately.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        A row for each round and ``what`` was done (``posts``, ``replies``, ``reshares``, ``likes``
        and ``all``), and rows for all rounds, whose ``round`` is null: ``acts``; ``agents`` with at
        least one; ``intervals`` (times between two acts); their ``mean``, ``median``, ``p90`` and
        ``max`` in ticks; ``burstiness`` and ``memory`` as in `agent_rhythms`, of all times
        together; and ``agent_burstiness``, the mean over the agents with at least two intervals in
        the whole run (only in the rows for all rounds). If there are several runs, ``run`` is the
        first column. Nothing of worlds without posts.
    """
    happened = what_happened(logs, "posts", "likes")
    remark_no_feed(logs, happened.tables["posts"]["run"])

    return logs.labelled(rhythm_of(happened))


def agent_rhythms(logs: RunLogs) -> pl.DataFrame:
    """Describe the times between the acts of every agent.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        A row for each agent and each kind of act that it did at least once, sorted by kind and
        name: ``agent_id``, ``what`` (as in `rhythm`), ``acts``, ``intervals``, ``mean`` and ``sd``
        in ticks, ``burstiness`` and ``memory``. The burstiness is that of Goh and Barabási (2008,
        EPL 81, 48002), (r - 1) / (r + 1) with r = sd / mean, in the form that Kim and Jo (2016,
        Physical Review E 94, 032311) give for n intervals, which hardly depends on n: -1 for a
        regular rhythm, about 0 for a random one, 1 for a single burst; null below two intervals.
        The memory is the correlation of an interval with the next (Goh and Barabási 2008); null if
        undefined. If agents were assigned to the arms of an experiment, ``arm`` follows the id. If
        there are several runs, ``run`` is the first column.
    """
    happened = what_happened(logs, "posts", "likes")
    remark_no_feed(logs, happened.tables["posts"]["run"])

    table = _of_agents(_intervals(happened)).sort("run", "what", "agent_id")

    return logs.labelled(with_arms(logs, table))


def rhythm_of(happened: Happened) -> pl.DataFrame:
    """Return the table of `rhythm`, with numbers of runs, from what happened."""
    intervals = _intervals(happened)
    keys, ticks = [*IN_ALL, "what"], pl.col("ticks")
    in_all = and_in_all(intervals)
    table = in_all.group_by(keys).agg(
        acts=COUNT,
        agents=pl.col("agent_id").n_unique().cast(pl.Int64),
        intervals=ticks.count().cast(pl.Int64),
        mean=ticks.mean(),
        median=ticks.median(),
        p90=ticks.quantile(0.9, "higher"),
        max=ticks.max(),
        **_burstiness_and_memory(),
    )

    # sorted, since a sum of floats depends on their order
    agents = _of_agents(intervals).sort(_OF_AGENT).group_by("run", "what")
    each = agents.agg(agent_burstiness=pl.col("burstiness").mean())
    table = table.join(each, on=["run", "what"], how="left")
    order = pl.col("what").replace_strict({name: place for place, name in enumerate(_KINDS)})
    only_in_all = pl.when(pl.col("round").is_null()).then("agent_burstiness")

    return table.with_columns(agent_burstiness=only_in_all).sort(*IN_ALL, order, nulls_last=True)


def _of_agents(intervals: pl.DataFrame) -> pl.DataFrame:
    ticks = pl.col("ticks")
    return intervals.group_by(_OF_AGENT).agg(
        acts=COUNT,
        intervals=ticks.count().cast(pl.Int64),
        mean=ticks.mean(),
        sd=ticks.std(ddof=0),
        **_burstiness_and_memory(),
    )


def _intervals(happened: Happened) -> pl.DataFrame:
    """Return every act with the ticks since the agent's last act of its kind, in linear time."""
    per_round = happened.rounds.group_by("run").agg(pl.col("per_round").first())
    clock = (pl.col("round") - 1) * pl.col("per_round") + pl.col("tick")
    done = acts(happened).join(per_round, on="run", how="left", maintain_order="left")
    done = done.with_columns(clock=clock).sort("run", "clock", maintain_order=True)

    # every act in the log counts for its own kind and for all kinds together
    both = pl.concat([done, done.with_columns(what=pl.lit(ALL))])
    ticks, before = pl.col("clock").diff(), pl.col("ticks").shift(1)
    timed = both.with_columns(ticks=ticks.over(_OF_AGENT)).with_columns(
        before=before.over(_OF_AGENT)
    )

    return timed.select("run", "round", "what", "agent_id", "ticks", "before")


def _burstiness_and_memory() -> Mapping[str, pl.Expr]:
    ticks, number = pl.col("ticks"), pl.col("ticks").count()
    ratio = ticks.std(ddof=0) / ticks.mean()
    low, high = (number.cast(pl.Int64) - 1).sqrt(), (number + 1).sqrt()
    burstiness = (high * ratio - low) / ((high - 2) * ratio + low)
    memory = pl.corr("before", "ticks")

    return {
        "burstiness": pl.when(number > 1, ticks.mean() > 0).then(burstiness),
        "memory": pl.when(memory.is_finite()).then(memory),
    }
