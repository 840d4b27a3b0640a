"""A run of a world as options, and as what run.json says of it."""

import json
import subprocess
import sys
import time
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from prism import Run, replay
from prism.errors import InputError
from prism.examples import Rumour
from prism.examples.rumour import Person
from prism.llm import Model
from prism.programs.thinking import Config
from prism.telemetry.loggers import LateLogger
from prism.testing import FakeOllama
from prism.worlds import World
from tests.kit.worlds import run_in

CHILD = """
import os, signal, sys
from pathlib import Path
from prism import Run, resume

folder, doomed = Path("run"), int(sys.argv[1])

def on_round(summary):
    if summary.number == doomed:
        os.kill(os.getpid(), signal.SIGKILL)

if (folder / "run.json").exists():
    resume(folder, on_round=on_round)
else:
    options = Run("mine.py:Mine", 12, seed=1, rounds=6, parameters={"plan": "7"})
    options.keep(folder, on_round=on_round)
"""

MINE = """
from {module} import {name}

class Mine({name}):
    plan: int = 0
"""


def write_world(folder: Path, address: str = "tests.kit.medley:Medley") -> None:
    """Write a world of one's own, which derives from another, into a file."""
    module, name = address.split(":")
    (folder / "mine.py").write_text(MINE.format(module=module, name=name))


def child(folder: Path, doomed: int) -> int:
    """Run a world of a file in a process of its own, which kills itself after a round."""
    line = [sys.executable, "-c", CHILD, str(doomed)]
    return subprocess.run(line, cwd=folder, timeout=120).returncode


@pytest.mark.slow
def test_a_killed_run_of_a_file_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """Processes that are killed after one round and another leave what one alone leaves."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        write_world(folder)
    assert child(whole, 0) == 0
    assert [child(killed, doomed) for doomed in (1, 4, 5, 0)] == [-SIGKILL] * 3 + [0]
    for name in ("events.jsonl", "run.json"):
        assert (killed / "run" / name).read_bytes() == (whole / "run" / name).read_bytes()


@pytest.mark.long
@pytest.mark.parametrize(
    "world",
    [
        "tests.kit.medley:Medley",
        "tests.social.test_feed:Warned",
    ],
)
def test_a_run_that_is_killed_at_any_instant_goes_on_to_the_same_bytes(
    world: str, tmp_path: Path
) -> None:
    """A process that is killed again and again, whatever it does just then, loses nothing."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        write_world(folder, world)
    assert child(whole, 0) == 0

    summary = killed / "run" / "run.json"
    seconds = 0.2
    while not (summary.exists() and b'"results"' in summary.read_bytes()):
        with subprocess.Popen([sys.executable, "-c", CHILD, "0"], cwd=killed) as run:
            time.sleep(seconds)
            run.kill()
        seconds += 0.07

    for name in ("events.jsonl", "run.json"):
        assert (killed / "run" / name).read_bytes() == (whole / "run" / name).read_bytes()


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
        ({"world": "nowhere:World"}, "there is no module 'nowhere'"),
        ({"world": "prism.examples.rumour:Rumor"}, "no world or agent 'Rumor'"),
        ({"world": "Rumour"}, "must be package.module:Name, file.py:Name or one of"),
        ({"world": "missing.py:World"}, "there is no such file"),
        ({"parameters": {"tirng": "1"}}, "'parameters': Rumour has no parameter 'tirng'"),
        ({"parameters": {"friends": "many"}}, "Rumour.friends: .* got 'many'"),
        ({"seed": 2**60}, "between"),
    ],
)
def test_what_no_run_can_be_is_refused(arguments: dict[str, Any], problem: str) -> None:
    """An unknown world, parameter or value is refused by name."""
    with pytest.raises(InputError, match=problem):
        _ = Run(**{"world": Rumour, **arguments}).agents


def test_a_world_in_a_function_is_refused() -> None:
    """A class that no other process finds cannot be kept."""

    class Local(World[Person]):
        """Defined here only."""

    with pytest.raises(InputError, match="define it at the top of a module"):
        Run(Local).to_config()


