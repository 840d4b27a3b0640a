"""What a command says of a fault in a user's own code."""

from pathlib import Path

import pytest

from tests.kit.commands import Prism

WORLDS = """from enum import StrEnum
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, small_world


class Mood(StrEnum):
    GOOD = "good"


class Person(Agent):
    chart = Statechart(Mood, [Transition("stays", Mood.GOOD, Mood.GOOD)], Mood.GOOD)


class Divides(World[Person]):
    async def tick(self):
        await self.activate(self.agents)

    @during(Mood.GOOD)
    def live(self, person: Person) -> None:
        if self.round == 2:
            half(person)


class Connects(World[Person]):
    def setup(self) -> None:
        self.network = small_world(self, 3, 0)


def half(person: Person) -> float:
    return 1 / 0


class Forgets(World[Person]):
    @during(Mood.GOOD)
    async def live(self, person: Person) -> None:
        person.decide("stays")
"""


@pytest.mark.parametrize(
    ("world", "status", "lines"),
    [
        (
            "Divides",
            1,
            [
                "prism: town_divides.py:30, in half: ZeroDivisionError: division by zero",
                "  return 1 / 0",
                "  in the step of <Person person_1 in good>, round 2, tick 1",
                "  correct it and try again; prism --traceback COMMAND shows the full traceback",
            ],
        ),
        (
            "Connects",
            2,
            [
                "prism: town_connects.py:26, in Connects.setup: neighbours must be even, from 2 "
                "to 4, got 3",
                "  self.network = small_world(self, 3, 0)",
                "  in Connects.setup",
            ],
        ),
        ("Forgets", 0, ["prism: FILE:36: coroutine 'Agent.decide' was never awaited"]),
    ],
)
@pytest.mark.sampled(3)
def test_a_fault_is_reported_by_line_position_and_remedy(
    world: str, status: int, lines: list[str], prism: Prism
) -> None:
    """First the user's file and line, then agent, round and tick, then what to do."""
    file = f"town_{world.lower()}.py"
    (prism.folder / file).write_text(WORLDS)
    ran = prism("run", f"{file}:{world}", "--agents", "5", "--rounds", "3")
    assert ran.status == status
    # a warning of Python's has the whole path
    assert ran.err.replace(str(prism.folder / file), "FILE").splitlines() == lines


def test_all_that_was_called_is_shown_where_it_is_asked_for(prism: Prism) -> None:
    """``--traceback`` before a command shows what was called behind the fault."""
    (prism.folder / "town_traced.py").write_text(WORLDS)
    line = ("run", "town_traced.py:Divides", "--agents=5", "--rounds", "3")
    lines = prism("--traceback", *line).err.splitlines()
    assert lines[0].startswith("prism: town_traced.py:30, in half: ")
    assert "Traceback (most recent call last):" in lines
    assert any(str(Path("worlds", "_turns.py")) in line for line in lines)
    assert "Traceback (most recent call last):" not in prism(*line).err


def test_a_class_that_cannot_be_has_its_line(prism: Prism) -> None:
    """What is refused while a user's file is read names the line."""
    wrong = "\n\nclass Wrong(World[Person]):\n    round: int = 3\n"
    (prism.folder / "town_wrong.py").write_text(WORLDS + wrong)
    ran = prism("run", "town_wrong.py:Divides")
    assert ran.status == 2
    assert ran.err.startswith("prism: town_wrong.py:39, in <module>: Wrong.round would hide")
