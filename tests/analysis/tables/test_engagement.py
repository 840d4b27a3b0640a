"""Who takes part, and how unequally."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.analysis import read_log
from tests.kit.logs import AGENTS
from tests.kit.tables import participation

WriteLog = Callable[..., Path]
ACTS = (
    *("agent_id", "posts", "replies", "reshares", "likes"),
    *("replies_received", "reshares_received", "likes_received"),
)


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
    wrote, created, liked = Counter[str](), set[str](), set[str]()
    for event in events:
        if event["round"] == 0 or number not in (None, event["round"]):
            continue
        if event["event"] == "post.published":
            wrote[event["agent_id"]] += 1
            created |= {event["agent_id"]} if event["kind"] == "post" else set()
        elif event["event"] == "post.liked":
            liked.add(event["agent_id"])

    table = participation(read_log(folder))
    (row,) = table.filter(pl.col("round").eq_missing(number)).iter_rows(named=True)
    counts = [*wrote.values(), *[0] * (AGENTS - len(wrote))]
    shares = {name: top_share(counts, share) for name, share in (("top_1", 0.01), ("top_10", 0.1))}
    assert (row["agents"], row["written"]) == (AGENTS, wrote.total())
    assert row["silent"] == pytest.approx(1 - len(wrote) / AGENTS)
    assert row["creating"] == pytest.approx(len(created) / AGENTS)
    assert row["silent"] + row["writing"] + row["creating"] == pytest.approx(1)
    assert row["liking"] == pytest.approx(len(liked) / AGENTS)
    assert row["gini"] == pytest.approx(gini(counts))
    assert {name: row[name] for name in shares} == pytest.approx(shares)
    assert row["next_9"] == pytest.approx(row["top_10"] - row["top_1"])
    assert row["top_10"] + row["other_90"] == pytest.approx(1)


def test_a_round_in_which_nobody_writes_has_no_shares(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Everybody is silent, and nothing is nobody's; opening posts are from before."""
    lines = [
        make.started(),
        make.joined("x"),
        make.post("x", "p0", round=0, tick=0),
        make.event("round.ended", round=1, tick=3),
        make.post("x", "p1", round=2),
    ]
    table = participation(read_log(write_log(lines)))
    columns = ("round", "silent", "creating", "written", "top_1", "gini")
    assert table.select(columns).rows() == [
        (1, 1.0, 0.0, 0, None, None),
        (2, 0.0, 1.0, 1, 0.01, 0.0),
        (None, 0.0, 1.0, 1, 0.01, 0.0),
    ]
