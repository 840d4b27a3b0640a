"""The times between the acts of agents."""

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean, pstdev
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from prism.analysis import agent_rhythms, read_log, rhythm

WriteLog = Callable[..., Path]


def acting(make: SimpleNamespace, agent: str, ticks: list[int], begins: int = 0) -> list[Any]:
    """Return the likes of an agent at some ticks of a single round."""
    return [
        make.like(agent, f"p{number}", "z", tick=tick)
        for number, tick in enumerate(ticks, start=begins)
    ]


def burstiness(times: list[int]) -> float:
    """Return Kim and Jo's form of Goh and Barabási's burstiness, from its published formula."""
    n, r = len(times), pstdev(times) / fmean(times)
    return (sqrt(n + 1) * r - sqrt(n - 1)) / ((sqrt(n + 1) - 2) * r + sqrt(n - 1))


def test_intervals_are_those_of_the_events(folder: Path, events: list[dict[str, Any]]) -> None:
    """Means, burstiness and memory of every agent are those of its acts, one by one."""
    acts = defaultdict(list)
    for event in events:
        if event["event"] in ("post.published", "post.liked") and event["round"] > 0:
            acts[event["agent_id"]].append((event["round"] - 1) * 12 + event["tick"])

    logs = read_log(folder)
    table = agent_rhythms(logs).filter(what="all")
    assert set(table["agent_id"]) == set(acts)
    together = []
    for row in table.iter_rows(named=True):
        own = acts[row["agent_id"]]
        times = [later - earlier for earlier, later in pairwise(own)]
        together += times
        assert (row["acts"], row["intervals"]) == (len(own), len(times))
        if len(times) > 1:
            assert row["mean"] == pytest.approx(fmean(times))
            assert row["burstiness"] == pytest.approx(burstiness(times))
        if len(times) > 2 and pstdev(times[:-1]) and pstdev(times[1:]):
            pairs = pl.DataFrame({"a": times[:-1], "b": times[1:]})
            assert row["memory"] == pytest.approx(pairs.select(pl.corr("a", "b")).item())

    (row,) = rhythm(logs).filter(pl.col("round").is_null(), what="all").iter_rows(named=True)
    assert (row["intervals"], row["max"]) == (len(together), max(together))
    assert row["burstiness"] == pytest.approx(burstiness(together))
    assert row["agent_burstiness"] == pytest.approx(table["burstiness"].mean())


def test_burstiness_does_not_depend_on_the_number(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """It is -1 for a regular rhythm, 1 for one burst, and near 0 for few random times."""
    dice = Random(1)
    lines = [
        *acting(make, "regular", [3, 6, 9, 12]),
        *acting(make, "burst", [5, 5, 5, 5, 90]),
    ]
    for number in range(400):
        # random times on a circle: their intervals are those that Kim and Jo count
        ticks = sorted(dice.randrange(100_000) for _ in range(4))
        lines += acting(make, f"x{number}", [*ticks, ticks[0] + 100_000])

    found = agent_rhythms(read_log(write_log(lines))).filter(what="likes")
    own = dict(found.select("agent_id", "burstiness").rows())
    assert own.pop("regular") == -1
    assert own.pop("burst") == pytest.approx(1)
    assert abs(fmean(own.values())) < 0.1
    # the plain form takes so few for more regular than they are
    ratios = [sd / mean for sd, mean in found.filter(intervals=4).select("sd", "mean").rows()]
    assert fmean((ratio - 1) / (ratio + 1) for ratio in ratios) < -0.15
    # the form is 0 where the ratio is that of random times in the mean: (n - 1) / (n + 1)
    assert fmean(ratio**2 for ratio in ratios) == pytest.approx(3 / 5, abs=0.04)


def test_an_interval_belongs_to_the_round_it_ends_in(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Intervals go on over rounds; memory is how alike an interval and the next are."""
    ticks = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]
    lines = [make.started(rounds=3, ticks_per_round=3)]
    lines += [make.like("x", "p", "z", round=number, tick=tick) for number, tick in ticks]
    table = rhythm(read_log(write_log(lines))).filter(what="likes")
    assert table.select("round", "acts", "intervals", "mean").rows() == [
        (1, 2, 1, 1.0),
        (2, 2, 2, 1.5),
        (3, 1, 1, 2.0),
        (None, 5, 4, 1.5),
    ]
    assert table["memory"][-1] == pytest.approx(-1)
