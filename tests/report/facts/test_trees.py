"""Cascades as trees."""

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis import RunLogs, cascades
from prism.report._facts.counts import posts_below
from prism.report._facts.trees import MISSING, TreePost, grow

SCHEMA = dict.fromkeys(("post_id", "parent_id", "root_id", "kind", "agent_id", "text"), pl.String)


def table(*rows: tuple[str, str | None, str | None]) -> pl.DataFrame:
    """Make posts from their own, their parents' and their roots' ids."""
    posts = [
        (*row, "post" if row[1] is None else "reply", f"by {row[0]}", f"text of {row[0]}")
        for row in rows
    ]
    return pl.DataFrame(posts, schema=SCHEMA, orient="row")


def depth_of(post: TreePost, tree: dict[str, TreePost]) -> int:
    """Count the steps to the root; a circle would never end."""
    steps = 0
    while post.parent_id is not None:
        post, steps = tree[post.parent_id], steps + 1
        assert steps <= len(tree)
    return steps


def test_trees_have_the_size_and_depth_of_cascades(logs: RunLogs) -> None:
    """The tree of every cascade of a real run has its size and depth."""
    found = cascades(logs).filter(pl.col("size") > 1)
    posts = posts_below(logs, found["root_id"].to_list())
    assert found.height > 5
    for row in found.iter_rows(named=True):
        tree = {post.post_id: post for post in grow(row["root_id"], posts)}
        assert len(tree) == row["size"]
        assert max(depth_of(post, tree) for post in tree.values()) == row["depth"]


def test_lost_posts_are_put_back_as_missing() -> None:
    """A lost root and a lost parent are marked as missing, the parent below the root."""
    tree = grow("p", table(("r1", "lost", "p"), ("r2", "r1", "p"), ("other", None, "other")))
    assert [(post.post_id, post.parent_id, post.kind) for post in tree] == [
        ("p", None, MISSING),
        ("lost", "p", MISSING),
        ("r1", "lost", "reply"),
        ("r2", "r1", "reply"),
    ]


def test_the_root_comes_first() -> None:
    """The root comes first even if its line comes last or names a parent."""
    tree = grow("p", table(("r1", "p", "p"), ("p", "r1", "p")))
    assert [(post.post_id, post.parent_id) for post in tree] == [("p", None), ("r1", "p")]


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.none() | st.sampled_from("pabcdefx")), max_size=6
    )
)
def test_any_posts_make_a_tree(rows: list[tuple[str, str | None]]) -> None:
    """Circles, posts below themselves and lost parents still make one tree of all posts."""
    posts: Any = table(*((name, parent, "p") for name, parent in dict(rows).items()))
    tree = {post.post_id: post for post in grow("p", posts)}
    named = {parent for parent in dict(rows).values() if parent is not None}
    assert set(tree) == {"p", *dict(rows), *named}
    for post in tree.values():
        depth_of(post, tree)
