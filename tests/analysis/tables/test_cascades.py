"""Cascades: shape, virality and life of trees of posts."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis import read_log
from tests.kit.tables import cascades

WriteLog = Callable[..., Path]
FORESTS = st.integers(1, 14).flatmap(
    lambda size: st.tuples(
        *(st.none() | st.integers(0, max(place - 1, 0)) for place in range(size))
    )
)


def above(node: int, parents: list[int | None]) -> list[int]:
    """Return a node and all above it, the root last."""
    path = [node]
    while (parent := parents[path[-1]]) is not None:
        path.append(parent)
    return path


def distance(one: int, other: int, parents: list[int | None]) -> int:
    """Return the steps between two nodes of a tree."""
    first, second = above(one, parents), above(other, parents)
    shared = len(set(first) & set(second))
    return len(first) + len(second) - 2 * shared


@given(forest=FORESTS)
def test_measures_are_those_of_the_definitions(
    forest: tuple[int | None, ...], tmp_path_factory: Any
) -> None:
    """Size, depth, breadth and virality of any tree agree with counting nodes and pairs."""
    parents = [
        None if parent is None or parent >= place else parent for place, parent in enumerate(forest)
    ]
    roots = [above(node, parents)[-1] for node in range(len(parents))]
    lines = [
        {
            **{"event": "post.published", "agent_id": f"a{place % 3}", "post_id": f"p{place}"},
            **{"kind": "post" if parent is None else "reply", "root_id": f"p{roots[place]}"},
            "parent_id": None if parent is None else f"p{parent}",
        }
        for place, parent in enumerate(parents)
    ]
    path = tmp_path_factory.mktemp("forest") / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    table = {row["root_id"]: row for row in cascades(read_log(path)).iter_rows(named=True)}
    assert set(table) == {f"p{root}" for root in roots}
    for root in set(roots):
        nodes = [node for node in range(len(parents)) if roots[node] == root]
        depths = Counter(len(above(node, parents)) - 1 for node in nodes)
        row = table[f"p{root}"]
        assert (row["size"], row["depth"], row["breadth"]) == (
            len(nodes),
            max(depths),
            max(depths.values()),
        )
        assert (row["agents"], row["missing"]) == (len({node % 3 for node in nodes}), 0)
        assert (row["replies"], row["reshares"]) == (len(nodes) - 1, 0)
        pairs = [distance(one, other, parents) for one, other in combinations(nodes, 2)]
        assert row["virality"] == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)


def test_lifetime_is_from_the_root_to_the_last_post(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A lifetime is in seconds and, if the run has ticks, in ticks; early posts count from 0."""
    lines = [
        make.started(rounds=3, ticks_per_round=4),
        make.post("x", "p0", round=0, tick=0),
        make.post("y", "p1", round=1, tick=3, timestamp="2026-01-01T00:03:00Z"),
        make.post("z", "p2", "p1", "p1", round=2, tick=2, timestamp="2026-01-01T00:06:00.5Z"),
        make.post("y", "p3", "p0", "p0", round=1, tick=4, timestamp="2026-01-01T00:04:00Z"),
    ]
    table = {
        row["root_id"]: row for row in cascades(read_log(write_log(lines))).iter_rows(named=True)
    }
    assert (table["p1"]["lifetime_ticks"], table["p1"]["lifetime_seconds"]) == (3, 180.5)
    assert (table["p0"]["lifetime_ticks"], table["p0"]["lifetime_seconds"]) == (4, 240.0)
    bare = cascades(read_log(write_log(lines[2:4], "bare.jsonl")))
    assert bare.select("lifetime_ticks", "lifetime_seconds").rows() == [(None, 180.5)]


@pytest.mark.parametrize(
    ("lines", "cascade"),
    [
        (
            [
                ("x", "root", None, "root"),
                ("z", "a", "lost", "root"),
                ("z", "b", "lost", "root"),
                ("z", "c", "a", "root"),
            ],
            ("root", "x", 5, 3, 2, 2, 1, 0),
        ),
        (
            [("x", "a", "root", "root"), ("y", "b", "root", None)],
            ("root", None, 3, 1, 2, 2, 1, None),
        ),
    ],
)
def test_a_lost_post_is_put_back(
    lines: list[Any], cascade: tuple[Any, ...], write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Below the root, or as the root without author and lifetime: a cascade stays one tree."""
    posts = [make.post(agent, post, parent, root_id=root) for agent, post, parent, root in lines]
    columns = "root_id, author_id, size, depth, breadth, agents, missing, lifetime_seconds"
    found = read_log(write_log(posts)).sql(f"select {columns} from cascades").fetchall()
    assert found == [cascade]
