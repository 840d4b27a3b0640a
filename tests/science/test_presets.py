"""Presets, held against what has been published."""

import csv
from pathlib import Path
from runpy import run_path

import duckdb
import pytest

import prism
from prism import Run
from prism.science import Plan, fit
from prism.social import Feed

CASCADES = Path(__file__).parents[1] / "data" / "twitter_cascades.csv"
"""Users, depth, and when the median share came on the way to the last, of 99 real cascades."""

PLANS = Path(str(prism.__file__)).parent / "science" / "plans"
FITTED = ["conversation", "participation", "twitter", "browsing", "rumour"]
DOCS = Path(__file__).parents[2] / "docs"


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
    """What its plan came to ships beside it, and is what the preset has, to four digits.

    Its fading alone is another value of the fit's interval, as the plan says.
    """
    table = duckdb.read_csv(str(PLANS / "rumour.csv")).df().set_index("parameter")
    feed = Feed(preset="rumour")
    assert set(table.index) == set(Plan.from_file("rumour").data["bounds"])
    assert table.low["fading"] < feed.fading < table.high["fading"]
    for name in ("visit_chance", "virality_sigma"):
        assert getattr(feed, name) == float(f"{table['median'][name]:.4g}")


@pytest.mark.long
def test_the_fit_of_a_rumour_gives_its_medians(tmp_path: Path) -> None:
    """The command that its plan names gives the table that ships, but for how machines round."""
    plan = (PLANS / "rumour.toml").read_text(encoding="utf-8")
    command = next(line for line in plan.splitlines() if "prism fit rumour" in line)
    samples = int(command.split("--samples ")[1].split()[0])
    fit("rumour", tmp_path / "out", samples=samples)
    made, shipped = (
        duckdb.read_csv(str(path)).df().set_index("parameter").drop(columns="remark")
        for path in (tmp_path / "out" / "estimates.csv", PLANS / "rumour.csv")
    )
    assert made.to_dict() == {
        name: pytest.approx(column, rel=1e-9) for name, column in shipped.to_dict().items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("preset", FITTED)
def test_the_table_of_presets_is_up_to_date(preset: str) -> None:
    """``python docs/presets.py`` gives its figures to the digit; those of the first size are tried.

    Where they differ the draws have changed, and every preset is fitted and measured anew.
    """
    made = run_path(str(DOCS / "presets.py"))
    agents, rounds, runs = made["SIZES"][preset][0]
    found = [*made["rows"](preset, agents, rounds, runs)]
    table = table_of(preset)[: len(found)]
    assert [{name: str(value) for name, value in row.items()} for row in found] == table


def table_of(preset: str) -> list[dict[str, str]]:
    """Return the rows of a preset in the table of the documentation."""
    with (DOCS / "presets.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["preset"] == preset]


NEAR = {
    **{"singletons": 0.05, "beyond_one_degree": 0.02, "browsing": 0.02, "top_10": 0.05},
    **{"reshare_singletons": 0.125, "reshare_beyond_one_degree": 0.015},
    **{"top_1": 0.1, "next_9": 0.1},
    **{"largest_cascade": 60, "deepest_cascade": 0.5, "median_place": 0.1},
}
"""By how much a figure that a preset is made for may be off, in runs of the size of its plan."""


@pytest.mark.parametrize("preset", FITTED)
def test_presets_come_near_what_they_are_made_for(preset: str) -> None:
    """In runs of seeds that no fit has seen, every figure that was fitted is near its target."""
    plan = Plan.from_file(preset).data
    size = {"agents": str(plan["agents"]), "rounds": str(plan["rounds"])}
    rows = [row for row in table_of(preset) if {**row, **size} == row]
    made_for = [row for row in rows if (row["held_out"], row["statistic"]) == ("false", "mean")]
    assert made_for
    for row in made_for:
        off = abs(float(row["found"]) - float(row["published"]))
        assert off <= NEAR[row["measure"]], row["measure"]


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
