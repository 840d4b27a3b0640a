"""Threads: cascades as trees, and as people read them."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis import RunLogs, cascades, read_log, threads
from prism.analysis._tables.cascades import (
    MISSING,
    TreePost,
    grow,
    posts_below,
    read_through,
)
from prism.errors import InputError


@pytest.fixture
def logs(folder: Path) -> RunLogs:
    """Return the log of the real run."""
    return read_log(folder)


def test_an_answer_stands_below_its_post(
    write_log: Callable[..., Path], make: SimpleNamespace
) -> None:
    """Posts come in the order of reading: an answer, all below it, then the next answer."""
    log = write_log(
        [
            make.post("ada", "p1"),
            make.post("bo", "r1", "p1", "p1"),
            make.post("cy", "r2", "p1", "p1"),
            make.post("di", "r3", "r1", "p1"),
            make.post("ada", "alone"),
            make.post("cy", "r4", "lost", "p1"),
        ]
    )
    found = threads(read_log(log), most=1)
    assert found.select("post_id", "depth").rows() == [
        *(("p1", 0), ("lost", 1), ("r4", 2), ("r1", 1), ("r3", 2), ("r2", 1)),
    ]
    assert found["what"][1] == "a post that is not in the log"
    assert found["what"][3].startswith("bo replies: ")


def test_likes_and_cuts_are_said(write_log: Callable[..., Path], make: SimpleNamespace) -> None:
    """A post has its likes, and says where its writer's text was cut."""
    liked = make.like("ada", "r1", "bo")
    written = make.event("text.written", agent_id="bo", key="reply", cut=True, text="x")
    log = write_log(
        [
            make.post("ada", "p1"),
            make.post("bo", "r1", "p1", "p1"),
            *(liked, liked, {**written, "agent_id": "cy"}, written),
        ]
    )
    root, answer = threads(read_log(log)).iter_rows(named=True)
    assert (root["likes"], root["cut"], answer["likes"], answer["cut"]) == (0, False, 2, True)
    assert answer["what"].endswith(" (cut here, 2 likes)")


def test_a_thread_is_found_by_any_of_its_posts(logs: RunLogs) -> None:
    """The thread of an answer is that of its root; of a post that is not there, an error."""
    largest = threads(logs, most=1)
    last = largest["post_id"][-1]
    assert threads(logs, post=last).equals(largest)
    with pytest.raises(InputError, match="no post 'nowhere'"):
        threads(logs, post="nowhere")


@pytest.mark.slow
def test_threads_of_several_runs_are_told_apart(folder: Path) -> None:
    """Each thread belongs to its run, though both runs have the same ids."""
    copy = folder.with_name("copied")
    copy.mkdir(exist_ok=True)
    (copy / "events.jsonl").write_bytes((folder / "events.jsonl").read_bytes() + b"\n")
    one, both = threads(read_log(folder), most=3), threads(read_log(folder, copy), most=3)
    assert both["run"].n_unique() == 2
    assert both.height == 2 * one.height


def test_threads_are_those_of_cascades(logs: RunLogs) -> None:
    """The largest threads of a real run are its largest cascades, with each post once."""
    largest = cascades(logs).head(4)
    found = threads(logs, most=4)
    sizes = found.group_by("root_id", maintain_order=True).len()
    assert sizes["root_id"].to_list() == largest["root_id"].to_list()
    assert sizes["len"].to_list() == largest["size"].to_list()
    assert found["post_id"].n_unique() == found.height


def test_posts_are_found_by_their_cascade(write_log: Callable[..., Path], make: Any) -> None:
    """Posts are found by root, or else by parent, and each is returned once."""
    log = write_log(
        [
            make.post("ada", "p1"),
            make.post("bo", "p2"),
            make.post("cy", "r1", "p1", "p1"),
            make.post("cy", "r2", "p2", "p2"),
            {**make.post("di", "r3", "p1"), "root_id": None},
            make.post("di", "r1", "p1", "p1"),
        ]
    )
    found = posts_below(read_log(log), ["p1"])
    assert found.select("post_id", "agent_id").rows() == [("p1", "ada"), ("r1", "cy"), ("r3", "di")]
    assert posts_below(read_log(log), []).is_empty()


SCHEMA = dict.fromkeys(("post_id", "parent_id", "root_id", "kind", "agent_id", "text"), pl.String)
NUMBERS = {"round": 1, "tick": 1, "likes": 0, "cut": False}


def table(*rows: tuple[str, str | None, str | None]) -> pl.DataFrame:
    """Make posts from their own, their parents' and their roots' ids."""
    posts = [
        (*row, "post" if row[1] is None else "reply", f"by {row[0]}", f"text of {row[0]}")
        for row in rows
    ]
    return pl.DataFrame(posts, schema=SCHEMA, orient="row").with_columns(
        **{name: pl.lit(value) for name, value in NUMBERS.items()}
    )


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


def test_a_log_without_a_run_has_no_threads(write_log: Callable[..., Path]) -> None:
    """Events of others make no thread, and no fault."""
    assert threads(read_log(write_log([{"event": "hello"}]))).is_empty()


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
    depths = {post.post_id: depth for depth, post in read_through(tuple(tree.values()))}
    assert set(depths) == set(tree)
