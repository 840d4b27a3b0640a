"""Presets, held against what has been published."""

from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest

import prism
from prism import Run
from prism.analysis import read_log
from prism.science import Plan
from prism.social import PRESETS, Feed

CASCADES = Path(__file__).parents[1] / "data" / "twitter_cascades.csv"
"""Users, depth, and when the median share came on the way to the last, of 99 real cascades."""

PLANS = Path(str(prism.__file__)).parent / "science" / "plans"
FITTED = ["conversation", "participation", "twitter", "browsing", "rumour"]


@pytest.mark.parametrize("preset", FITTED)
def test_a_preset_is_a_fit_by_its_plan(preset: str) -> None:
    """The plan of its name has bounds of parameters and targets with sources; values lie within."""
    plan = Plan.from_file(preset).data
    assert plan["preset"] == preset
    assert all(target["source"] for target in plan["target"])
    assert any(target.get("held_out") for target in plan["target"])
    feed = Feed(preset=preset)
    for name, bound in plan["bounds"].items():
        least, most = (bound["least"], bound["most"]) if isinstance(bound, dict) else bound
        assert least < getattr(feed, name) < most


def test_a_rumour_has_the_medians_of_its_fit() -> None:
    """What its plan came to ships beside it, and is what the preset has, to four digits."""
    table = duckdb.read_csv(str(PLANS / "rumour.csv")).df()
    feed = Feed(preset="rumour")
    assert set(table["parameter"]) == set(Plan.from_file("rumour").data["bounds"])
    for name, median in zip(table["parameter"], table["median"], strict=True):
        assert getattr(feed, name) == float(f"{median:.4g}")


def test_every_preset_says_whether_it_is_calibrated() -> None:
    """Those without a plan say by what else they are made, and nothing resembles anything."""
    for name, preset in PRESETS.items():
        assert "alibrated to" in preset.about or name == "herding"
        assert "resemble" not in preset.about


def measured(preset: str, agents: int, rounds: int, seed: int) -> dict[str, Any]:
    """Return the row of ``run_measures`` of one run of a preset."""
    with TemporaryDirectory() as folder:
        Run(Feed(preset=preset), agents, rounds=rounds, seed=seed).keep(f"{folder}/run")
        (row,) = read_log(Path(folder) / "run").rows("run_measures")
        return row


@pytest.mark.long
@pytest.mark.parametrize(
    ("agents", "rounds", "runs"), [(100, 10, 4), (100, 30, 4), (200, 10, 4), (2000, 10, 1)]
)
def test_people_answer_as_often_at_every_size(agents: int, rounds: int, runs: int) -> None:
    """Of the posts by default, 29 % are answered or reshared, within 5 points."""
    rows = [measured("conversation", agents, rounds, seed) for seed in range(50, 50 + runs)]
    answered = 1 - fmean(row["singletons"] for row in rows)
    assert answered == pytest.approx(0.29, abs=0.05)


MADE_FOR = [
    ("participation", range(400, 401), {"top_1": (0.747, 0.1), "next_9": (0.24, 0.1)}),
    (
        "twitter",
        range(400, 401),
        {
            "top_10": (0.8, 0.05),
            "reshare_singletons": (0.825, 0.125),
            "reshare_beyond_one_degree": (0.025, 0.015),
        },
    ),
    ("browsing", range(400, 401), {"browsing": (0.92, 0.02)}),
]
"""What presets are made for, and by how much a run of the size of the plan may be off."""


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "seeds", "figures"), MADE_FOR)
def test_no_seed_misses_what_a_preset_is_made_for(
    preset: str, seeds: range, figures: dict[str, tuple[float, float]]
) -> None:
    """Every run, of seeds that the fit has not seen, comes near the published figures."""
    plan = Plan.from_file(preset).data
    rows = [measured(preset, plan["agents"], plan["rounds"], seed) for seed in seeds]
    for name, (published, off) in figures.items():
        assert [row[name] for row in rows] == pytest.approx([published] * len(seeds), abs=off), name


@pytest.fixture(scope="module")
def spreads() -> list[dict[str, float]]:
    """Return how 200 rumours spread."""
    return [_spread(seed) for seed in range(200)]


@pytest.mark.long
@pytest.mark.parametrize("name", ["users", "depth", "place"])
def test_a_rumour_spreads_as_real_ones_do(spreads: list[dict[str, float]], name: str) -> None:
    """Users, depth, and the median's place in time are within .2, by Kolmogorov and Smirnov."""
    real = duckdb.read_csv(str(CASCADES)).df()
    assert _distance([each[name] for each in spreads], real[name].to_list()) <= 0.2


def _spread(seed: int) -> dict[str, float]:
    feed = Feed(preset="rumour")
    Run(feed, 1000, rounds=6, seed=seed).run()
    begun, *times = [post.published for post in feed.posts]
    shares = sorted(time - begun for time in times)

    return {
        "users": float(len({post.author_id for post in feed.posts})),
        "depth": float(max(post.depth for post in feed.posts)),
        "place": shares[len(shares) // 2] / shares[-1] if shares else 0.0,
    }


def _distance(one: list[float], other: list[float]) -> float:
    """Return the largest distance of two distribution functions."""
    return max(
        abs(sum(x <= at for x in one) / len(one) - sum(x <= at for x in other) / len(other))
        for at in {*one, *other}
    )
