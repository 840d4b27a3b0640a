"""How far posts spread: the trees of replies and reshares that grow from them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from prism.analysis._reading.logs import STAMP, RunLogs, parse_time
from prism.analysis._reading.merging import merge_by_first
from prism.analysis._reading.runs import Run
from prism.analysis._tables.engagement import remark_no_feed
from prism.analysis._tables.treated import with_arms
from prism.telemetry.events import POST_PUBLISHED

_COLUMNS = (*STAMP, "agent_id", "post_id", "kind", "parent_id", "root_id", "text")
_POSTS = ["run", "post_id"]
_UNKNOWN, _ON_THE_WAY = -1, -2

_MEASURES = (
    "root_id",
    "author_id",
    "size",
    "depth",
    "breadth",
    "virality",
    "agents",
    "replies",
    "reshares",
    "started",
    "lifetime_seconds",
    "lifetime_ticks",
    "missing",
    "text",
)


def cascades(logs: RunLogs) -> pl.DataFrame:
    """Measure every cascade: a post and all that replies to it or reshares it, directly or not.

    The structural virality is the mean distance, in steps, between all pairs of posts in the tree,
    each step being from a post to the one it replies to or reshares (Goel, Anderson, Hofman and
    Watts 2016, Management Science 62(1)): near 2 for a broadcast, where all react to the root, and
    the larger, the deeper the tree branches. It is computed from the sizes of the subtrees, in
    linear time: a step that has s of n posts below it lies between s (n - s) pairs.

    A post that others reply to but that is not in the log, because its line is corrupt, is put back
    without author and time, directly below the root. Depth and virality are then lower bounds.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each cascade, the largest first, of equal ones the deeper, then the earlier:
        ``root_id``; ``author_id``; ``size`` (posts, the root included); ``depth`` (most steps from
        the root); ``breadth`` (most posts at any one depth); ``virality`` (null for a single post);
        ``agents`` (distinct authors); ``replies``; ``reshares``; ``started`` (UTC);
        ``lifetime_seconds`` and ``lifetime_ticks`` from the root to the last post (ticks if the run
        says how many a round has; a post from before the first round counts from its beginning);
        ``missing`` (posts put back); and the root's ``text``. Where posts were assigned to the arms
        of an experiment, the root's ``arm`` comes behind its id. With ``run`` first if there are
        several.
    """
    merger = merge_by_first(_POSTS)
    for frame in logs.blocks(POST_PUBLISHED, columns=_COLUMNS):
        # Only the texts of roots are shown: the others would fill the memory.
        text = pl.when(pl.col("parent_id").is_null()).then("text").alias("text")
        posts = frame.select("run", *_COLUMNS).drop_nulls("post_id")
        merger.add(posts.with_columns(text))

    root_id = pl.coalesce("root_id", "parent_id", "post_id").alias("root_id")
    posts = merger.table().with_columns(root_id)
    posts = _with_missing(_dated(posts, logs.runs))

    remark_no_feed(logs, posts["run"])

    return logs.labelled(with_arms(logs, _measured(_with_shape(posts)), "root_id"))


def trees(posts: pl.DataFrame) -> pl.DataFrame:
    """Return the shape of every tree of posts, without texts and times.

    Args:
        posts: ``run``, ``round``, ``agent_id``, ``post_id``, ``kind``, ``parent_id``, ``root_id``.

    Returns:
        The columns of `cascades`, by number of run, and the ``round`` of the root.
    """
    nothing = {"text": pl.String(), "time": pl.Datetime("us", "UTC"), "clock": pl.Int64()}
    root_id = pl.coalesce("root_id", "parent_id", "post_id")
    known = posts.with_columns(
        *(pl.lit(None, kind).alias(name) for name, kind in nothing.items()), root_id=root_id
    )
    rounds = posts.select("run", "round", root_id="post_id")
    measured = _measured(_with_shape(_with_missing(known)))

    return measured.join(rounds, on=["run", "root_id"], how="left", maintain_order="left")


def reshare_trees(posts: pl.DataFrame) -> pl.DataFrame:
    """Return the trees of reshares alone, which grow from every post and reply; see `trees`."""
    is_reshare = pl.col("kind") == "reshare"
    # a tree ends where somebody replies: what is reshared there is the reply
    alone = posts.with_columns(
        parent_id=pl.when(is_reshare).then("parent_id"), root_id=pl.lit(None, pl.String)
    )

    return trees(alone)


def _dated(posts: pl.DataFrame, runs: Sequence[Run]) -> pl.DataFrame:
    """Add the time, and the ticks since the run's first round began."""
    per_round = {number: run.ticks_per_round for number, run in enumerate(runs)}
    ticks = pl.col("run").replace_strict(per_round, return_dtype=pl.Int64, default=None)
    clock = (pl.col("round") - 1).clip(lower_bound=0) * ticks + pl.col("tick")
    return posts.with_columns(time=parse_time("timestamp"), clock=clock).drop(STAMP)


