"""Who takes part, how much, and how unequally."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT
from prism.analysis._reading.runs import Note, Run
from prism.analysis._tables.happened import (
    IN_ALL,
    Happened,
    acts,
    acts_with_authors,
    and_in_all,
    count_acts,
    what_happened,
)

_GIVEN = ("posts", "replies", "reshares", "likes")
_RECEIVED = ("replies_received", "reshares_received", "likes_received")
_AGENT = ["run", "agent_id"]


def runs_with_feed(logs: RunLogs, activity: pl.DataFrame) -> list[int]:
    """Return the numbers of the runs of the feed, and of worlds in which something was posted.

    Args:
        logs: The logs.
        activity: What the agents did, by numbers of runs.
    """
    given = pl.sum_horizontal(*_GIVEN, *_RECEIVED)
    active = set(activity.filter(given > 0)["run"])

    return [n for n, run in enumerate(logs.runs) if may_have_feed(run) or n in active]


def may_have_feed(run: Run) -> bool:
    """Return whether a run is of the feed, as far as its first line says: not of a loop's own."""
    return run.world is None and run.chart is not None


def remark_no_feed(logs: RunLogs, found: pl.Series) -> None:
    """Note the worlds without posts, for which the table has no rows.

    Args:
        logs: The logs.
        found: Numbers of the runs that have rows.
    """
    known = set(found)
    for number, run in enumerate(logs.runs):
        if not may_have_feed(run) and number not in known:
            of_world = "" if run.world is None else f"is a run of the world {run.world}, which "
            text = f"{of_world}has no posts: this table is about posts"
            logs.remark(Note("no_feed", str(run.path), None, text))


def activity_by_number(logs: RunLogs) -> pl.DataFrame:
    """Count the posts, replies, reshares and likes that every agent gave and received.

    Posts from before the first round of a simulation are not counted, but reactions to them are.
    """
    happened = what_happened(logs, "posts", "likes")
    done = acts_with_authors(happened)
    received = done.select("run", pl.col("what") + "_received", agent_id="author_id")
    table = happened.agents
    for part, names in ((done, _GIVEN), (received, _RECEIVED)):
        table = table.join(count_acts(part, _AGENT, names), on=_AGENT, how="left")

    return table.with_columns(pl.col(*_GIVEN, *_RECEIVED).fill_null(0)).sort(_AGENT)


_WRITTEN = ("posts", "replies", "reshares")
_OF_AGENT = [*IN_ALL, "agent_id"]


def participation(logs: RunLogs) -> pl.DataFrame:
    """Measure which agents write, and how unequally, by round and overall.

    Writing is publishing a post, a reply or a reshare. An agent creates if it publishes a post that
    is neither reply nor reshare, writes if it only replies or reshares, and is silent otherwise,
    even if it likes (after Nielsen 2006, Participation Inequality: creators, contributors,
    lurkers). What was posted before the first round does not count.

    The shares of all writing are those of the 1 % of the agents who wrote most, of the next 9 %,
    and of the other 90 % (van Mierlo 2014, Journal of Medical Internet Research 16(2), found .747,
    .240 and .013 in health networks). All agents count, including silent ones. An agent on a
    boundary counts in part: the shares are interpolated points of the Lorenz curve.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        A row for each round, and a last one for all rounds, whose ``round`` is null: ``agents``;
        ``silent``, ``writing`` and ``creating`` (shares of the agents, which sum to 1); ``liking``
        (share of the agents that like at least once); ``written`` (number of posts, replies and
        reshares); ``top_1``, ``next_9``, ``other_90`` and ``top_10`` (shares of all writing, 0 to
        1; null if there is none); and ``gini`` of what agents wrote: half the mean absolute
        difference, divided by the mean (Gini 1912; Sen 1973, On Economic Inequality). With ``run``
        first if there are several. Worlds without posts have no rows.
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
            agents=COUNT,
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
    """Repeat rows of runs for each of their rounds and for all rounds."""
    rounds = pl.concat(
        [happened.rounds.select(IN_ALL), agents.select("run").unique()], how="diagonal"
    )
    return agents.join(rounds, on="run")


def _counts_by_agent(happened: Happened) -> pl.DataFrame:
    """Count the acts of every agent in every round and overall, including zeros."""
    with_posts = happened.agents.join(happened.tables["posts"], on="run", how="semi")
    names = (*_WRITTEN, "likes")
    counts = count_acts(and_in_all(acts(happened)), _OF_AGENT, names)

    every = with_every_round(with_posts, happened)
    joined = every.join(counts, on=_OF_AGENT, how="left", nulls_equal=True)

    return joined.with_columns(pl.col(names).fill_null(0))


def _top_share(share: float) -> pl.Expr:
    """Return the share of all writing by the agents who wrote most."""
    highest = pl.col("written").sort(descending=True)
    part = (share * pl.len() - pl.int_range(pl.len())).clip(0, 1)
    total = pl.col("written").sum()

    return pl.when(total > 0).then((highest * part).sum() / total)


def _gini() -> pl.Expr:
    """Return sum((2 i - n - 1) x_i) / (n sum(x)) of what n agents wrote, sorted, i = 1 ... n."""
    size, total = COUNT, pl.col("written").sum()
    ranks = 2 * pl.int_range(1, size + 1) - size - 1

    return pl.when(total > 0).then((ranks * pl.col("written").sort()).sum() / (size * total))
