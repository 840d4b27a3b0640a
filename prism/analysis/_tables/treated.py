"""Treated agents and posts in experiments, and the outcome."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT, merge_by_sum
from prism.telemetry import events

_SUBJECT = ("agent_id", "post_id")
_ASSIGNED = ("run", "round", "experiment", "arm", *_SUBJECT)
_POST = ["run", "post_id"]
_COUNTED = ("likes", "dislikes", "replies", "reshares", "weighed")
_VOTES = ("likes_given", "dislikes_given")

_NORMAL_95 = 1.959963984540054
"""Half the width of the central 95 % of a normal distribution, in standard deviations."""


def arms(logs: RunLogs, *, by_round: bool = False) -> pl.DataFrame:
    """Compare what happened to the posts in the arms of experiments.

    Intervals are 95 % intervals of the normal approximation (mean +- 1.96 standard errors) over
    posts. To compare runs, use runs as units.

    Args:
        logs: The logs, from `read_log`.
        by_round: Whether to return a row for each round in which posts were assigned.

    Returns:
        One row for each arm: ``experiment``, ``arm``, ``round`` with ``by_round``, ``posts``,
        ``score`` (mean) with ``score_low`` and ``score_high``, ``likes`` (mean, by agents) with
        ``likes_low`` and ``likes_high``, ``dislikes``, ``replies`` and ``reshares`` (means), and
        ``like_chance``: likes per time that a post was weighed. With ``run`` first if there
        are several.
    """
    keys = ["run", "experiment", "arm", *(["round"] if by_round else [])]
    means = [column for name in ("score", "likes") for column in _mean_with_interval(name)]
    table = (
        _posts(logs)
        .group_by(keys, maintain_order=True)
        .agg(
            COUNT.alias("posts"),
            *means,
            pl.col("dislikes", "replies", "reshares").mean(),
            like_chance=pl.col("likes").sum() / pl.col("weighed").sum(),
        )
        .with_columns(pl.col("like_chance").fill_nan(None))
    )

    return logs.labelled(table.sort(keys))


def with_arms(logs: RunLogs, table: pl.DataFrame, key: str = "agent_id") -> pl.DataFrame:
    """Add the arm of assigned agents or posts after their id; ``a+b`` for several.

    Args:
        logs: The logs.
        table: A table by number of run, returned as it is if nothing of its kind was assigned.
        key: The column of the id: ``agent_id`` for agents, otherwise posts.
    """
    subject = "agent_id" if key == "agent_id" else "post_id"
    found = _assignments(logs).drop_nulls(subject).unique(["run", subject, "experiment"])
    if found.is_empty():
        return table

    ordered = found.sort("run", subject, "round", "experiment")
    arms = ordered.group_by("run", subject).agg(pl.col("arm").str.join("+")).rename({subject: key})
    joined = table.join(arms, on=["run", key], how="left", maintain_order="left")
    place = joined.columns.index(key) + 1
    others = [name for name in joined.columns if name != "arm"]

    return joined.select(*others[:place], "arm", *others[place:])


def _assignments(logs: RunLogs) -> pl.DataFrame:
    blocks = logs.blocks(events.TREATMENT_ASSIGNED, columns=_ASSIGNED[1:])
    return pl.concat([frame.select(_ASSIGNED) for frame in blocks])


def _posts(logs: RunLogs) -> pl.DataFrame:
    assigned = _assignments(logs).drop_nulls("post_id").drop("agent_id")
    published: list[pl.DataFrame] = []
    counts = merge_by_sum(_POST)
    kinds = (
        events.POST_PUBLISHED,
        events.POST_LIKED,
        events.POST_DISLIKED,
        events.POST_WEIGHED,
        events.POST_VOTED,
    )
    names = ("agent_id", "post_id", "parent_id", "kind", "likes", "dislikes")

    for frame in logs.blocks(*kinds, columns=names):
        published.append(
            frame.filter(event=events.POST_PUBLISHED).select(*_POST, "agent_id", "kind")
        )
        counts.add(_counted(frame))

    table = assigned.join(pl.concat(published), on=_POST, how="left")
    table = table.join(counts.table(), on=_POST, how="left", maintain_order="left")
    table = table.with_columns(pl.col(*_COUNTED, *_VOTES).fill_null(0))
    given = pl.col("likes_given") - pl.col("dislikes_given")
    score = pl.col("likes") - pl.col("dislikes") + given
    columns = ("run", "round", "experiment", "arm", "post_id", "agent_id", "kind", *_COUNTED)

    return table.select(*columns, score=score)


def _counted(frame: pl.DataFrame) -> pl.DataFrame:
    """Count what happened to each post in a block; an answer counts for its parent."""
    event, kind = pl.col("event"), pl.col("kind")
    is_answer = (event == events.POST_PUBLISHED) & pl.col("parent_id").is_not_null()
    subject = pl.when(is_answer).then("parent_id").otherwise("post_id")
    voted = event == events.POST_VOTED
    counted = frame.with_columns(
        post_id=subject,
        likes_given=pl.when(voted).then("likes").otherwise(0),
        dislikes_given=pl.when(voted).then("dislikes").otherwise(0),
    )

    return counted.group_by(_POST).agg(
        (event == events.POST_LIKED).sum().cast(pl.Int64).alias("likes"),
        (event == events.POST_DISLIKED).sum().cast(pl.Int64).alias("dislikes"),
        (is_answer & (kind == "reply")).sum().cast(pl.Int64).alias("replies"),
        (is_answer & (kind == "reshare")).sum().cast(pl.Int64).alias("reshares"),
        (event == events.POST_WEIGHED).sum().cast(pl.Int64).alias("weighed"),
        pl.col(*_VOTES).sum().cast(pl.Int64),
    )


def _mean_with_interval(name: str) -> list[pl.Expr]:
    mean, error = pl.col(name).mean(), pl.col(name).std() / pl.len().sqrt()
    return [
        mean.alias(name),
        (mean - _NORMAL_95 * error).alias(f"{name}_low"),
        (mean + _NORMAL_95 * error).alias(f"{name}_high"),
    ]
