"""Who takes part, and how unequally."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.analysis import read_log
from prism.worlds import WorldResults
from tests.kit.logs import AGENTS
from tests.kit.tables import agents, participation

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


def test_totals_are_those_of_the_run(run: tuple[Path, WorldResults]) -> None:
    """Totals are those of the simulation, without posts from before the first round."""
    folder, results = run
    table = agents(read_log(folder))
    for name in ("posts", "replies", "reshares", "likes"):
        assert table[name].sum() == results.totals()[name]
        if name != "posts":
            assert table[f"{name}_received"].sum() == results.totals()[name]
    assert table.height == AGENTS


def test_every_agent_has_its_counts(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Every agent has its acts and the reactions it received counted, silent agents too."""
    lines = [
        make.started(),
        *(make.joined(name) for name in ("ann", "ben", "cas")),
        make.post("ann", "p0", round=0, tick=0),
        make.post("ben", "p1"),
        make.post("ben", "p2", "p0", "p0"),
        make.post("ann", "p3", "p2", "p0", kind="reshare"),
        make.like("ann", "p1", "ben"),
        make.like("ben", "p0", "ann"),
        make.like("ben", "gone", "cas"),
        make.post("ann", "p4", "lost", "lost"),
        make.move("dan", "a", "b"),
    ]
    assert agents(read_log(write_log(lines))).select(ACTS).rows() == [
        ("ann", 0, 1, 1, 1, 1, 0, 1),
        ("ben", 1, 1, 0, 2, 0, 1, 1),
        ("cas", 0, 0, 0, 0, 0, 0, 1),
        ("dan", 0, 0, 0, 0, 0, 0, 0),
    ]


def test_only_runs_with_a_start_have_opening_posts(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Only a run with a start has uncounted early posts; elsewhere round 0 counts."""
    lines = [make.post("ann", "p0", round=0, tick=0), make.post("ann", "p1", round=None, tick=None)]
    assert agents(read_log(write_log(lines))).select(ACTS).rows() == [("ann", 2, 0, 0, 0, 0, 0, 0)]


def test_runs_are_measured_separately(write_log: WriteLog, make: SimpleNamespace) -> None:
    """The same agents and posts in two runs are counted separately."""
    one = write_log([make.post("x", "p"), make.post("y", "q", "p", "p")], "one.jsonl")
    two = write_log([make.post("y", "p"), make.like("x", "p", "y")], "two.jsonl")
    table = agents(read_log(one, two))
    assert table.select("run", "agent_id", "replies_received", "likes_received").rows() == [
        ("one", "x", 1, 0),
        ("one", "y", 0, 0),
        ("two", "x", 0, 0),
        ("two", "y", 0, 1),
    ]


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


def test_the_published_shares_come_back(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Of a community that writes as van Mierlo's did, the shares are those he gives."""
    numbers = {"top": 747, **{f"next{n}": 26 + (n < 6) for n in range(9)}, "rest": 13}
    lines = [make.started(agents=100), *(make.joined(f"silent{n}") for n in range(89))]
    lines += [make.joined(name) for name in numbers]
    lines += [
        make.post(name, f"{name}-{n}") for name, count in numbers.items() for n in range(count)
    ]
    row = participation(read_log(write_log(lines))).row(-1, named=True)
    shares = [round(row[name], 3) for name in ("top_1", "next_9", "other_90")]
    assert shares == [0.747, 0.24, 0.013]
    assert (row["round"], row["silent"], row["written"]) == (None, 0.89, 1000)


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
