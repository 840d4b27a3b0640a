"""Who takes part, how much, how unequally, and how much is written by how few."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT, merge_by_first, merge_by_sum
from prism.analysis._reading.runs import Note
from prism.analysis._tables.happened import IN_ALL, KINDS, Happened, acts, and_in_all, what_happened
from prism.analysis._tables.treated import with_arms
from prism.telemetry.events import POST_LIKED, POST_PUBLISHED

_GIVEN = ("posts", "replies", "reshares", "likes")
_RECEIVED = ("replies_received", "reshares_received", "likes_received")
ACT_COLUMNS = ("agent_id", "round", "tick", "post_id", "kind", "parent_id", "author_id")
_AGENT = ["run", "agent_id"]
_POST = ["run", "post_id"]

_SCHEMA = {
    "run": pl.UInt32(),
    "measure": pl.String(),
    "what": pl.String(),
    "agents": pl.Int64(),
    "active": pl.Float64(),
    "total": pl.Int64(),
    "mean": pl.Float64(),
    "gini": pl.Float64(),
    "top_1_percent": pl.Float64(),
    "top_10_percent": pl.Float64(),
}


def activity(logs: RunLogs) -> pl.DataFrame:
    """Count the posts, replies, reshares and likes that every agent gave and received.

    Posts from before the first round of a simulation are not counted, but reactions to them are.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each agent of the log, also those that did nothing, by name: ``agent_id``,
        ``posts``, ``replies``, ``reshares``, ``likes``, ``replies_received``, ``reshares_received``
        and ``likes_received``. Where agents were assigned to the arms of an experiment, ``arm``
        comes behind the id. With ``run`` first if there are several. No agents of worlds without
        posts.
    """
    return logs.labelled(with_arms(logs, _in_feeds(logs)))


def engagement(logs: RunLogs) -> pl.DataFrame:
    """Measure how unequally posts, replies, reshares and likes are distributed over the agents.

    The rule of thumb for such sites is 90-9-1: of a hundred members ninety give nothing, nine a
    little, one most (Nielsen 2006, Participation Inequality). All agents count, as in `activity`.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each measure: ``measure`` (``given`` or ``received``), ``what`` (``posts``,
        ``replies``, ``reshares``, ``likes`` or ``all``), ``agents``, ``active`` (proportion of the
        agents with at least one, 0 to 1), ``total``, ``mean`` (per agent), ``gini`` (see `gini`),
        ``top_1_percent`` and ``top_10_percent`` (proportion of the total of the 1 % and 10 % of the
        agents with the most; see `top_share`). With ``run`` first if there are several. Nothing of
        worlds without posts.
    """
    rows = [
        {"run": run, "measure": measure, "what": what, **_describe(counts)}
        for (run,), agents in _in_feeds(logs).group_by("run", maintain_order=True)
        for measure, names in (("given", _GIVEN), ("received", _RECEIVED))
        for what, counts in _measures(agents, names)
    ]
    return logs.labelled(pl.DataFrame(rows, schema=_SCHEMA))


def gini(counts: pl.Series) -> float | None:
    """Return the Gini coefficient: half the mean difference of two numbers, divided by the mean.

    Of n sorted numbers x it is sum((2 i - n - 1) x_i) / (n sum(x)), i = 1 ... n (Gini 1912; Sen
    1973, On Economic Inequality).

    Args:
        counts: One number for each agent, 0 or more, of any numeric type.

    Returns:
        0 if all are equal, (n - 1) / n if one has everything; None if nobody has anything.
    """
    numbers, size = counts.cast(pl.Float64), counts.len()
    total = float(numbers.sum())
    if not total:
        return None

    ranks = 2 * pl.int_range(1, size + 1, eager=True) - size - 1

    return float((ranks * numbers.sort()).sum()) / (size * total)


def top_share(counts: pl.Series, share: float) -> float | None:
    """Return the share of the total that belongs to the agents with the most.

    It is a point of the Lorenz curve, interpolated: if the share of the agents is no whole number
    of them, the last one counts in part.

    Args:
        counts: One number for each agent, 0 or more, of any numeric type.
        share: Share of the agents, 0 to 1.

    Returns:
        0 to 1; None if nobody has anything.
    """
    highest = counts.cast(pl.Float64).sort(descending=True)
    total = float(highest.sum())
    if not total:
        return None

    wanted = share * counts.len()
    whole = int(wanted)
    part = (wanted - whole) * highest[whole] if whole < counts.len() else 0.0

    return (float(highest.head(whole).sum()) + part) / total


def _measures(agents: pl.DataFrame, names: tuple[str, ...]) -> Iterator[tuple[str, pl.Series]]:
    for name in names:
        yield name.removesuffix("_received"), agents[name]

    yield "all", agents.select(pl.sum_horizontal(names)).to_series()


def _describe(counts: pl.Series) -> dict[str, float | None]:
    return {
        "agents": counts.len(),
        "active": (counts > 0).mean(),  # type: ignore[dict-item]
        "total": int(counts.sum()),
        "mean": counts.mean(),  # type: ignore[dict-item]
        "gini": gini(counts),
        "top_1_percent": top_share(counts, 0.01),
        "top_10_percent": top_share(counts, 0.1),
    }


def _in_feeds(logs: RunLogs) -> pl.DataFrame:
    table = activity_by_number(logs)
    table = table.filter(pl.col("run").is_in(runs_with_feed(logs, table)))
    remark_no_feed(logs, table["run"])

    return table


def runs_with_feed(logs: RunLogs, activity: pl.DataFrame) -> list[int]:
    """Return the numbers of the runs that are no worlds, or in which something was posted.

    Args:
        logs: The logs.
        activity: What the agents did, by numbers of runs.
    """
    given = pl.sum_horizontal(*_GIVEN, *_RECEIVED)
    active = set(activity.filter(given > 0)["run"])

    return [n for n, run in enumerate(logs.runs) if run.world is None or n in active]


def remark_no_feed(logs: RunLogs, found: pl.Series) -> None:
    """Note the worlds of which a table about posts has nothing.

    Args:
        logs: The logs.
        found: Numbers of the runs of which it has something.
    """
    known = set(found)
    for number, run in enumerate(logs.runs):
        if run.world is not None and number not in known:
            text = (
                f"is a run of the world {run.world}, which has no posts: this table is about posts"
            )
            logs.remark(Note("no_feed", str(run.path), None, text))


def activity_by_number(logs: RunLogs) -> pl.DataFrame:
    agents, authors = merge_by_first(_AGENT), merge_by_first(_POST)
    given = merge_by_sum([*_AGENT, "what", "is_early"])
    received = merge_by_sum([*_POST, "what"])

    for frame in logs.blocks(columns=ACT_COLUMNS):
        agents.add(frame.select(_AGENT).drop_nulls().unique())
        done = acts_in(frame)
        authors.add(done.select(*_POST, "author_id").drop_nulls().unique(_POST))
        given.add(_counted(done, "agent_id", "is_early"))
        received.add(_counted(done.select("run", "what", post_id="about"), "post_id"))

    # Only a simulation has posts from before its first round; in another log the rest is null.
    started = [number for number, run in enumerate(logs.runs) if run.started]
    is_opening = pl.col("is_early") & pl.col("run").is_in(started)
    own = _wide(given.table().filter(~is_opening), _GIVEN)

    # An author may stand in a later block than the reactions to its post.
    reactions = received.table().join(authors.table(), on=_POST)
    reactions = reactions.rename({"author_id": "agent_id"}).with_columns(
        pl.col("what") + "_received"
    )

    table = agents.table().join(own, on=_AGENT, how="left")
    table = table.join(_wide(reactions, _RECEIVED), on=_AGENT, how="left")

    return table.with_columns(pl.col(*_GIVEN, *_RECEIVED).fill_null(0)).sort(_AGENT)


def acts_in(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the acts of agents, the post each is ``about``, and the author of ``post_id``."""
    is_like = pl.col("event") == POST_LIKED
    kind = pl.col("kind").replace_strict(KINDS, default=None)
    is_early = (pl.col("round") == 0) & (pl.col("tick") == 0)

    done = frame.filter(pl.col("event").is_in([POST_PUBLISHED, POST_LIKED]))

    return done.select(
        "run",
        "agent_id",
        "post_id",
        author_id=pl.when(is_like).then("author_id").otherwise("agent_id"),
        what=pl.when(is_like).then(pl.lit("likes")).otherwise(kind),
        about=pl.when(is_like).then("post_id").otherwise("parent_id"),
        is_early=is_early.fill_null(value=False),
    )


