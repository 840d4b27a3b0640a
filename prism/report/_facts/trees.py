"""Cascades as trees of posts, put together from a log that may lack some."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from prism.analysis._tables.cascades import tree_shape

MISSING = "missing"
"""Kind of a post that others name but that is not in the log."""


@dataclass(frozen=True, slots=True)
class TreePost:
    """One post of a cascade.

    Args:
        post_id: Its id.
        parent_id: What it replies to or reshares; None for the root.
        kind: ``post``, ``reply``, ``reshare`` or ``missing``.
        agent_id: Who published it.
        text: What it says.
    """

    post_id: str
    parent_id: str | None
    kind: str
    agent_id: str
    text: str


def grow(root_id: str, posts: pl.DataFrame) -> tuple[TreePost, ...]:
    """Put a cascade together as `prism.analysis.cascades` does: posts that the log lacks go below the root.

    Args:
        root_id: Its root.
        posts: ``post_id``, ``parent_id``, ``root_id``, ``kind``, ``agent_id`` and ``text`` of its
            posts, and perhaps of others.

    Returns:
        Its posts, the root first, the others in the order of the log, each with a parent among
        them.
    """
    own = posts.filter(
        (pl.coalesce("root_id", "parent_id", "post_id") == root_id) | (pl.col("post_id") == root_id)
    )
    texts = own.select("post_id", "parent_id", pl.col("kind", "agent_id", "text").fill_null(""))
    found = {row[0]: TreePost(*row) for row in texts.iter_rows()}
    root = replace(found.pop(root_id, TreePost(root_id, None, MISSING, "", "")), parent_id=None)
    named = dict.fromkeys(post.parent_id for post in found.values() if post.parent_id is not None)
    lost = [
        TreePost(name, root_id, MISSING, "", "")
        for name in named
        if name != root_id and name not in found
    ]

    return (root, *_below_root(root_id, [*lost, *found.values()]))


def _below_root(root_id: str, posts: list[TreePost]) -> list[TreePost]:
    """Hang up at the root what says no parent, and what goes round in a circle."""
    places = {post.post_id: place for place, post in enumerate(posts, start=1)} | {root_id: 0}
    parents = [None, *(places.get(post.parent_id or root_id) for post in posts)]
    depths, _, _ = tree_shape(parents)

    return [
        replace(post, parent_id=root_id) if parent is None or depth == 0 else post
        for post, parent, depth in zip(posts, parents[1:], depths[1:], strict=True)
    ]
