"""Rehearsing worlds: planted faults are found, and good worlds pass."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism.errors import InputError
from prism.worlds import World, rehearse
from tests.kit import processes
from tests.kit.medley import Medley
from tests.kit.worlds import SHIPPED

CODE = """
import random
import time
from enum import StrEnum
from typing import Any, ClassVar
{imports}
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, state, treatment

Mood = StrEnum("Mood", ["CALM", "KEEN"])
Other = StrEnum("Other", ["GONE"])


class Person(Agent):
    chart = Statechart(
        Mood,
        [Transition("stirs", Mood.CALM, Mood.KEEN), Transition("stirs", Mood.KEEN, Mood.CALM)],
        Mood.CALM,
    )
    score: float = state(0.0)
    near: Agent | None = state(None)
    met: list[int] = state(list)
    made: ClassVar[int] = 0


class Planted(World[Person]):
    rounds = 3
    {fields}

    def setup(self) -> None:
        {setup}

    @during({states})
    def step(self, person: Person) -> None:
        person.fire("stirs")
        {step}

    @treatment
    def warning(self) -> None:
        {treated}
"""
CONNECTED = {
    "imports": "from prism.worlds import ring",
    "step": "person.score += len(person.neighbours)",
}
PLAIN = {
    "imports": "",
    "fields": "",
    "setup": "pass",
    "states": "Mood.CALM, Mood.KEEN",
    "step": "pass",
    "treated": "pass",
}
CHOICE = "next(iter({'alpha', 'beta', 'gamma', 'delta', 'epsilon'}))"

pytestmark = pytest.mark.usefixtures("own_modules")


@pytest.fixture(autouse=True)
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each run fork a process that has imported prism; ``world check`` has them start."""
    forking = SimpleNamespace(
        Popen=processes.start, DEVNULL=subprocess.DEVNULL, PIPE=subprocess.PIPE
    )
    monkeypatch.setattr("prism.worlds._rehearse.subprocess", forking)


def findings(folder: Path, **planted: str) -> list[str]:
    """Plant faults in a world, and return what rehearsing it finds.

    The line of the step, and that of the treatment, are called STEP and TREATMENT.
    """
    code = CODE.format(**PLAIN | planted)
    (folder / "planted.py").write_text(code)
    lines = code.splitlines()
    step = lines.index('        person.fire("stirs")') + 2
    treatment = lines.index("    def warning(self) -> None:") + 2
    found = [str(each) for each in rehearse(f"{folder}/planted.py", 6)]

    return [
        each.replace(f"planted.py:{step}", "STEP").replace(f"planted.py:{treatment}", "TREATMENT")
        for each in found
    ]


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        (
            {"fields": "late: Any = Transition(None, Mood.CALM, Mood.KEEN, after=3)"},
            r".*planted\.py:\d+, in Planted: transition None: after needs a trigger",
        ),
        ({"fields": "meanings: ClassVar = {'kene': 'wants it'}"}, "the unknown state 'kene'"),
        ({"states": "Other.GONE"}, "Planted.step: steps during states that no agent's chart has"),
        ({"fields": "seen: dict[str, set[int]] = state(dict)"}, "Planted.seen: .* cannot be kept"),
        ({"fields": "met: list = []"}, "would be shared by all: use state"),
    ],
)
def test_what_declarations_show_is_told_without_a_run(
    planted: dict[str, str], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of no state, and fields that cannot be kept, are found in the class."""
    monkeypatch.setattr("prism.worlds._rehearse.subprocess.Popen", None)
    (found,) = findings(tmp_path, **planted)
    assert re.search(problem, found)


def test_wrong_input_is_no_finding(tmp_path: Path) -> None:
    """An unknown world or parameter is refused, as when it is run."""
    with pytest.raises(InputError, match="no parameter 'tirng'"):
        rehearse("rumour", parameters={"tirng": 1})


@pytest.mark.slow
def test_neighbours_without_a_network_are_found(tmp_path: Path) -> None:
    """Nobody has any, so what a misspelt setup would have connected does nothing."""
    (found,) = findings(tmp_path, step="person.score += len(person.neighbours)")
    told = "in Planted.step: reads the neighbours of an agent, and without a network nobody has any"
    assert told in found
    assert findings(tmp_path, setup="self.network = ring(self, 2)", **CONNECTED) == []


OTHERWISE = "round 1: Person.score of person_1: is not the same in two processes"
RESUMED = "round 2: Person.score of person_1: is not the same after a resume"
FAULTS: dict[str, tuple[dict[str, str], str]] = {
    "a global": (
        {"imports": "COUNT = 0", "step": "global COUNT; COUNT += 1; person.score = COUNT"},
        RESUMED,
    ),
    "a class attribute": ({"step": "Person.made += 1; person.score = Person.made"}, RESUMED),
    "Python's random": ({"step": "person.score = random.random()"}, OTHERWISE),
    "a generator of one's own": (
        {"imports": "OWN = random.Random(1)", "step": "person.score = OWN.random()"},
        RESUMED,
    ),
    "the time": ({"step": "person.score = time.time()"}, OTHERWISE),
    "the order of a set": ({"step": f"person.score = float(len({CHOICE}))"}, OTHERWISE),
    "a uuid": (
        {"imports": "import uuid", "step": "person.score = float(uuid.uuid4().int % 999)"},
        OTHERWISE,
    ),
    "a random event": (
        {"step": "self.log('drew', agent=person, number=random.random())"},
        "is not the same in two processes",
    ),
    "a list shared by two agents": (
        {"setup": "both = []; self.agents[0].met = both; self.agents[1].met = both"},
        "Person.met of person_2 cannot be kept: it is the same list as in Person.met",
    ),
    "what fails after a resume only": (
        {
            "imports": "SEEN = {}",
            "step": "person.score = SEEN[1] if self.round > 1 else SEEN.setdefault(1, 2)",
        },
        "round 2: STEP: fails there with KeyError: 1; it is not the same after a resume",
    ),
    "what fails in a treatment": (
        {"treated": "1 / 0"},
        "round 2: TREATMENT: ZeroDivisionError: division by zero",
    ),
    "an unknown state": (
        {"step": "self.share('kene')"},
        "round 1: STEP: UnknownStateError: no agent of Planted has a chart with the state 'kene'",
    ),
    "a trigger that no transition has": (
        {"step": 'person.fire("stirrs")'},
        "round 1: STEP: UnknownTriggerError: no transition has the trigger 'stirrs'",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_each_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    """Each fault is found with its place and its round, and nothing else is."""
    planted, problem = FAULTS[name]
    (found,) = findings(tmp_path, **planted)
    assert problem in found


@pytest.mark.slow
def test_a_good_world_passes() -> None:
    """A world that does everything a world can is the same in every process."""
    assert rehearse(Medley, 12, rounds=3) == []


@pytest.mark.slow
@pytest.mark.parametrize("world", SHIPPED)
def test_shipped_worlds_pass(world: type[World]) -> None:
    """Nothing is found in a world that ships."""
    assert rehearse(world, SHIPPED[world]) == []


@pytest.mark.slow
@pytest.mark.parametrize(("agents", "rounds", "seed"), [(60, 3, 2), (60, 2, 1)])
def test_the_feed_passes(agents: int, rounds: int, seed: int) -> None:
    """Readers who have found no news, and texts that nobody writes, are the same after a resume."""
    assert rehearse("feed", agents, rounds=rounds, seed=seed) == []
