"""A run as one row of numbers, for plans, comparisons and presets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import COUNT
from prism.analysis._reading.scanning import as_columns, read_object
from prism.analysis._tables.cascades import reshare_trees, trees
from prism.analysis._tables.engagement import participation_of, with_every_round
from prism.analysis._tables.happened import (
    IN_ALL,
    Happened,
    Part,
    acts,
    and_in_all,
    what_happened,
)
from prism.statechart.social import SEES_POST
from prism.statechart.transitions import TIMEOUT

if TYPE_CHECKING:
    from polars.dataframe.group_by import GroupBy

_OF_PARTICIPATION = (
    *("silent", "writing", "creating", "liking", "written"),
    *("top_1", "next_9", "other_90", "top_10", "gini"),
)
_ACTS = ("posts", "replies", "reshares", "likes")
_COUNTS = ("transitions", "timeouts", "decisions", "fallbacks", *_ACTS, "views")

MEASURES = (
    *("agents", "agent_ticks", "transitions", "timeouts", "decisions", "fallbacks"),
    *(*_ACTS, "views", "browsing", *_OF_PARTICIPATION),
    *("cascades", "singletons", "beyond_one_degree", "cascade_size", "cascade_depth"),
    *("largest_cascade", "deepest_cascade", "virality", "median_place"),
    *("reshare_singletons", "reshare_beyond_one_degree", "deepest_reshare"),
)
"""Columns of every run, without the measures of its world."""

PARTS: tuple[Part, ...] = ("posts", "likes", "transitions", "decisions", "measures")
"""The parts of the log that measures need."""

_ROOT = pl.coalesce("root_id", "parent_id", "post_id")
"""The root of the cascade that a post belongs to."""


def run_measures(
    logs: RunLogs, *, from_round: int = 1, to_round: int | None = None, by_round: bool = False
) -> pl.DataFrame:
    """Measure each run as a whole, as one row.

    Args:
        logs: The logs, from `read_log`.
        from_round: First round to include, such as the first after a burn-in. Cascades count if
            they begin in an included round; by default, those from before the first round count as
            well.
        to_round: Last round to include, for comparing runs of different lengths; None for all.
        by_round: Whether to add a row for each round, before that of all rounds.

    Returns:
        A row for each run, with ``run`` first if there are several, and ``round`` (null for all
        rounds) with ``by_round``. The measures are ``agents``; ``agent_ticks`` (steps that they
        took); ``transitions``; ``timeouts``; ``decisions`` and ``fallbacks``; ``posts``,
        ``replies``, ``reshares``, ``likes`` and ``views`` (posts that agents opened); ``browsing``,
        the share of views among all acts: views, posts, replies, reshares and likes (Benevenuto et
        al. 2009: .92); from `participation`, ``silent``, ``writing``, ``creating``, ``liking``,
        ``written``, ``top_1``, ``next_9``, ``other_90``, ``top_10`` and ``gini``; ``cascades``,
        ``singletons`` (the share of cascades with a single post), ``beyond_one_degree`` (the share
        of cascades deeper than one step), ``cascade_size`` and ``cascade_depth`` (means),
        ``largest_cascade``, ``deepest_cascade``, ``virality`` and ``median_place`` (means over
        cascades of two posts or more; the latter is the time of the median answer, as a share of
        the time from the root to the last answer); for trees that consist only of reshares of a
        post or reply, ``reshare_singletons``, ``reshare_beyond_one_degree`` and ``deepest_reshare``
        (Goel, Watts and Goldstein 2012). Then follow, by name, the measures of the world in the
        round, or in the last one, prefixed with ``measure_`` if the name is taken. Shares and means
        of nothing are null, such as all those of posts in worlds without posts.

    Raises:
        FieldValueError: If ``from_round`` is not 1 or more, or ``to_round`` less.
    """
    table = measured(logs, from_round=from_round, to_round=to_round)
    if not by_round:
        table = table.filter(pl.col("round").is_null()).drop("round")

    return logs.labelled(table)


def measured(logs: RunLogs, *, from_round: int = 1, to_round: int | None = None) -> pl.DataFrame:
    """Return the table by round and overall, with numbers of runs; see `run_measures`."""
    happened = what_happened(logs, *PARTS, from_round=from_round, to_round=to_round)
    return measured_of(happened, len(logs.runs))


def measured_of(happened: Happened, runs: int) -> pl.DataFrame:
    """Return the table of `measured` from the `PARTS` of what happened.

    Args:
        happened: What happened.
        runs: Number of the runs, including those in which nothing happened.
    """
    table = _keys(happened, runs)
    for part in (_activity, _participation, _cascades, _pace, _reshares):
        table = table.join(part(happened), on=IN_ALL, how="left", nulls_equal=True)

    # a round without a single event must still have its zeros
    counted = table.with_columns(pl.col(_COUNTS).fill_null(0))
    table = _of_everybody(_browsing(counted), happened).select(*IN_ALL, *MEASURES)
    table = table.sort(IN_ALL, nulls_last=True)

    return _with_own_measures(table, happened)


def _keys(happened: Happened, number: int) -> pl.DataFrame:
    runs = pl.DataFrame({"run": pl.Series(range(number), dtype=pl.UInt32)})
    agents = happened.agents.group_by("run").agg(agents=COUNT)
    ticks = and_in_all(happened.rounds).group_by(IN_ALL).agg(pl.col("ticks").sum())
    keys = with_every_round(runs, happened).join(agents, on="run", how="left")
    # agents who sleep or have left take no steps, and only the log knows about them
    taken = and_in_all(happened.counting("measures")).group_by(IN_ALL)
    timed = keys.join(ticks, on=IN_ALL, how="left", nulls_equal=True)
    timed = timed.join(
        taken.agg(steps=pl.col("agent_ticks").sum()), on=IN_ALL, how="left", nulls_equal=True
    )
    most = pl.col("agents") * pl.col("ticks")

    return timed.select(*IN_ALL, "agents", agent_ticks=pl.coalesce("steps", most))


def _activity(happened: Happened) -> pl.DataFrame:
    count, trigger, what = pl.col("count"), pl.col("trigger"), pl.col("what")
    moves = (
        and_in_all(happened.counting("transitions"))
        .group_by(IN_ALL)
        .agg(
            transitions=count.sum(),
            timeouts=count.filter(trigger == TIMEOUT).sum(),
            views=count.filter(trigger == SEES_POST).sum(),
        )
    )
    decided = (
        and_in_all(happened.counting("decisions"))
        .group_by(IN_ALL)
        .agg(decisions=count.sum(), fallbacks=count.filter(pl.col("source") == "fallback").sum())
    )
    done = (
        and_in_all(acts(happened))
        .group_by(IN_ALL)
        .agg((what == name).sum().cast(pl.Int64).alias(name) for name in _ACTS)
    )
    table = moves
    for other in (decided, done):
        table = table.join(other, on=IN_ALL, how="full", nulls_equal=True, coalesce=True)

    return table.select(*IN_ALL, *_COUNTS)


def _participation(happened: Happened) -> pl.DataFrame:
    return participation_of(happened).select(*IN_ALL, *_OF_PARTICIPATION)


def _cascades(happened: Happened) -> pl.DataFrame:
    size, depth = pl.col("size"), pl.col("depth")
    return _grown(trees, happened).agg(
        cascades=COUNT,
        singletons=(size == 1).mean(),
        beyond_one_degree=(depth > 1).mean(),
        cascade_size=size.mean(),
        cascade_depth=depth.mean(),
        largest_cascade=size.max(),
        deepest_cascade=depth.max(),
        virality=pl.col("virality").mean(),
    )


def _pace(happened: Happened) -> pl.DataFrame:
    """Return the time of a cascade's median answer, relative to that of its last answer."""
    lengths = happened.rounds.select("run", "per_round").unique("run", maintain_order=True)
    posts = happened.tables["posts"].join(lengths, on="run", how="left", maintain_order="left")
    # a post from before the first round counts from that round's beginning, as in `cascades`
    clock = (pl.col("round") - 1).clip(lower_bound=0) * pl.col("per_round") + pl.col("tick")
    dated = posts.select("run", "round", "parent_id", "post_id", root_id=_ROOT, clock=clock)
    begun = dated.filter(pl.col("post_id") == pl.col("root_id")).unique(["run", "root_id"])
    begun = begun.select("run", "round", "root_id", begun="clock")
    answers = dated.filter(pl.col("parent_id").is_not_null()).drop("round")
    after = pl.col("clock") - pl.col("begun")
    places = (
        answers.join(begun, on=["run", "root_id"])
        .group_by("run", "round", "root_id")
        .agg(place=after.median() / after.max())
        .filter(pl.col("place").is_not_nan())
        # a mean of floats depends on their order
        .sort("run", "root_id")
    )

    return (
        and_in_all(_that_count(places, happened))
        .group_by(IN_ALL)
        .agg(median_place=pl.col("place").mean())
    )


