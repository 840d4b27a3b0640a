"""Compiled arithmetic gives Python's numbers, bit for bit."""

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.randomness import RandomStream
from prism.worlds import Run
from tests.columns.written import loaded

pytestmark = pytest.mark.slow

SIZE = 100_000

FORMS = {
    "power": "abs(x) ** y",
    "square": "x ** 2",
    "cube": "x ** 3.0",
    "folded": "x ** (1 + 1) + n ** (7 // 2 - 1) * 2 ** -1 + abs(x) ** (MOST / 4)",
    "root": "abs(x) ** 0.5",
    "exp": "math.exp(x)",
    "expm1": "math.expm1(x)",
    "log": "math.log(abs(x) + 1e-9)",
    "log1p": "math.log1p(abs(x))",
    "log10": "math.log10(abs(x) + 1e-9)",
    "sqrt": "math.sqrt(abs(x))",
    "sin": "math.sin(x)",
    "cos": "math.cos(x)",
    "tan": "math.tan(x)",
    "atan": "math.atan(x)",
    "sinh": "math.sinh(x)",
    "tanh": "math.tanh(x)",
    "asin": "math.asin(x / 50.0)",
    "quotient": "x / (y + 0.1)",
    "floor": "x // (y + 0.1)",
    "rest": "x % (y + 0.1)",
    "negative": "-x // (y + 0.1)",
    "sum": "x + y * 3.0 - x / 7.0",
    "least": "min(x, y, 0.0)",
    "most": "max(x, y)",
    "mixed": "x * n + n / 7",
    "whole": "float(n // 7 + n % 7 - n * 3)",
    "floored": "float(math.floor(x) + math.ceil(y) + int(x))",
}
WHOLE = list(FORMS)

_SOURCE = """
import math
from enum import StrEnum
from prism.statechart import Statechart, Transition
from prism.worlds import *

Mind = StrEnum("Mind", ["A"])
MOST = 3

class Person(Agent):
    chart = Statechart(Mind, [Transition("go", Mind.A, Mind.A)], Mind.A)
    x: float = state(uniform(-40, 40))
    y: float = state(uniform(0, 6))
    n: int = state(whole(-1000, 1000))
{fields}

class Town(World[Person]):
    rounds = 1

    @during(Mind.A)
    def compute(self, person):
        x, y, n = 0.0, 0.0, 0
{steps}
"""


def written() -> str:
    """Return a world that computes all forms."""
    fields = "\n".join(f"    f_{name}: float = state(0.0)" for name in WHOLE)
    steps = ["x = person.x", "y = person.y", "n = person.n"]
    steps += [f"person.f_{name} = {FORMS[name]}" for name in WHOLE]
    lines = "\n".join(f"        {each}" for each in steps)
    return _SOURCE.format(fields=fields, steps=lines).replace("        x, y, n = 0.0, 0.0, 0\n", "")


def bits(number: float) -> bytes:
    """Return the 64 bits of a float."""
    return struct.pack("<d", number)


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the agents of a run that computes all forms of 100,000 pairs of numbers."""
    world = loaded(written(), tmp_path_factory.mktemp("values"), "values").Town
    run: Run[Any] = Run(world, SIZE, columns=True, log_agents=1)
    run.run()
    return run.agents


@pytest.mark.parametrize("name", WHOLE)
def test_a_form_is_that_of_python(name: str, agents: Any) -> None:
    """Each form gives the same bits on 100,000 numbers."""
    form: Callable[..., float] = eval(f"lambda x, y, n: {FORMS[name]}", {"math": math, "MOST": 3})
    given = zip(agents.values("x"), agents.values("y"), agents.values("n"), strict=True)
    different = sum(
        bits(form(*each)) != bits(found)
        for each, found in zip(given, agents.values(f"f_{name}"), strict=True)
    )
    assert different == 0


def test_steps_draw_the_numbers_of_the_stream(tmp_path: Path) -> None:
    """What compiled steps draw is what `RandomStream` draws."""
    text = _SOURCE.format(fields="    f: float = state(0.0)", steps="")
    text = text.replace("x, y, n = 0.0, 0.0, 0", "person.f = person.random.random()")
    run: Run[Any] = Run(loaded(text, tmp_path, "drawn").Town, 1000, seed=3, columns=True)
    run.run()
    again: Run[Any] = Run(loaded(text, tmp_path, "again").Town, 1000, seed=3)
    again.run()
    assert run.agents.values("f") == again.agents.values("f")
    assert isinstance(run.agents[0].random, RandomStream)
