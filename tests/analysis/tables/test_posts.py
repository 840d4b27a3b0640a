"""What was posted: shapes and lives of cascades, and who takes part, and how unequally."""

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.analysis import read_log
from tests.kit import make
from tests.kit.logs import AGENTS, LogOf

FORESTS = st.integers(1, 14).flatmap(
    lambda size: st.tuples(*(st.integers(0, place) for place in range(size)))
)


def above(post: int, parents: tuple[int, ...]) -> list[int]:
    """Return a post and all above it, the root last, which has itself as its parent."""
    path = [post]
    while parents[path[-1]] != path[-1]:
        path.append(parents[path[-1]])
    return path


@given(parents=FORESTS)
def test_measures_are_those_of_the_definitions(
    parents: tuple[int, ...], tmp_path_factory: Any
) -> None:
    """Size, depth, breadth and virality of any tree agree with counting posts and pairs."""
    paths = [above(post, parents) for post in range(len(parents))]
    lines = [
        make.post(
            f"a{post % 3}", f"p{post}", f"p{parent}" if parent != post else None, f"p{path[-1]}"
        )
        for post, (parent, path) in enumerate(zip(parents, paths, strict=True))
    ]
    log = tmp_path_factory.mktemp("forest") / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, lines)))
    found = {row["root_id"]: row for row in read_log(log).rows("cascades")}
    trees = {top: [path for path in paths if path[-1] == top] for *_, top in paths}
    assert set(found) == {f"p{root}" for root in trees}
    for root, tree in trees.items():
        depths = Counter(len(path) - 1 for path in tree)
        steps = [len({*one} ^ {*other}) for one, other in combinations(tree, 2)]
        expected = {
            **{"size": len(tree), "depth": max(depths), "breadth": max(depths.values())},
            **{"agents": len({path[0] % 3 for path in tree}), "missing": 0},
            **{"replies": len(tree) - 1, "reshares": 0},
            "virality": pytest.approx(mean(steps)) if steps else None,
        }
        assert expected.items() <= found[f"p{root}"].items()


LIVES = [
    make.started(rounds=3, ticks_per_round=4),
    make.post("x", "p0", round=0, tick=0),
    make.post("y", "p1", round=1, tick=3, timestamp="2026-01-01T00:03:00Z"),
    make.post("z", "p2", "p1", "p1", round=2, tick=2, timestamp="2026-01-01T00:06:00.5Z"),
    make.post("y", "p3", "p0", "p0", round=1, tick=4, timestamp="2026-01-01T00:04:00Z"),
]
OF_LIFE = "root_id, lifetime_ticks, lifetime_seconds"
OF_SHAPE = "root_id, author_id, size, depth, breadth, agents, missing, lifetime_seconds"


@pytest.mark.parametrize(
    ("lines", "columns", "rows"),
    [
        # lives in ticks, early posts from 0
        (*(LIVES, OF_LIFE, [("p0", 4, 240.0), ("p1", 3, 180.5)]),),
        # lives without a run
        (LIVES[2:4], OF_LIFE, [("p1", None, 180.5)]),
        # a lost post below the root
        (
            [
                make.post("x", "root"),
                make.post("z", "a", "lost", "root"),
                make.post("z", "b", "lost", "root"),
                make.post("z", "c", "a", "root"),
            ],
            OF_SHAPE,
            [("root", "x", 5, 3, 2, 2, 1, 0)],
        ),
        # a lost root has neither author nor life
        (
            [make.post("x", "a", "root", "root"), make.post("y", "b", "root", root_id=None)],
            OF_SHAPE,
            [("root", None, 3, 1, 2, 2, 1, None)],
        ),
    ],
)
def test_cascades(lines: list[make.Event], columns: str, rows: Any, log_of: LogOf) -> None:
    """A cascade stays one tree, whatever is lost of it, and lives until its last post."""
    assert log_of(lines).sql(f"select {columns} from cascades").fetchall() == rows


def gini(counts: list[int]) -> float:
    """Return half the mean absolute difference over all pairs, divided by the mean."""
    differences = sum(abs(one - other) for one in counts for other in counts)
    return differences / (2 * len(counts) * sum(counts))


def top_share(counts: list[int], share: float) -> float:
    """Return what belongs to a share of the agents, of whom the last counts in part."""
    whole, part = divmod(share * len(counts), 1)
    ranked = sorted(counts, reverse=True)
    return (sum(ranked[: int(whole)]) + part * ranked[int(whole)]) / sum(counts)


@pytest.mark.parametrize("number", [1, 3, None])
@pytest.mark.sampled(3)
def test_shares_are_those_of_the_events(
    number: int | None, folder: Path, events: list[dict[str, Any]]
) -> None:
    """Counts and shares of a round and of all rounds are those counted plainly."""
    here = [each for each in events if each["round"] != 0 and number in (None, each["round"])]
    posts = [each for each in here if each["event"] == "post.published"]
    wrote = Counter(each["agent_id"] for each in posts)
    created = {each["agent_id"] for each in posts if each["kind"] == "post"}
    liked = {each["agent_id"] for each in here if each["event"] == "post.liked"}
    counts = [*wrote.values(), *[0] * (AGENTS - len(wrote))]
    top_1, top_10 = (top_share(counts, share) for share in (0.01, 0.1))
    (row,) = (row for row in read_log(folder).rows("participation") if row["round"] == number)
    assert row == pytest.approx(
        {
            **{"round": number, "agents": AGENTS, "written": wrote.total()},
            **{"silent": 1 - len(wrote) / AGENTS, "creating": len(created) / AGENTS},
            **{"writing": (len(wrote) - len(created)) / AGENTS, "liking": len(liked) / AGENTS},
            **{"top_1": top_1, "next_9": top_10 - top_1, "top_10": top_10, "other_90": 1 - top_10},
            "gini": gini(counts),
        }
    )


def test_a_round_in_which_nobody_writes_has_no_shares(log_of: LogOf) -> None:
    """Everybody who is there is silent, and nothing is nobody's; opening posts are from before."""
    lines = [
        make.started(),
        *(make.joined("x"), make.joined("y")),
        make.post("x", "p0", round=0, tick=0),
        make.event("agent.left", agent_id="y", state="idle", tick=3),
        make.event("round.ended", round=1, tick=3),
        make.post("x", "p1", round=2),
    ]
    columns = "round, agents, silent, creating, written, top_1, gini"
    assert log_of(lines).sql(f"select {columns} from participation").fetchall() == [
        (1, 2, 1.0, 0.0, 0, None, None),
        (2, 1, 0.0, 1.0, 1, 0.01, 0.0),
        (None, 2, 0.5, 0.5, 1, 0.02, 0.5),
    ]
