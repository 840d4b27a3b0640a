"""How far posts spread: their trees of replies and reshares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from prism.analysis._reading.logs import STAMP, RunLogs, parse_time
from prism.analysis._reading.merging import COUNT, merge_by_first
from prism.analysis._reading.runs import Run
from prism.analysis._tables.engagement import remark_no_feed
from prism.analysis._tables.treated import with_arms
from prism.telemetry.events import POST_LIKED, POST_PUBLISHED, TEXT_WRITTEN

_COLUMNS = (*STAMP, "agent_id", "post_id", "kind", "parent_id", "root_id", "text")
_POSTS = ["run", "post_id"]
_UNKNOWN, _ON_THE_WAY = -1, -2

_MEASURES = (
    *("root_id", "author_id", "size", "depth", "breadth", "virality", "agents", "replies"),
    *("reshares", "started", "lifetime_seconds", "lifetime_ticks", "missing", "text"),
)


def cascades(logs: RunLogs) -> pl.DataFrame:
    """Measure every cascade: a post and everything that replies to or reshares it, directly or not.

    The structural virality is the mean distance, in steps, between all pairs of posts in the tree,
    where each step leads from a post to the one it replies to or reshares (Goel, Anderson, Hofman
    and Watts 2016, Management Science 62(1)). It is near 2 for a broadcast, where all react to the
    root, and grows with the depth of the branching. It is computed from the sizes of the subtrees,
    in
    linear time: a step that has s of n posts below it lies between s (n - s) pairs.

    If the line of a post is corrupt but others reply to it, the post is put back without author and
    time, directly below the root. Depth and virality are then lower bounds.

    Args:
        logs: The logs, from `read_log`.

    Returns:
        One row for each cascade, the largest first, then the deepest, then the earliest:
        ``root_id``; ``author_id``; ``size`` (posts, the root included); ``depth`` (most steps from
        the root); ``breadth`` (most posts at any one depth); ``virality`` (null for a single post);
        ``agents`` (distinct authors); ``replies``; ``reshares``; ``started`` (UTC);
        ``lifetime_seconds`` and ``lifetime_ticks`` from the root to the last post (ticks if the run
        says how many a round has; a post from before the first round counts from that round's
        beginning); ``missing`` (posts put back); and the root's ``text``. If posts were assigned to
        the arms of an experiment, the root's ``arm`` follows its id. If there are several runs,
        ``run`` is the first column.
    """
    merger = merge_by_first(_POSTS)
    for frame in logs.blocks(POST_PUBLISHED, columns=_COLUMNS):
        # Only the texts of roots are shown, since all texts would fill the memory.
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
    # a tree ends at a reply, since resharing it reshares the reply
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
    """Put the posts that only other posts name in front, and number all of them."""
    roots = posts.select("run", post_id="root_id", parent_id=pl.lit(None, pl.String))
    is_answer = pl.col("parent_id").is_not_null() & (pl.col("parent_id") != pl.col("root_id"))
    parents = posts.filter(is_answer).select("run", post_id="parent_id", parent_id="root_id")

    # A root comes first: it stays a root, even if another post names it as its parent.
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
    """Compute the shape of trees, in time linear in the number of their nodes.

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
    size = COUNT
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


MISSING = "missing"
"""Kind of a post that others name but the log lacks."""

_POST = ("post_id", "parent_id", "root_id", "kind", "agent_id", "text", "round", "tick")
OF_TEXTS = ("key", "cut")
"""Keys of written texts that `posts_below` reads."""

_WRITTEN = ["run", "agent_id", "round", "tick", "kind"]


def posts_below(logs: RunLogs, roots: Collection[str]) -> pl.DataFrame:
    """Return the posts of some cascades.

    Args:
        logs: The logs, from `read_log`.
        roots: Ids of their roots.

    Returns:
        ``post_id``, ``parent_id``, ``root_id``, ``kind``, ``agent_id``, ``text``, ``round``,
        ``tick``, ``likes`` and ``cut``, in the order of the logs, each post once, with ``run``
        first if there are several runs.
    """
    wanted, post = list(roots), pl.col("post_id")
    is_below = pl.coalesce("root_id", "parent_id", "post_id").is_in(wanted) | post.is_in(wanted)
    posts, likes, cuts = [], [], []
    for frame in logs.blocks(POST_PUBLISHED, POST_LIKED, TEXT_WRITTEN, columns=(*_POST, *OF_TEXTS)):
        event = pl.col("event")
        posts.append(frame.filter((event == POST_PUBLISHED) & is_below).select("run", *_POST))
        known = pl.concat(posts).select("run", "post_id")
        liked = frame.filter(event == POST_LIKED).select("run", "post_id")
        likes.append(liked.join(known.unique(), on=["run", "post_id"], how="semi"))
        cuts.append(
            frame.filter(event == TEXT_WRITTEN, pl.col("cut"))
            .rename({"kind": "_", "key": "kind"})
            .select(_WRITTEN)
        )

    counted = pl.concat(likes).group_by("run", "post_id").agg(likes=COUNT)
    was_cut = pl.concat(cuts).unique().with_columns(cut=pl.lit(value=True))

    table = (
        pl.concat(posts)
        .unique(["run", "post_id"], keep="first", maintain_order=True)
        .drop_nulls("post_id")
        .join(counted, on=["run", "post_id"], how="left", maintain_order="left")
        .join(was_cut, on=_WRITTEN, how="left", maintain_order="left")
        .with_columns(pl.col("likes").fill_null(0), pl.col("cut").fill_null(value=False))
    )

    return logs.labelled(table)


