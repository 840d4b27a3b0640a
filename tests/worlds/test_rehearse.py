"""Rehearsing worlds: planted faults are named, and good worlds pass."""

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
from tests.worlds.test_together import Pushing

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
    told: int = state(0, kept=False)
    {fields}

    def setup(self) -> None:
        {setup}

    @during({states})
    def step(self, person: Person) -> None:
        person.fire("stirs")
        {step}

    def helped(self, seen=[]) -> int:
        seen.append(1)
        return len(seen)

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
FIRST = "next((each for each in self.agents if len(each.met) < 2), person).met.append(1)"
REVERSED = (
    "populate = lambda _, number: [Person(agent_id=f'p{each}') for each in reversed(range(number))]"
)
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


def test_a_definition_that_is_refused_is_found_by_its_line(tmp_path: Path) -> None:
    """What cannot even be declared is a finding, with the file and the line that declare it."""
    (found,) = findings(
        tmp_path, fields="late: Any = Transition(None, Mood.CALM, Mood.KEEN, after=3)"
    )
    assert re.match(r".*planted\.py:\d+, in Planted: transition None: after needs a trigger", found)


def test_meanings_of_an_unknown_state_are_found(tmp_path: Path) -> None:
    """What no model would ever be told is a finding, with the state that may be meant."""
    (found,) = findings(tmp_path, fields="meanings: ClassVar = {'kene': 'wants it'}")
    assert "Planted.meanings has the unknown state 'kene' (did you mean Mood.KEEN?)" in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("self.share('kene')", "chart with the state 'kene' (did you mean Mood.KEEN?): there are"),
        ("self.agents.where(state=Other.GONE)", "chart with the state Other.GONE: there are Mood"),
    ],
)
def test_an_unknown_state_is_found_by_its_line(tmp_path: Path, step: str, told: str) -> None:
    """It would be nobody's state for a whole run; the rehearsal says where it is asked for."""
    (found,) = findings(tmp_path, step=step)
    assert told in found
    assert "STEP" in found


@pytest.mark.slow
def test_a_foreign_draw_is_found_by_its_line(tmp_path: Path) -> None:
    """The rehearsal names the line, so it does not refer to itself as a run does."""
    (found,) = findings(tmp_path, step="person.score = random.random()")
    assert found.startswith("round 1: STEP: the world draws from Python's own random")
    assert found.endswith("use agent.random in steps, and self.random in the world")


@pytest.mark.slow
def test_a_trigger_that_no_transition_has_is_found_by_its_line(tmp_path: Path) -> None:
    """A misspelled event would change nothing for a whole run; the rehearsal says where it is."""
    (found,) = findings(tmp_path, step='person.fire("stirrs")')
    problem = "no transition has the trigger 'stirrs'; did you mean 'stirs'?"
    assert found == f"round 1: STEP: UnknownTriggerError: {problem}"


@pytest.mark.slow
def test_neighbours_without_a_network_are_found(tmp_path: Path) -> None:
    """Nobody has any, so what a misspelt setup would have connected does nothing."""
    (found,) = findings(tmp_path, step="person.score += len(person.neighbours)")
    told = "in Planted.step: reads the neighbours of an agent, and without a network nobody has any"
    assert told in found
    assert findings(tmp_path, setup="self.network = ring(self, 2)", **CONNECTED) == []


@pytest.mark.slow
def test_several_faults_are_named_at_once(tmp_path: Path) -> None:
    """An order, a global and a class attribute are told apart, with round, place and mend."""
    order, counts, made = findings(
        tmp_path,
        imports="COUNTS = {}",
        step=f"COUNTS[person.agent_id] = COUNTS.get(person.agent_id, 0) + len({CHOICE})\n"
        "        Person.made += 1\n"
        "        person.score = COUNTS[person.agent_id] + Person.made / 10",
    )
    assert order.startswith("round 1: Person.score of person_1: is not the same in processes ")
    assert "it depends on the order of a set" in order
    assert "STEP" in order
    assert counts.startswith("round 2: planted.COUNTS: the global planted.COUNTS changes ")
    assert "declare a field with state(...)" in counts
    assert made.startswith("round 2: Person.made: the class attribute Person.made changes")


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
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
def test_a_good_world_passes() -> None:
    """A world that does everything a world can is the same in every process."""
    assert rehearse(Medley, 12, rounds=3) == []


def test_a_together_world_does_the_same_whoever_has_its_turn_first() -> None:
    """What several do to one comes in the order of their places, not of their turns."""
    assert rehearse(Pushing, 10, rounds=1) == []


