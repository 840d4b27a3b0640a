"""Who takes part: silent, writing and creating agents, and what the most active wrote."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.analysis import gini, participation, read_log, top_share

WriteLog = Callable[..., Path]


@pytest.mark.parametrize("number", [1, 3, None])
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
    counts = pl.Series([*wrote.values(), *[0] * (80 - len(wrote))])
    shares = {name: top_share(counts, share) for name, share in (("top_1", 0.01), ("top_10", 0.1))}
    assert (row["agents"], row["written"]) == (80, wrote.total())
    assert row["silent"] == pytest.approx(1 - len(wrote) / 80)
    assert row["creating"] == pytest.approx(len(created) / 80)
    assert row["silent"] + row["writing"] + row["creating"] == pytest.approx(1)
    assert row["liking"] == pytest.approx(len(liked) / 80)
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
