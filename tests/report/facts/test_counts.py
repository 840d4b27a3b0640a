"""Tables that only a report needs, and cascades as trees."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from prism.analysis import RunLogs, activity, cascades, read_log
from prism.report._facts.counts import (
    MISSING,
    TreePost,
    agent_table,
    grow,
    latency_counts,
    posts_below,
)


def test_agents_are_those_of_the_log(logs: RunLogs, events: list[dict[str, Any]]) -> None:
    """Each agent has its name, last state, transitions and decisions, as counted plainly."""
    table = agent_table(logs)
    moves = Counter(
        event["agent_id"] for event in events if event["event"] == "statechart.transition"
    )
    asked = Counter(event["agent_id"] for event in events if event["event"] == "reasoner.decision")
    last = {
        event["agent_id"]: event["to_state"]
        for event in events
        if event["event"] == "statechart.transition"
    }
    joined = {event["agent_id"]: event for event in events if event["event"] == "agent.joined"}
    assert table.height == len(joined)
    for row in table.iter_rows(named=True):
        agent = row["agent_id"]
        assert (row["name"], row["archetype"]) == (
            joined[agent]["display_name"],
            joined[agent]["archetype"],
        )
        assert (row["transitions"], row["decisions"]) == (moves[agent], asked[agent])
        assert row["state"] == last.get(agent, joined[agent]["state"])
    counted = activity(logs)
    assert_frame_equal(table.select(counted.columns), counted)


@pytest.mark.parametrize(
    ("latency", "step"),
    [
        (1.0, 0),
        (0.999, -1),
        (1.26, 1),
        (0.1, -10),
        (0.001, -30),
        (10.0, 10),
        (3.2, 5),
        (0.0, -40),
        (1e-9, -40),
    ],
)
def test_latencies_are_counted_in_tenths_of_a_decade(
    write_log: Callable[..., Path], make: Any, latency: float, step: int
) -> None:
    """A latency counts at the tenth of a power of ten at or below it, and none below 0.1 ms."""
    log = write_log([make.decision("ada", ["a", "b"], "a", source="model", latency=latency)])
    assert latency_counts(read_log(log)).rows() == [("model", step, 1)]


def test_latencies_exclude_fallbacks_without_a_request(
    write_log: Callable[..., Path], make: Any
) -> None:
    """A fallback without a request is not counted, as in the percentiles of `decisions`."""
    keys = {"source": "fallback", "latency": 1.0}
    log = write_log(
        [make.decision("ada", ["a"], "a", attempts=attempts, **keys) for attempts in (0, 1, 2)]
    )
    assert latency_counts(read_log(log)).rows() == [("fallback", 0, 2)]


def test_decisions_without_latency_are_not_counted(logs: RunLogs) -> None:
    """If no model was asked there is no latency."""
    assert latency_counts(logs).is_empty()


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
