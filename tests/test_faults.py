"""Faults in a user's own code: where they are, without the frames of whatever called it."""

import asyncio
import traceback
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import PrismError
from prism.examples.rumour import Rumour
from prism.worlds import Agent, World, draw, during, measure, small_world
from tests.kit.lamps import Lamp, Light

HERE = Path(__file__).name


def divided(number: float) -> float:
    """Fail, called by others."""
    return number / 0


class Listed(World[Lamp]):
    """A world in which the first lamp has the first turn."""

    async def tick(self) -> None:
        await self.activate(self.agents)


class Step(Listed):
    """A step that fails."""

    @during(Light.OFF)
    def step(self, lamp: Lamp) -> None:
        if self.round == 2 and lamp.agent_id == "lamp_2":
            divided(1)


class Waiting(Listed):
    """A step that fails when it has waited."""

    @during(Light.OFF)
    async def step(self, lamp: Lamp) -> None:
        await lamp.decide("pressed")
        divided(1)


class Hook(World[Lamp]):
    """A hook that is refused."""

    def tick_begins(self) -> None:
        self.agents[0].begin_in(Light.ON)


class Setup(World[Lamp]):
    """A setup that is refused."""

    def setup(self) -> None:
        self.network = small_world(self, 3, 0)


class Measure(World[Lamp]):
    """A measure that fails."""

    @measure
    def reached(self) -> float:
        return divided(1)


class Until(World[Lamp]):
    """An end that fails."""

    def until(self) -> bool:
        return self.round == 2 and divided(1) > 0


class Empty(Listed):
    """A step that chooses from nothing."""

    @during(Light.OFF)
    def step(self, lamp: Lamp) -> None:
        lamp.random.choice(self.agents[:0])


class Sleeping(World[Lamp]):
    """A step that waits for something else."""

    @during(Light.OFF)
    async def step(self, lamp: Lamp) -> None:
        await asyncio.get_running_loop().create_future()


class Drawn(Agent):
    """A field that fails."""

    chart = Lamp.chart
    trust: float = draw(lambda _random: divided(1))


class Field(World[Drawn]):
    """A world of such agents."""


class Library(Listed):
    """A step whose library fails."""

    @during(Light.OFF)
    def step(self, _lamp: Lamp) -> None:
        Path("/nowhere/at/all").read_text(encoding="utf-8")


class Text(World[Lamp]):
    """A measure that gives no number."""

    @measure
    def reached(self) -> Any:
        return "all"


IN_RUN = {
    Step: ("divided: return number / 0", "in the step of <Lamp lamp_2 in off>, round 2, tick 1"),
    Waiting: ("divided: return number / 0", "in the step of <Lamp lamp_1 in "),
    Hook: ("Hook.tick_begins: self.agents[0].begin_in", "in Hook.tick_begins, round 1, tick 1"),
    Setup: ("Setup.setup: self.network = small_world(self, 3, 0)", "in Setup.setup"),
    Measure: ("divided: return number / 0", "in Measure.reached, round 1"),
    Until: ("divided: return number / 0", "in Until.until, round 2, tick 1"),
    Empty: ("Empty.step: lamp.random.choice", "in the step of <Lamp lamp_1 in off>, round 1"),
    Sleeping: ("Sleeping.step: await asyncio", "in the step of <Lamp lamp_1 in off>, round 1"),
    Field: ("divided: return number / 0", "in Drawn.<lambda>"),
    Library: ("Library.step: Path(", "in the step of <Lamp lamp_1 in off>, round 1, tick 1"),
}


def fault_of(world: type[World[Any]]) -> Exception:
    """Return what a run of a world raises."""
    try:
        Run(world(), 3, rounds=3).run()
    except Exception as error:
        return error
    raise AssertionError(f"{world.__name__} did not fail")


@pytest.mark.parametrize("world", IN_RUN, ids=lambda world: world.__name__)
def test_a_fault_names_the_users_line_and_the_place_in_the_run(world: type[World[Any]]) -> None:
    """Notes have the user's file and line, then agent, round and tick.

    Between whoever called `run` and the user's code, the traceback has at most the door of prism.
    """
    error, (line, place) = fault_of(world), IN_RUN[world]
    notes = error.__notes__
    assert any(HERE in note and line in note for note in notes)
    assert any(note.startswith(place) for note in notes)
    assert not any("round 0" in note for note in notes)
    assert_short(error)


def assert_short(error: Exception) -> None:
    """Assert that a traceback has no line of what ran the world."""
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    assert len([name for name in frames if "prism/" in name and "tests" not in name]) <= 1
    assert isinstance(error, PrismError) or len(traceback.format_exception(error)) < 12


def test_a_measure_that_gives_no_number_has_its_line() -> None:
    """What a measure returned is refused with the file and line of the measure."""
    error = fault_of(Text)
    assert str(error).startswith(f"tests/{HERE}:")
    assert_short(error)


def test_a_choice_from_nothing_says_so() -> None:
    """The error is Python's own for an empty sequence, in words."""
    with pytest.raises(IndexError, match="nothing to choose from"):
        Run(Empty(), 3).run()


def test_what_a_library_called_stays() -> None:
    """The lines inside of the library that raised are there."""
    names = [frame.name for frame in traceback.extract_tb(fault_of(Library).__traceback__)]
    assert names.index("step") < names.index("read_text")


def test_the_example_worlds_are_code_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in a world to copy is told by its own line, as in a copy, and not by prism's."""
    monkeypatch.setattr("prism.examples.rumour.Mind", None)
    with pytest.raises(AttributeError) as caught:
        Run(Rumour(), 20, rounds=2).run()
    assert "rumour.py:" in caught.value.__notes__[0]
