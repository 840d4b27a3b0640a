"""Who takes part, and how much of what is written comes from how few."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._tables.engagement import remark_no_feed
from prism.analysis._tables.happened import IN_ALL, Happened, acts, and_in_all, what_happened

_WRITTEN = ("posts", "replies", "reshares")
_AGENT = [*IN_ALL, "agent_id"]


def participation(logs: RunLogs) -> pl.DataFrame:
    """Measure which agents write, and how unequally, by round and in all.

    Writing is publishing a post, a reply or a reshare. An agent creates if it publishes a post that
    is neither reply nor reshare, writes if it only replies or reshares, and is silent otherwise,
    even if it likes (after Nielsen 2006, Participation Inequality: creators, contributors,
    lurkers). What was posted before the first round does not count.

    The shares of all that was written are those of the 1 % of the agents who wrote most, of the
    next 9 %, and of the other 90 % (van Mierlo 2014, Journal of Medical Internet Research 16(2),
    who counts them in health networks as .747, .240 and .013). All agents count, also silent ones;
    an agent on a boundary counts in part, as in `top_share`.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        A row for each round, and a last one for all rounds, whose ``round`` is null: ``agents``;
        ``silent``, ``writing`` and ``creating`` (shares of the agents, which sum to 1); ``liking``
        (share of the agents that like at least once); ``written`` (number of posts, replies and
        reshares); ``top_1``, ``next_9``, ``other_90`` and ``top_10`` (shares of what was written, 0
        to 1; null if nothing was); and ``gini`` of what agents wrote (see `gini`). With ``run``
        first if there are several. Nothing of worlds without posts.
    """
    table = participation_of(what_happened(logs, "posts", "likes"))
    remark_no_feed(logs, table["run"])

    return logs.labelled(table)


def participation_of(happened: Happened) -> pl.DataFrame:
    """Return the table, with numbers of runs, from what happened."""
    counts = _counts_by_agent(happened)
    written = pl.sum_horizontal(_WRITTEN)
    creates = pl.col("posts") > 0
    agents = counts.with_columns(written=written)

    return (
        agents.group_by(IN_ALL)
        .agg(
            agents=pl.len().cast(pl.Int64),
            silent=(pl.col("written") == 0).mean(),
            writing=((pl.col("written") > 0) & ~creates).mean(),
            creating=creates.mean(),
            liking=(pl.col("likes") > 0).mean(),
            top_1=_top_share(0.01),
            top_10=_top_share(0.1),
            gini=_gini(),
            written=pl.col("written").sum(),
        )
        .with_columns(next_9=pl.col("top_10") - pl.col("top_1"), other_90=1 - pl.col("top_10"))
        .select(
            *IN_ALL,
            *("agents", "silent", "writing", "creating", "liking", "written"),
            *("top_1", "next_9", "other_90", "top_10", "gini"),
        )
        .sort(IN_ALL, nulls_last=True)
    )


def with_every_round(agents: pl.DataFrame, happened: Happened) -> pl.DataFrame:
    """Repeat rows of runs for each of their rounds and in all."""
    rounds = pl.concat(
        [happened.rounds.select(IN_ALL), agents.select("run").unique()], how="diagonal"
    )
    return agents.join(rounds, on="run")


def _counts_by_agent(happened: Happened) -> pl.DataFrame:
    """Count what every agent did in every round and in all, which may be nothing."""
    done = and_in_all(acts(happened))
    with_posts = happened.agents.join(happened.tables["posts"], on="run", how="semi")
    names = (*_WRITTEN, "likes")
    counts = done.group_by(_AGENT).agg(
        (pl.col("what") == name).sum().cast(pl.Int64).alias(name) for name in names
    )

    every = with_every_round(with_posts, happened)
    joined = every.join(counts, on=_AGENT, how="left", nulls_equal=True)

    return joined.with_columns(pl.col(names).fill_null(0))


def _top_share(share: float) -> pl.Expr:
    """Return the share of what was written by the agents who wrote most, as `top_share` does."""
    highest = pl.col("written").sort(descending=True)
    part = (share * pl.len() - pl.int_range(pl.len())).clip(0, 1)
    total = pl.col("written").sum()

    return pl.when(total > 0).then((highest * part).sum() / total)


def _gini() -> pl.Expr:
    size, total = pl.len().cast(pl.Int64), pl.col("written").sum()
    ranks = 2 * pl.int_range(1, size + 1) - size - 1

    return pl.when(total > 0).then((ranks * pl.col("written").sort()).sum() / (size * total))
