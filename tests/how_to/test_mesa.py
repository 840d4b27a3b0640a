"""A Mesa model with states, run with the real package in a separate environment."""

import json
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

CHECKOUT = Path(__file__).parents[2]

SCRIPT = """
import copy, json

import after, before
from after import Mood, Street, Walker, chart


def activations(street):
    order = []
    street.agents.shuffle_do(lambda walker: order.append(walker.unique_id))
    return order, street.random.random()


def run(seed):
    street = Street(seed=seed)
    for _ in range(10):
        street.step()
    return street


street, again, old = run(7), run(7), before.Street(seed=7)
for _ in range(10):
    old.step()
empty = Street(seed=7)
for walker in list(empty.agents):
    walker.remove()
empty.step()
walker = street.agents[0]
copied = copy.deepcopy(street)
collector = before.mesa.DataCollector(agent_reporters={"state": "state"})
collector.collect(street)
print(json.dumps({
    "orders": [activations(model) for model in (street, again, old)],
    "states": [[walker.state for walker in model.agents] for model in (street, again, copied)],
    "counts": [model.datacollector.model_vars["states"] for model in (street, again)],
    "nobody": empty.datacollector.model_vars["states"],
    "angry": old.datacollector.model_vars["angry"],
    "walker": [walker == walker, walker in {walker}, walker == street.agents[1], walker.unique_id],
    "hash": [Walker.__hash__ is object.__hash__, Walker.__eq__ is object.__eq__],
    "grouped": {mood: len(group) for mood, group in street.agents.groupby("state")},
    "got": list(street.agents.get("state")) == [walker.state for walker in street.agents],
    "collected": collector.get_agent_vars_dataframe()["state"].tolist(),
    "moved": sum(len(walker.state_history) for walker in street.agents),
}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with Mesa and this checkout; return its interpreter."""
    folder = tmp_path_factory.mktemp("mesa")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "mesa[network]>=3.0,<4", str(CHECKOUT)], check=True)
    return python


@pytest.fixture
def found(python: Path, script: Callable[..., Path], tmp_path: Path) -> dict[str, Any]:
    """Run the guide's model before and after its diff; return the results."""
    script("mesa").rename(tmp_path / "after.py")
    script("mesa", "-").rename(tmp_path / "before.py")
    (tmp_path / "look.py").write_text(SCRIPT, encoding="utf-8")
    return json.loads(run(python, tmp_path / "look.py"))  # type: ignore[no-any-return]


def run(python: Path, path: Path) -> str:
    done = subprocess.run(
        [python, path], cwd=path.parent, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("side", ["+", "-"])
def test_the_guide_runs(side: str, python: Path, script: Callable[..., Path]) -> None:
    """The guide's code runs, before and after its diff."""
    assert run(python, script("mesa", side)) == ""


def test_mesa_activates_as_before(found: dict[str, Any]) -> None:
    """States change neither the order of activation nor random numbers."""
    new, again, old = found["orders"]
    assert new == again == old
    assert found["states"][0] == found["states"][1]
    assert found["counts"][0] == found["counts"][1]


def test_agents_are_still_mesa_agents(found: dict[str, Any]) -> None:
    """Agents are compared by identity, numbered by Mesa, and grouped by state."""
    assert found["walker"] == [True, True, False, 1]
    assert found["hash"] == [True, True]
    assert found["grouped"] == {
        key: value for key, value in found["counts"][0][-1].items() if value
    }
    assert found["got"]


def test_the_collector_counts_the_states(found: dict[str, Any]) -> None:
    """Each step counts every agent once."""
    assert [sum(counts.values()) for counts in found["counts"][0]] == [20] * 10
    assert len(found["angry"]) == 10
    assert found["collected"] == found["states"][0]
    assert found["moved"] > 0
