"""A run of a world as options, and as what run.json says of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.examples import Rumour, rumour
from prism.examples.rumour import Person
from prism.telemetry.loggers import LateLogger
from prism.worlds import World
from tests.kit.worlds import run_in

MADE = Rumour(friends=4)


def test_run_json_says_what_the_run_is(tmp_path: Path) -> None:
    """World, all parameters, treatments and the digest of the code are in run.json."""
    options = Run(
        Rumour, 20, seed=2, rounds=3, parameters={"friends": "4"}, treatments=("warning@2",)
    )
    run_in(tmp_path, options)
    summary = json.loads((tmp_path / "run.json").read_text())
    config = summary["config"]
    assert config["world"] == "prism.examples.rumour:Rumour"
    assert config["parameters"] == {"friends": 4, "rewired": 0.1, "tiring": 0.3}
    assert config["treatments"] == ["warning@2"]
    assert len(config["inputs"]["prism.examples.rumour"]) == 64
    assert summary["results"]["rounds"][0]["measures"].keys() == {"reached"}

    made = Run.from_config(config, tmp_path / "run.json")
    assert made.to_config() == config


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"world": "nowhere:World"}, "No module named 'nowhere'"),
        ({"world": "prism.examples.rumour:Rumor"}, "rumour:Name, .* mean 'Rumour'"),
        ({"world": "prism.examples.rumour:Person"}, "a world or an agent there, got .*:Person'"),
        ({"world": rumour.__file__}, "rumour.py:Name, .* got '.*rumour.py': known are Rumour"),
        ({"world": f"{__name__}:MADE"}, ":Name, .*MADE': known are Rumour"),
        ({"world": "Rumour"}, "file.py:Name or the name of a world, .* mean 'rumour'"),
        ({"world": "missing.py:World"}, "there is no such file"),
        ({"seed": 2**60}, "field 'seed': must be a whole number from -9,007"),
        ({"rounds": 0}, "field 'rounds': must be a whole number from 1 to"),
        ({"agents": "0"}, "must be a whole number from 1 to .* got 0"),
        ({"agents": "2.5"}, "must be a whole number from 1 to .* got 2.5"),
        ({"agents": 2.5}, "must be a whole number from 1 to .* got 2.5"),
        ({"agents": "people.txt"}, "people.txt: there is no such file"),
        ({"memory": "m"}, "field 'memory': is no argument of a run of <class .*Rumour"),
        ({"world": None}, "field 'world': must be a world, got None"),
        ({"world": Person}, "field 'world': must be a world, got <class"),
        ({"world": Rumour(), "parameters": {"friends": 4}}, "belong to the given Rumour: pass"),
        ({"parameters": [("friends", 4)]}, ".* must be a mapping, not list"),
        ({"treatments": "warning@2"}, r"must be a list of texts, such as \['warning@2'"),
        ({"reasoner": "qwen3:4b"}, "\\(pass model=...\\), got 'qwen3:4b'"),
    ],
)
def test_what_no_run_can_be_is_refused(arguments: dict[str, Any], problem: str) -> None:
    """What is no world, parameter, value, treatment or reasoner is refused by name."""
    with pytest.raises(InputError, match=problem):
        _ = Run(**{"world": Rumour, **arguments}).agents


def test_what_no_folder_can_keep_is_refused() -> None:
    """Own objects, and a class that no other process finds, are for a run that nobody keeps."""

    class Local(World[Person]):
        """Defined here only."""

    people = [Person() for _ in range(12)]
    for run, problem in (
        (Run(Local), "define it at the top of a module"),
        (Run(Rumour, people), "field 'agents': cannot be kept in a folder: pass a number or"),
        (Run(Rumour, 12, logger=LateLogger()), "field 'logger': cannot be kept in a folder"),
    ):
        with pytest.raises(InputError, match=problem):
            run.to_config()