@pytest.mark.parametrize("missing", ["world", "agents", "parameters"])
def test_a_damaged_configuration_is_refused(missing: str, tmp_path: Path) -> None:
    """A configuration without one of its keys is refused by that key."""
    config = Run(Rumour).to_config()
    del config[missing]
    with pytest.raises(InputError, match=missing):
        Run.from_config(config, tmp_path / "run.json")


def test_an_agent_in_a_file_is_run_as_a_world_is(tmp_path: Path) -> None:
    """`Run` takes an agent in YAML, with its variables as parameters, and keeps and repeats it."""
    file = tmp_path / "agent.yaml"
    file.write_text(
        "steps: [{name: add, code: \"total = context['total'] + 1\"}]", encoding="utf-8"
    )
    outcome = Run(str(file), rounds=3, parameters={"total": 4}, agent_id="Ada").keep(
        tmp_path / "kept"
    )
    assert outcome.results.agent_id == "Ada"
    assert outcome.results.final["context"]["total"] == 7
    assert replay(tmp_path / "kept").results == outcome.results


def test_a_thinking_agent_in_a_file_is_run_as_a_world_is(tmp_path: Path) -> None:
    """`Run` takes a thinking agent with its memory; files may be given as texts."""
    file = tmp_path / "config.json"
    file.write_text(Config().to_json(), encoding="utf-8")
    with FakeOllama(write=lambda *_: "<next_state>thinking</next_state>") as server:
        model = Model("llama3.2", hosts=[server.url])
        run = Run(file, rounds=2, memory=str(tmp_path / "memory.json"), model=model)
        assert run.run().turns == 2
    assert (tmp_path / "memory.json").exists()


@pytest.mark.parametrize(
    ("given", "field"), [({"agents": 5}, "agents"), ({"treatments": ["warning@2"]}, "treatments")]
)
def test_what_is_for_a_world_is_refused_for_an_agent_alone(
    given: dict[str, Any], field: str
) -> None:
    """The argument is named, before the file is read."""
    with pytest.raises(InputError, match=r"is for a world, and agent\.yaml is run alone") as raised:
        Run("agent.yaml", **given)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("world", "given", "problem"),
    [
        (None, {}, "field 'world': must be a world, got None"),
        (Person, {}, "field 'world': must be a world, got <class"),
        (Rumour(), {"parameters": {"friends": 4}}, "belong to the given Rumour: pass the class"),
        (
            Rumour,
            {"parameters": [("friends", 4)]},
            ".* must be a mapping, not list",
        ),
        (Rumour, {"treatments": "warning@2"}, r"must be a list of texts, such as \['warning@2'"),
        (Rumour, {"reasoner": "qwen3:4b"}, "a model is passed as model=...; got 'qwen3:4b'"),
    ],
)
def test_what_a_run_cannot_take_is_refused(world: Any, given: dict[str, Any], problem: str) -> None:
    """What is no world, parameter, treatment or reasoner is told before anything begins."""
    with pytest.raises(InputError, match=problem):
        Run(world, 12, **given)


def test_what_no_folder_can_keep_is_refused() -> None:
    """Own objects are for a run that nobody keeps."""
    people = [Person() for _ in range(12)]
    with pytest.raises(InputError, match="field 'agents': are objects, which another process"):
        Run(Rumour, people).to_config()
    with pytest.raises(InputError, match="field 'logger': is only for a run that is not kept"):
        Run(Rumour, 12, logger=LateLogger()).to_config()


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    """Agents, seeds, rounds and parameters may come from numpy, and a run with them is kept."""
    numpy = pytest.importorskip("numpy")
    values = {"tiring": numpy.float32(0.25), "friends": numpy.int64(4)}
    run = Run(
        "rumour", numpy.int64(30), seed=numpy.int64(4), rounds=numpy.int64(3), parameters=values
    )
    plain = {"tiring": 0.25, "friends": 4}
    same = Run("rumour", 30, seed=4, rounds=3, parameters=plain).keep(tmp_path / "same")
    assert run.keep(tmp_path / "run").results.series("reached") == same.results.series("reached")
