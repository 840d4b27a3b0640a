"""``prism run`` as a user runs it."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import InputError
from prism.llm import Model
from prism.runs import RunFolder
from prism.testing import FakeOllama, Fault
from tests.kit.commands import Prism, signalled

pytestmark = pytest.mark.usefixtures("own_modules")

MINE = """
import time
from enum import Enum, StrEnum
from typing import Literal

from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, param, treatment

from own_rates import RATE

Mood = StrEnum("Mood", ["CALM", "KEEN"])


class Level(Enum):
    LOW = 1
    HIGH = 2


class Person(Agent):
    chart = Statechart(
        Mood,
        [Transition("stirs", Mood.CALM, Mood.KEEN), Transition("stirs", Mood.CALM, Mood.CALM)],
        Mood.CALM,
        name="mood",
        decision_states=[Mood.CALM],
    )
    trust: float = 0.5


class Mine(World[Person]):
    rounds = 4
    ticks = 2
    beta: float = param(0.3, "how fast", least=0, most=1)
    level: Level = Level.LOW
    mode: Literal["a", "b"] = "a"
    cap: int | None = None
    fast: bool = False
    pause: float = 0.0

    @during(Mood.CALM)
    async def step(self, person: Person) -> None:
        time.sleep(self.pause)
        odds = {Mood.KEEN: self.beta * RATE * person.trust, Mood.CALM: 1}
        await person.decide("stirs", weights=odds)

    @treatment
    def hurry(self) -> None:
        self.beta = 1.0

    @measure
    def keen(self) -> float:
        return self.share(Mood.KEEN)
"""


@pytest.fixture
def mine(prism: Prism) -> Prism:
    """Return the command line in a folder with a world of two files, and a table."""
    (prism.folder / "own_mine.py").write_text(MINE)
    (prism.folder / "own_rates.py").write_text("RATE = 0.9\n")
    (prism.folder / "people.csv").write_text("agent_id,trust,age\nann,0.9,31\nbo,0.1,44\n")
    return prism


def config_of(folder: Path) -> dict[str, Any]:
    """Return what run.json says that the run is."""
    return dict(json.loads((folder / "run.json").read_text())["config"])


def test_every_option_is_part_of_the_run(mine: Prism, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given on the command line is what is run; what is not is as the world says."""
    begun: list[Any] = []

    def carry_out(run: Run[Any], folder: RunFolder, **keeping: Any) -> None:
        begun.extend((run.to_config(), folder.path))
        raise InputError("enough")

    monkeypatch.setattr("prism.runs._running.carry_out", carry_out)
    monkeypatch.chdir(mine.folder)
    line = ("run", "own_mine.py:Mine", "--out", "run")
    given = (
        *("--set", "beta=0.7", "--set", "level=2", "--set", "cap=3", "--set", "fast=yes"),
        *("--treat", "hurry@2", "--agents", "people.csv", "--rounds", 3),
        *("--ticks", 5, "--seed", 4, "--reasoner", "ollama", "--model", "tiny"),
        *("--stop-at-fallbacks", "0.5"),
    )
    assert mine(*line, *given).err == "prism: enough\n"
    assert mine(*line).err == "prism: enough\n"
    run = Run(
        "own_mine.py:Mine",
        "people.csv",
        rounds=3,
        ticks=5,
        seed=4,
        parameters={"beta": 0.7, "level": 2, "cap": 3, "fast": True},
        treatments=("hurry@2",),
        reasoner=Model("tiny", stop_at_fallbacks=0.5),
    )
    assert begun[:2] == [run.to_config(), Path("run")]
    assert begun[2] == Run("own_mine.py:Mine", 100, rounds=4, ticks=2).to_config()


def test_parameters_may_be_in_a_file_and_change_later(prism: Prism) -> None:
    """A value of the command line goes before the file's; a mistake of a file has its place."""
    file = prism.folder / "values.toml"
    file.write_text("friends = 4\ntiring = 0.5\n")
    small = ("run", "rumour", "--agents", 9, "--rounds", 2, "--parameters", "values.toml")
    more = ("--treat", "tiring=0.75@2", "--set", "tiring=0.25", "--out", "run")
    assert prism(*small, *more).status == 0
    config = json.loads((prism.folder / "run" / "run.json").read_bytes())["config"]
    assert config["parameters"] == {"friends": 4, "rewired": 0.1, "tiring": 0.25}
    log = (prism.folder / "run" / "events.jsonl").read_text()
    assert '"parameters":{"tiring":0.75}' in log

    file.write_text("friends = 4\nrewird = 3\n")
    said = prism(*small)
    assert said.status == 2
    assert "values.toml, line 2, field 'rewird': Rumour has no parameter 'rewird'" in said.err