@dataclass(frozen=True, slots=True)
class TreePost:
    """One post of a cascade.

    Args:
        post_id: Its id.
        parent_id: The post it replies to or reshares; None for the root.
        kind: ``post``, ``reply``, ``reshare`` or ``missing``.
        agent_id: Its author.
        text: Its text.
        round: When it was published; None if that is not known.
        tick: The tick of the round in which it was published.
        likes: How often it was liked.
        was_cut: Whether its text was cut to the maximum length.
    """

    post_id: str
    parent_id: str | None
    kind: str
    agent_id: str
    text: str
    round: int | None = None
    tick: int | None = None
    likes: int = 0
    was_cut: bool = False


def grow(root_id: str, posts: pl.DataFrame) -> tuple[TreePost, ...]:
    """Build the tree of a cascade as `prism.analysis.cascades` does: lost posts go below the root.

    Args:
        root_id: Its root.
        posts: Its posts, and perhaps others, from `posts_below`.

    Returns:
        Its posts, the root first, the others in the order of the log, each with a parent among
        them.
    """
    is_below = pl.coalesce("root_id", "parent_id", "post_id") == root_id
    own = posts.filter(is_below | (pl.col("post_id") == root_id))
    facts = own.select(
        *("post_id", "parent_id"),
        pl.col("kind", "agent_id", "text").fill_null(""),
        *("round", "tick", "likes", "cut"),
    )
    found = {row[0]: TreePost(*row) for row in facts.iter_rows()}

    root = found.pop(root_id, TreePost(root_id, None, MISSING, "", ""))
    named = dict.fromkeys(post.parent_id for post in found.values() if post.parent_id is not None)
    lost = [
        TreePost(name, root_id, MISSING, "", "")
        for name in named
        if name != root_id and name not in found
    ]

    return replace(root, parent_id=None), *_below_root(root_id, [*lost, *found.values()])


def _below_root(root_id: str, posts: list[TreePost]) -> list[TreePost]:
    """Put posts without a parent, and those that form a circle, directly below the root."""
    places = {post.post_id: place for place, post in enumerate(posts, start=1)} | {root_id: 0}
    parents = [None, *(places.get(post.parent_id or root_id) for post in posts)]
    depths, _, _ = tree_shape(parents)

    return [
        replace(post, parent_id=root_id) if parent is None or depth == 0 else post
        for post, parent, depth in zip(posts, parents[1:], depths[1:], strict=True)
    ]


def read_through(tree: tuple[TreePost, ...]) -> Iterator[tuple[int, TreePost]]:
    """Yield the posts of a tree and their depths in reading order, each answer below its post."""
    below: dict[str, list[TreePost]] = defaultdict(list)
    for post in tree[1:]:
        below[post.parent_id or tree[0].post_id].append(post)

    waiting = [(0, tree[0])]
    while waiting:
        depth, post = waiting.pop()
        yield depth, post
        waiting += [(depth + 1, answer) for answer in reversed(below[post.post_id])]


def told_of(post: TreePost) -> str:
    """Return who did what, without the text."""
    if post.kind == MISSING:
        return "a post that is not in the log"

    verb = {"reply": " replies", "reshare": " reshares"}.get(post.kind, "")
    return f"{post.agent_id or 'an unknown author'}{verb}"


def remarks_on(post: TreePost) -> str:
    """Return the remarks after a text: that it was cut, and how often it was liked."""
    likes = "" if not post.likes else f"{post.likes:,} like{'s' if post.likes > 1 else ''}"
    remarks = ", ".join(filter(None, ["cut here" if post.was_cut else "", likes]))
    return f" ({remarks})" if remarks else ""
