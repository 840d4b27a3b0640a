"""Cascades as trees of posts, from a log that may lack some of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from prism.analysis._tables.cascades import tree_shape

MISSING = "missing"
"""Kind of a post that others name but the log lacks."""


@dataclass(frozen=True, slots=True)
class TreePost:
    """One post of a cascade.

    Args:
        post_id: Its id.
        parent_id: The post it replies to or reshares; None for the root.
        kind: ``post``, ``reply``, ``reshare`` or ``missing``.
        agent_id: Its author.
        text: Its text.
    """

    post_id: str
    parent_id: str | None
    kind: str
    agent_id: str
    text: str


def grow(root_id: str, posts: pl.DataFrame) -> tuple[TreePost, ...]:
    """Build the tree of a cascade as `prism.analysis.cascades` does: lost posts go below the root.

    Args:
        root_id: Its root.
        posts: ``post_id``, ``parent_id``, ``root_id``, ``kind``, ``agent_id`` and ``text`` of its
            posts, and perhaps other posts.

    Returns:
        Its posts, the root first, the others in the order of the log, each with a parent among
        them.
    """
    is_below = pl.coalesce("root_id", "parent_id", "post_id") == root_id
    own = posts.filter(is_below | (pl.col("post_id") == root_id))
    texts = own.select("post_id", "parent_id", pl.col("kind", "agent_id", "text").fill_null(""))
    found = {row[0]: TreePost(*row) for row in texts.iter_rows()}

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
