"""Sensitivity analyses: samples, their runs, and indices, held to a function whose are known."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from prism.errors import InputError
from prism.science import Plan, Sensitivity, read_sensitivity, resume_batch, sensitivity

pytest.importorskip("SALib")

ISHIGAMI = """\
from enum import StrEnum
from math import pi, sin

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, measure, param

Still = StrEnum("Still", ["HERE"])


class Nobody(Agent):
    chart = Statechart(
        Still, [Transition("stays", Still.HERE, Still.HERE)], initial=Still.HERE, name="nobody"
    )


class Ishigami(World[Nobody]):
    rounds = 1
    x1: float = 0.0
    x2: float = 0.0
    x3: float = param(0.0, most=100.0)  # which rounding must not exceed
    whole: int = 1

    @measure
    def y(self) -> float:
        return sin(self.x1) + 7 * sin(self.x2) ** 2 + 0.1 * self.x3**4 * sin(self.x1)

    @measure
    def never(self) -> float | None:
        return None
"""
PI = 3.141592653589793
BOUNDS = {name: [-PI, PI] for name in ("x1", "x2", "x3")}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return a plan of the function, whose world lies in the current folder."""
    monkeypatch.chdir(tmp_path)
    # a file is a module, and no other test's may have its name
    world = Path(f"{tmp_path.name}.py")
    world.write_text(ISHIGAMI)
    return {"world": f"{world}:Ishigami", "agents": 1, "bounds": BOUNDS}


@pytest.mark.slow
def test_indices_stand_beside_the_tables_of_the_batch(plan: dict[str, Any]) -> None:
    """Each sample is a configuration; indices and points are found again."""
    bounds = {
        "x1": [-PI, PI],
        "x2": {"least": 0, "most": 1, "step": 0.5},
        "whole": [2, 4],
        "x3": {"least": 1, "most": 100, "scale": "log"},
        "agents": [1, 3],
    }
    sampled = {"world": plan["world"], "bounds": bounds}
    found = sensitivity(Plan(sampled), "out", samples=2, workers=1)

    results = found.batch.results().df()
    assert len(results) == 12
    assert set(results["agents"]) <= {1, 2, 3}
    assert set(results["whole"]) <= {2, 3, 4}
    assert set(results["x2"]) <= {0.0, 0.5, 1.0}
    # four levels of the grid, spread evenly by their logarithms
    levels = {round(each, 6) for each in results["x3"]}
    assert levels <= {1.0, round(100 ** (1 / 3), 6), round(100 ** (2 / 3), 6), 100.0}
    assert list(found.outcomes()) == ["y"]

    indices = found.indices().fetchall()
    assert duckdb.read_parquet("out/sensitivity.parquet").fetchall() == indices
    effects = {row["parameter"]: row for row in rows_at(found, "mu_star")}
    assert effects["whole"]["value"] == effects["whole"]["interval"] == 0.0
    assert effects["x1"]["value"] > 0
    assert read_sensitivity("out").indices().fetchall() == indices
    assert resume_batch("out").is_complete
    _ask_for("never")
    with pytest.raises(InputError, match=r"plan.json, field 'measures.never': .* there are y"):
        read_sensitivity("out").indices()
    _ask_for("y")
    assert read_sensitivity("out").indices().fetchall() == indices


def rows_at(found: Sensitivity, index: str) -> list[dict[str, Any]]:
    """Return the rows of one index."""
    table = found.indices().filter(f"index = '{index}'")
    return [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]


def _ask_for(measure: str) -> None:
    """Change what a plan that was carried out asks for."""
    path = Path("out/plan.json")
    told = json.loads(path.read_text())
    told["plan"]["measures"] = [measure]
    path.write_text(json.dumps(told))


@pytest.mark.slow
def test_what_cannot_be_sampled_is_refused(plan: dict[str, Any]) -> None:
    """Plans without bounds, with arms, with bounds of texts, and numbers of samples."""
    for change, said in (
        ({"bounds": {}}, r"add \[bounds\]"),
        ({"arm": [{"name": "a"}]}, "field 'arm': is for batches"),
        ({"bounds": {"x9": [0, 1]}}, "Ishigami has no parameter 'x9'"),
    ):
        with pytest.raises(InputError, match=said):
            sensitivity(Plan({**plan, **change}), "out")
    with pytest.raises(InputError, match="must be a power of 2 for sobol, got 12"):
        sensitivity(Plan(plan), "out", method="sobol", samples=12)
    assert not Path("out").exists()
    with pytest.raises(InputError, match="holds no batch"):
        read_sensitivity("out")


@pytest.mark.slow
def test_indices_of_ishigami_are_those_of_the_literature(plan: dict[str, Any]) -> None:
    """Sobol's indices of the test function of Ishigami and Homma (1990) are known exactly."""
    given = Plan({**plan, "measures": ["y"]})
    found = sensitivity(given, "out", method="sobol", samples=64, workers=2)
    # a = 7 and b = 0.1; such as in Saltelli et al. (2008), section 4.6
    for index, exact in (("S1", (0.3139, 0.4424, 0.0)), ("ST", (0.5576, 0.4424, 0.2437))):
        for row, value in zip(rows_at(found, index), exact, strict=True):
            assert abs(row["value"] - value) < 1.5 * row["interval"]
            assert row["interval"] < 0.3

    again = read_sensitivity("out").indices().fetchall()
    assert found.indices().fetchall() == again  # intervals are drawn with a seed