def _reshares(happened: Happened) -> pl.DataFrame:
    return _grown(reshare_trees, happened).agg(
        reshare_singletons=(pl.col("size") == 1).mean(),
        reshare_beyond_one_degree=(pl.col("depth") > 1).mean(),
        deepest_reshare=pl.col("depth").max(),
    )


def _grown(shape: Callable[[pl.DataFrame], pl.DataFrame], happened: Happened) -> GroupBy:
    """Return the trees that begin in the included rounds, by round and overall."""
    return and_in_all(_that_count(shape(happened.tables["posts"]), happened)).group_by(IN_ALL)


def _that_count(roots: pl.DataFrame, happened: Happened) -> pl.DataFrame:
    """Keep trees that began in the included rounds; by default also those from before the first."""
    is_late = pl.col("round") >= happened.from_round
    return roots.filter(is_late) if happened.from_round > 1 else roots


def _of_everybody(table: pl.DataFrame, happened: Happened) -> pl.DataFrame:
    """Put what everybody did in place of what a sample did, as far as rounds were counted."""
    names = [name for name in happened.totals.columns if name not in IN_ALL]
    summed = pl.exclude("agents", *IN_ALL).sum()
    totals = and_in_all(happened.totals).group_by(IN_ALL).agg(pl.col("agents").first(), summed)
    both = table.join(totals, on=IN_ALL, how="left", nulls_equal=True, suffix=" of all")

    return both.with_columns(pl.coalesce(f"{name} of all", name).alias(name) for name in names)


def _browsing(table: pl.DataFrame) -> pl.DataFrame:
    done = pl.sum_horizontal("views", *_ACTS)
    share = pl.when(done > 0).then(pl.col("views") / done)
    return table.with_columns(browsing=share)


def _with_own_measures(table: pl.DataFrame, happened: Happened) -> pl.DataFrame:
    """Add the measures of the worlds in every round, and overall those of the last one."""
    ended = happened.counting("measures").drop_nulls("measures").sort(IN_ALL)
    rows = [read_object(text) for text in ended["measures"]]
    values = as_columns(rows, otherwise="measures")
    names = {name: f"measure_{name}" if name in table.columns else name for name in values.columns}
    own = pl.concat([ended.select(IN_ALL), values.rename(names)], how="horizontal")
    last = own.group_by("run", maintain_order=True).last()
    both = pl.concat([own, last.with_columns(round=pl.lit(None, pl.Int64))], how="diagonal")

    return table.join(both, on=IN_ALL, how="left", nulls_equal=True)
