"""Threads: posts with the replies and reshares below them, in reading order."""

from __future__ import annotations

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._tables.cascades import (
    MISSING,
    TreePost,
    cascades,
    grow,
    read_through,
    remarks_on,
    told_of,
    tree_posts,
)
from prism.errors import InputError
from prism.telemetry.events import POST_PUBLISHED

_SCHEMA: dict[str, pl.DataType] = {
    "run": pl.UInt32(),
    "root_id": pl.String(),
    "depth": pl.Int64(),
    "round": pl.Int64(),
    "tick": pl.Int64(),
    "agent_id": pl.String(),
    "kind": pl.String(),
    "post_id": pl.String(),
    "parent_id": pl.String(),
    "likes": pl.Int64(),
    "cut": pl.Boolean(),
    "text": pl.String(),
    "what": pl.String(),
}


def threads(logs: RunLogs, *, post: str | None = None, most: int = 10) -> pl.DataFrame:
    """List the posts of threads in reading order: each reply below the post it replies to.

    Args:
        logs: The logs, from `read_log`.
        post: Id of a post, for the thread that it belongs to; None for the largest threads.
        most: Number of threads to show for each run.

    Returns:
        One row for each post, thread after thread: ``root_id``; ``depth`` (steps from the root);
        ``round``; ``tick``; ``agent_id``, its author; ``kind`` (``post``, ``reply``, ``reshare``,
        or ``missing`` if other posts name it but the log lacks it); ``post_id``; ``parent_id``;
        ``likes``; ``cut`` (whether its text was cut to the maximum length); ``text``; and ``what``,
        a sentence with all of this. If there are several runs, ``run`` is the first column.

    Raises:
        InputError: If the logs have no such post.
    """
    chosen = _largest(logs, most) if post is None else _of_post(logs, post)
    posts = tree_posts(logs, {root for _, root in chosen})
    rows = [
        (run, root, depth, *_row(each))
        for run, root in chosen
        for depth, each in read_through(grow(root, posts.filter(pl.col("run") == run)))
    ]

    return logs.labelled(pl.DataFrame(rows, _SCHEMA, orient="row"))


def _largest(logs: RunLogs, most: int) -> list[tuple[int, str]]:
    found = cascades(logs)
    numbers = {run.label: number for number, run in enumerate(logs.runs)}
    # there may be no run at all
    alone = [run.label for run in logs.runs] * found.height
    runs = found["run"] if "run" in found.columns else alone
    left = dict.fromkeys(numbers, most)

    chosen = []
    for run, root in zip(runs, found["root_id"], strict=True):
        left[run] -= 1
        if left[run] >= 0:
            chosen.append((numbers[run], root))

    return chosen


def _of_post(logs: RunLogs, post: str) -> list[tuple[int, str]]:
    keys = ("post_id", "parent_id", "root_id")
    found = [
        frame.filter(pl.col("post_id") == post).select(
            "run", pl.coalesce("root_id", "parent_id", "post_id")
        )
        for frame in logs.blocks(POST_PUBLISHED, columns=keys)
    ]
    chosen = pl.concat(found).unique(maintain_order=True).rows()
    if not chosen:
        raise InputError(f"the logs have no post {post!r}")

    return chosen


def _row(post: TreePost) -> tuple[object, ...]:
    is_known = post.kind != MISSING
    return (
        *(post.round, post.tick, post.agent_id if is_known else None, post.kind, post.post_id),
        *(post.parent_id, post.likes, post.was_cut, post.text if is_known else None),
        f"{told_of(post)}: {post.text}{remarks_on(post)}" if is_known else told_of(post),
    )
