"""Worlds written to files by tests, since a step is compiled from its source."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

_HEAD = """
import math
from enum import StrEnum
from typing import Literal
from prism.statechart import Statechart, State, Transition
from prism.worlds import *

Mind = StrEnum("Mind", ["LOW", "HIGH"])
Mood = StrEnum("Mood", ["GLAD", "SAD"])
NUMBERS = [1, 2]
"""

_WORLD = """
class Person(Agent):
    chart = Statechart(
        Mind,
        [
            Transition("up", Mind.LOW, Mind.HIGH),
            Transition("up", Mind.LOW, Mind.LOW),
            Transition("down", Mind.HIGH, Mind.LOW),
        ],
        initial=Mind.LOW,
        name="mind",
        decision_states=[Mind.LOW],
    )
    money: float = state(uniform(0, 10))
    age: int = state(whole(1, 90))
    is_glad: bool = state(True)
    mood: Mood = state(Mood.GLAD)
    side: Literal["left", "right"] = state("left")
    note: str = ""
    seen: float = state(0.0)
    counted: int = state(0)

    @property
    def luck(self) -> int:
        return self.random.index(7)

class Town(World[Person]):
    rounds = 3
    ticks = 2
    rate: float = 0.4
    most: int = 3
    books: tuple[int, ...] = ()
    total: float = state(0.0)

    def setup(self) -> None:
        self.network = small_world(self, 4, 0.3)
        for person in self.agents[::3]:
            person.begin_in(Mind.HIGH)

    def helper(self, person: Person) -> float:
        return person.money / 2

    @during(Mind.LOW, Mind.HIGH)
    {kind} step(self, person: Person) -> None:
"""


def loaded(source: str, folder: Path, name: str = "written") -> Any:
    """Return a module whose text is in a file."""
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    unique = f"{name}_{abs(hash((source, str(folder))))}"
    spec = spec_from_file_location(unique, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[unique] = module
    spec.loader.exec_module(module)
    return module


def town(step: str, folder: Path, *, kind: str = "async def", more: str = "") -> Any:
    """Return a world whose step has a body."""
    body = indent(dedent(step).strip(), "        ")
    source = _HEAD + _WORLD.replace("{kind}", kind) + body + "\n" + indent(dedent(more), "    ")
    return loaded(source, folder).Town


def world(text: str, folder: Path) -> Any:
    """Return the world ``Town`` of a text."""
    return loaded(_HEAD + dedent(text), folder).Town