FAULTS: dict[str, tuple[dict[str, str], str]] = {
    "a global": (
        {
            "imports": "COUNT = 0",
            "step": "global COUNT; COUNT += 1; person.score = COUNT",
        },
        "round 2: planted.COUNT: the global planted.COUNT changes",
    ),
    "a class attribute": (
        {"step": "Person.made += 1; person.score = Person.made"},
        "round 2: Person.made: the class attribute Person.made changes",
    ),
    "a default of a method": (
        {"step": "person.score = self.helped()"},
        "round 2: Planted.helped: the class attribute Planted.helped changes",
    ),
    "Python's random": (
        {"step": "person.score = random.random()"},
        "round 1: STEP: the world draws from Python's own random",
    ),
    "a generator of one's own": (
        {"imports": "OWN = random.Random(1)", "step": "person.score = OWN.random()"},
        "round 2: STEP: random.random() draws from a generator that is not kept",
    ),
    "numpy's global": (
        {"imports": "import numpy.random", "step": "person.score = float(numpy.random.random())"},
        "the world draws from numpy.random",
    ),
    "numpy's own generator": (
        {
            "imports": "import numpy\nOWN = numpy.random.default_rng(1)",
            "step": "person.score = float(OWN.random())",
        },
        "round 2: planted.OWN: the global planted.OWN changes",
    ),
    "the time": (
        {"step": "person.score = time.time()"},
        "round 1: STEP, seen in Person.score of person_1: time.time() gives a different answer",
    ),
    "the order of a set": (
        {"step": f"person.score = float(len({CHOICE}))"},
        "round 1: Person.score of person_1: is not the same in processes with different hash seeds",
    ),
    "who is last in a together world": (
        {
            "fields": "together = True; last: Agent | None = state(None)",
            "step": "self.last = person",
        },
        "round 1: last of the world: is not the same when the last agent has its turn first",
    ),
    "the first in the list": (
        {"step": FIRST},
        "round 1: Person.met of person_1: is not the same when loops go through the agents from",
    ),
    "a draw from a list of the agents": (
        {"step": "person.random.choice([*self.agents]).met.append(1)"},
        "is not the same when loops go through the agents from",
    ),
    "draws of the world in a loop": (
        {"step": "for each in self.agents: each.score += self.random.random()"},
        "draw for each agent from its own random, break ties by agent_id, or set",
    ),
    "a uuid": (
        {"imports": "import uuid", "step": "person.score = float(uuid.uuid4().int % 999)"},
        "STEP, seen in Person.score of person_1: uuid.uuid4() gives a different answer",
    ),
    "a set of agents": (
        {"step": "person.near = next(iter(set(self.agents)))"},
        # by chance two processes may agree: then the resume differs, and says where sets are made
        "set",
    ),
    "a list shared by two agents": (
        {
            "setup": "both = []; self.agents[0].met = both; self.agents[1].met = both",
        },
        "round 1: Person.met of person_2 cannot be kept: it is the same list as in Person.met",
    ),
    "what no recall makes again": (
        {"step": "self.told += 1; person.score = self.told"},
        "round 2: Planted.told: state(kept=False) is not restored by recall(event)",
    ),
    "what fails after a resume only": (
        {
            "imports": "SEEN = {}",
            "step": "person.score = SEEN[1] if self.round > 1 else SEEN.setdefault(1, 2)",
        },
        "STEP fails after a resume: KeyError: 1",
    ),
    "what fails in a treatment": (
        {"treated": "1 / 0"},
        "round 2: TREATMENT: ZeroDivisionError: division by zero",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_each_planted_fault_is_named(name: str, tmp_path: Path) -> None:
    """Each fault alone is found, with its place, its round and nothing else."""
    planted, problem = FAULTS[name]
    found, *others = findings(tmp_path, **planted)
    assert problem in found
    # the order of addresses may differ in another way in each process
    assert not others or name == "a set of agents"


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted",
    [
        {"step": "self.agents.where(kind=Person).shuffled()[0].met.append(1)"},
        {"step": "self.agents.group('state')[person.state].sample(1)[0].met.append(1)"},
        {"step": "person.random.choice(self.agents).met.append(1)"},
        {"step": "person.score = sum(each.random.random() for each in self.agents)"},
        {"step": "self.random.choice(self.agents).met.append(1)"},
        {"fields": REVERSED, "step": "self.random.choice(self.agents).met.append(1)"},
        {"fields": REVERSED, "step": "person.random.sample(self.agents, 1)[0].met.append(1)"},
        {"fields": REVERSED, "step": "self.agents.where(kind=Person).sample(1)[0].met.append(1)"},
        {"fields": 'order = "listed"', "step": FIRST},
    ],
)
def test_who_is_drawn_from_the_agents_is_no_fault(planted: dict[str, str], tmp_path: Path) -> None:
    """Sets that are chosen from and drawn from pass, sums do, and lists whose order is declared."""
    assert findings(tmp_path, **planted) == []


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