def _counted(acts: pl.DataFrame, *keys: str) -> pl.DataFrame:
    keys = ("run", "what", *keys)
    return acts.drop_nulls(keys).group_by(keys).agg(count=COUNT)


def _wide(counts: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """Put the counts of each agent side by side."""
    count = pl.col("count")
    return counts.group_by(_AGENT).agg(
        count.filter(pl.col("what") == name).sum().alias(name) for name in names
    )


_WRITTEN = ("posts", "replies", "reshares")
_OF_AGENT = [*IN_ALL, "agent_id"]


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
    counts = done.group_by(_OF_AGENT).agg(
        (pl.col("what") == name).sum().cast(pl.Int64).alias(name) for name in names
    )

    every = with_every_round(with_posts, happened)
    joined = every.join(counts, on=_OF_AGENT, how="left", nulls_equal=True)

    return joined.with_columns(pl.col(names).fill_null(0))


def _top_share(share: float) -> pl.Expr:
    """Return the share of what was written by the agents who wrote most, as `top_share` does."""
    highest = pl.col("written").sort(descending=True)
    part = (share * pl.len() - pl.int_range(pl.len())).clip(0, 1)
    total = pl.col("written").sum()

    return pl.when(total > 0).then((highest * part).sum() / total)


def _gini() -> pl.Expr:
    size, total = COUNT, pl.col("written").sum()
    ranks = 2 * pl.int_range(1, size + 1) - size - 1

    return pl.when(total > 0).then((ranks * pl.col("written").sort()).sum() / (size * total))