def _with_missing(posts: pl.DataFrame) -> pl.DataFrame:
    """Put the posts that only others name in front, and number all of them."""
    roots = posts.select("run", post_id="root_id", parent_id=pl.lit(None, pl.String))
    is_answer = pl.col("parent_id").is_not_null() & (pl.col("parent_id") != pl.col("root_id"))
    parents = posts.filter(is_answer).select("run", post_id="parent_id", parent_id="root_id")

    # A root comes first: it stays one, though another post may name it as its parent.
    named = pl.concat([roots, parents]).drop_nulls("post_id")
    named = named.unique(_POSTS, keep="first", maintain_order=True)
    missing = named.join(posts, on=_POSTS, how="anti", maintain_order="left")

    marked = [missing.with_columns(is_missing=True), posts.with_columns(is_missing=False)]

    return pl.concat(marked, how="diagonal").with_row_index("place")


def _with_shape(posts: pl.DataFrame) -> pl.DataFrame:
    """Add the depth of each post, the place of its root, and the size of the tree below it."""
    place = pl.col("place").cast(pl.Int64).alias("parent")
    places = posts.select("run", place, parent_id="post_id")
    joined = posts.join(places, on=["run", "parent_id"], how="left", maintain_order="left")
    depths, roots, sizes = tree_shape(joined["parent"].to_list())

    return posts.with_columns(
        depth=pl.Series(depths, dtype=pl.Int64),
        root=pl.Series(roots, dtype=pl.UInt32),
        below=pl.Series(sizes, dtype=pl.Int64),
    )


def tree_shape(parents: list[int | None]) -> tuple[list[int], list[int], list[int]]:
    """Work out the shape of trees, in time linear in the number of their nodes.

    Args:
        parents: The place of each node's parent, None for a root. If parents form a circle, the
            node at which it is found becomes a root.

    Returns:
        For each node its depth (0 for a root), the place of its root, and the size of its subtree,
        itself included.
    """
    depths, roots = [_UNKNOWN] * len(parents), list(range(len(parents)))
    cut = list(parents)
    for node in range(len(cut)):
        path = _path_to_known(node, cut, depths)
        above = cut[path[-1]] if path else None
        for below in reversed(path):
            depths[below] = 0 if above is None else depths[above] + 1
            roots[below] = below if above is None else roots[above]
            above = below

    sizes = [1] * len(cut)
    for node in sorted(range(len(cut)), key=depths.__getitem__, reverse=True):
        parent = cut[node]
        if parent is not None:
            sizes[parent] += sizes[node]

    return depths, roots, sizes


def _path_to_known(node: int, parents: list[int | None], depths: list[int]) -> list[int]:
    """Walk up to a node whose depth is known, or to a root; cut a circle open."""
    path: list[int] = []
    at: int | None = node
    while at is not None and depths[at] == _UNKNOWN:
        depths[at] = _ON_THE_WAY
        path.append(at)
        at = parents[at]

    if at is not None and depths[at] == _ON_THE_WAY:
        parents[path[-1]] = None

    return path


def _measured(posts: pl.DataFrame) -> pl.DataFrame:
    is_root, kind = pl.col("depth") == 0, pl.col("kind")
    size = pl.len().cast(pl.Int64)
    root = {
        name: pl.col(name).filter(is_root).first()
        for name in ("place", "run", "post_id", "agent_id", "time", "clock", "text")
    }

    below = pl.col("below")
    pairs = (below * (below.max() - below)).cast(pl.Float64).sum()

    table = posts.group_by("root").agg(
        root["run"],
        root["place"],
        root["text"],
        root_id=root["post_id"],
        author_id=root["agent_id"],
        size=size,
        depth=pl.col("depth").max(),
        virality=pl.when(size > 1).then(pairs / (size * (size - 1) / 2)),
        agents=pl.col("agent_id").drop_nulls().n_unique().cast(pl.Int64),
        replies=(kind == "reply").sum().cast(pl.Int64),
        reshares=(kind == "reshare").sum().cast(pl.Int64),
        started=root["time"],
        lifetime_seconds=(pl.col("time").max() - root["time"]).dt.total_microseconds() / 1e6,
        lifetime_ticks=pl.col("clock").max() - root["clock"],
        missing=pl.col("is_missing").sum().cast(pl.Int64),
    )

    by_depth = posts.group_by("root", "depth").agg(size)
    breadths = by_depth.group_by("root").agg(breadth=pl.col("len").max())
    order = ["run", pl.col("size").neg(), pl.col("depth").neg(), "place"]

    return table.join(breadths, on="root").sort(order).select("run", *_MEASURES)