def test_a_run_is_kept_and_shown(mine: Prism) -> None:
    """States, measures and counts are shown, and run.json and run.started have the parameters."""
    line = ("run", "own_mine.py", "--agents", 6, "--set", "cap=3", "--out", "run")
    ran = mine(*line)
    assert (ran.status, ran.err) == (0, "")
    rows = [row.split() for row in ran.out.splitlines()]
    results = json.loads((mine.folder / "run" / "run.json").read_text())["results"]
    for state in ("calm", "keen"):
        assert [state, *(str(each["states"][state]) for each in results["rounds"])] in rows
    assert ["keen", *(f"{each['measures']['keen']:.3g}" for each in results["rounds"])] in rows
    assert ["decisions", "asked", f"{results['totals']['decisions_asked']}"] in rows
    assert "Every transition is in run/events.jsonl" in ran.out

    config = config_of(mine.folder / "run")
    parameters = {"beta": 0.3, "level": 1, "mode": "a", "cap": 3, "fast": False, "pause": 0.0}
    started = json.loads((mine.folder / "run" / "events.jsonl").read_text().partition("\n")[0])
    assert config["parameters"] == started["parameters"] == parameters
    assert list(config["inputs"]) == ["own_mine.py"]

    again = mine(*line[:-1], "other", "--json")
    assert again.out == (mine.folder / "other" / "run.json").read_text()


def test_a_replay_writes_the_same_log(mine: Prism) -> None:
    """The decisions of an earlier run make the same run again."""
    line = ("run", "own_mine.py", "--agents", "people.csv")
    assert mine(*line, "--out", "run").status == 0
    assert mine("replay", "run", "--out", "again").status == 0
    logs = [(mine.folder / name / "events.jsonl").read_bytes() for name in ("run", "again")]
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (("--set", "beta=2"), "--set: Mine.beta: Input should be less than or equal to 1, got '2'"),
        (("--set", "btea=1"), "Mine has no parameter 'btea': it has the parameters beta, level,"),
        (("--set", "beta"), "--set must be NAME=VALUE, got 'beta'"),
        (("--set", "cap=1", "--set", "cap=2"), "--set has 'cap' twice: '1' and '2'"),
        (("--treat", "hury@2"), "Mine has no treatment 'hury': it has hurry"),
        (("--treat", "hurry"), "treatment 'hurry' needs its round: write hurry@4"),
        (("--goal", "x"), "--goal is for single agents, in YAML or thinking"),
    ],
)
@pytest.mark.sampled(4)
def test_what_makes_no_run_is_refused_by_name(
    given: tuple[str, ...], problem: str, mine: Prism
) -> None:
    """Each mistake is one line with status 2, and nothing is written."""
    ran = mine("run", "own_mine.py:Mine", "--out", "run", *given)
    assert ran.status == 2
    assert problem in ran.err
    assert ran.err.count("\n") <= 2
    assert not (mine.folder / "run").exists()


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(mine: Prism) -> None:
    """A run that is killed is told by status, and resumed; a changed file is reported."""
    line = ("run", "own_mine.py", "--agents", "people.csv")
    line += ("--rounds", "12")
    assert mine(*line, "--out", "whole").status == 0

    first = signalled(signal.SIGKILL, 3)
    assert mine.run(*line, "--out", "killed", first=first).status == -signal.SIGKILL
    assert "prism resume killed" in mine("status", "killed").out
    world = mine.folder / "own_mine.py"
    text = world.read_text()
    world.write_text(f"{text}# changed\n")
    resumed = mine("resume", "killed")
    assert (resumed.status, "own_mine.py: has changed" in resumed.err) == (0, True)
    logs = [(mine.folder / name / "events.jsonl").read_bytes() for name in ("killed", "whole")]
    assert logs[0] == logs[1]


def test_a_model_that_fails_is_told_by_its_reasons(mine: Prism) -> None:
    """Fallbacks are counted by reason and server, in the tables and in run.json, also resumed."""
    with FakeOllama(models=["tiny"]) as server:
        server.fail_always(Fault.status(400, "no"))
        ran = mine(
            *("run", "own_mine.py", "--agents", 5, "--rounds", 2, "--out", "run"),
            *("--reasoner", "ollama", "--model", "tiny", "--mode", "chat", "--host", server.host),
        )
    assert ran.status == 1
    totals = json.loads((mine.folder / "run" / "run.json").read_text())["results"]["totals"]
    ((group, count),) = totals["fallbacks"].items()
    assert count == totals["decisions_asked"] == 5
    assert group.endswith(f" at {server.host}")
    shown = " ".join(ran.out.split())
    assert f"Fallback taken 5 x: {group}, such as: " in shown

    ended = json.loads(next(line for line in log_of(mine.folder) if b"round.ended" in line))
    assert [*ended["fallbacks"]] == [group]


def log_of(folder: Path) -> list[bytes]:
    """Return the lines of a run's log."""
    return (folder / "run" / "events.jsonl").read_bytes().splitlines()


def test_a_run_ends_where_too_many_decisions_fall_back(
    mine: Prism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that fails ends the run of a world, too, and says how it goes on."""
    monkeypatch.setattr("prism.reasoner._router.WINDOW", 10)
    with FakeOllama(models=["tiny"]) as server:
        server.fail_always(Fault.status(400, "no"))
        ran = mine(
            *("run", "own_mine.py", "--agents", 12, "--rounds", 1),
            *("--reasoner", "ollama", "--model", "tiny", "--mode", "chat", "--host", server.host),
            *("--out", "run"),
        )
    assert ran.status == 1
    assert "continue with: prism resume run" in ran.err
