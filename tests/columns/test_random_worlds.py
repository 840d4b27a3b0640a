"""Worlds made at random, of all that a step may say, are the same in both engines."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from textwrap import indent
from typing import Any

import pytest

from tests.columns.same import require_same
from tests.columns.written import loaded
from tests.kit.interpreted import machine_of

_WAYS = ("", "order = 'listed'", "together = True", "activation = 'one'", "activation = 'pair'")

_SOURCE = """
import math
from enum import StrEnum
from prism.statechart import Statechart, Transition
from prism.worlds import *

Mind = StrEnum("Mind", ["A", "B", "C"])
STATES = list(Mind)

def is_rich(agent, context):
    if context is not None and context.age > agent.age:
        return True
    return agent.money > {bound}

class Person(Agent):
    chart = Statechart(Mind, [{transitions}], initial=Mind.A, name="mind",
        decision_states=[{deciding}]{timeouts})
    money: float = state(uniform(0, 10))
    age: int = state(whole(1, 90))
    is_glad: bool = state(False)
    mood: Mind = state(Mind.B)

class Town(World[Person]):
    rounds = 3
    ticks = 3
    {way}
    rate: float = 0.4
    heat: float = state(0.0)
    which: int = 0

    def setup(self):
        self.network = {network}
        for person in self.agents[::3]:
            person.begin_in(STATES[person.random.index(3)])

    def tick_begins(self):
        self.heat = self.random.random()
        self.agents[self.tick].fire("go", self.agents[0])

    def wealth(self, person, more):
        if more > 1.0:
            return person.money * self.rate
        return more + self.heat

    @measure
    def rich(self):
        return self.agents.mean("money")
"""


class Writer:
    """Writes steps.

    Args:
        draw: Draws what they say.
        is_together: Whether agents change themselves alone.
        weighs: Whether decisions may have weights, for which every state must be a decision state.
    """

    def __init__(self, draw: Random, others: str, *, is_together: bool, weighs: bool) -> None:
        self.draw = draw
        self.weighs = weighs
        self.is_together = is_together
        self.others = others
        self.number = 0
        self.waits = False

    def person(self) -> str:
        return self.draw.choice(["person", self.others or "person"])

    def whole(self, depth: int = 0) -> str:
        if depth > 1 or self.draw.random() < 0.3:
            options = [f"{self.person()}.age", "self.tick", str(self.draw.randint(-5, 5))]
            options += [f"{self.person()}.ticks_in_state", "person.random.index(7)"]
            options += ["person.neighbours.count(Mind.B)", "len(person.neighbours)"]
            return self.draw.choice(options)
        one, other = self.whole(depth + 1), self.whole(depth + 1)
        way = self.draw.choice(["{} + {}", "{} - {}", "{} * {}", "{} // ({} * 2 + 1)"])
        way = self.draw.choice([way, "{} % ({} * 2 + 1)", "min({}, {})", "abs({}) + {}"])
        return f"({way.format(one, other)})"

    def real(self, depth: int = 0) -> str:
        if depth > 1 or self.draw.random() < 0.3:
            options = [f"{self.person()}.money", "self.rate", "self.heat", "person.random.random()"]
            options += ["sum((o.money for o in person.neighbours), 0.0)", "self.share(Mind.A)"]
            options += ["person.random.between(0.5, 2.0)", "float(person.age)", "1.25"]
            return self.draw.choice(options)
        one, other = self.real(depth + 1), self.draw.choice([self.real, self.whole])(depth + 1)
        way = self.draw.choice(["{} + {}", "{} - {}", "{} / (1.5 + abs({}))", "max({}, float({}))"])
        more = ["{} % (0.5 + abs({}))", "{} // (0.5 + abs({}))", "abs({}) ** 0.5 + {}"]
        more += ["math.exp(-abs({})) + {}", "self.wealth(person, {}) * {}"]
        return f"({self.draw.choice([way, *more]).format(one, other)})"

    def truth(self, depth: int = 0) -> str:
        draw = self.draw
        way = draw.randrange(8 if depth < 2 else 5)
        word = draw.choice(["<", "<=", ">", "=="])
        return [
            lambda: f"{self.real(1)} {word} {self.real(1)}",
            lambda: f"{self.person()}.state is {draw.choice(['Mind.A', 'Mind.B'])}",
            lambda: f"person.random.chance({draw.random():.3f})",
            lambda: f"{self.person()}.mood in (Mind.A, Mind.C)",
            lambda: f"any(o.is_glad for o in person.neighbours if o.age {word} 40)",
            lambda: f"({self.truth(depth + 1)} and {self.truth(depth + 1)})",
            lambda: f"({self.truth(depth + 1)} or {self.truth(depth + 1)})",
            lambda: f"(not {self.truth(depth + 1)})",
        ][way]()

    def asked(self) -> str:
        self.waits = True
        whom, about = self.person(), self.draw.choice(["", ", person", ", None"])
        weights = ""
        if self.weighs and self.draw.random() < 0.8:
            # above 0 for all, as those of nobody are refused
            numbers = [f"{self.draw.random() + 0.01:.3f}" for _ in range(2)]
            weights = f", weights={{Mind.A: {numbers[0]}, Mind.B: {numbers[1]}, "
            weights += f"Mind.C: 0.5 + abs({self.real(1)}) % 1.0}}"
        return f'await {whom}.decide("{self.draw.choice(["go", "turn"])}"{about}{weights})'

    def statement(self, depth: int = 0) -> str:
        draw = self.draw
        whom = "person" if self.is_together else self.person()
        way = draw.randrange(9 if depth < 2 else 5)
        self.number += 1
        name = f"x{self.number}"
        if way == 0:
            return f"{whom}.money = ({self.real()}) % 100.0"
        if way == 1:
            return f"{whom}.age = ({self.whole()}) % 90"
        if way == 2:
            return f"{whom}.is_glad = {self.truth()}"
        if way == 3:
            return f'{self.person()}.fire("{draw.choice(["go", "turn"])}", {self.person()})'
        if way == 4:
            return f"{whom}.mood = {draw.choice(['Mind.A', 'Mind.C', 'person.state'])}"
        if way == 5:
            return f"if {self.truth()}:\n{self.block(depth)}\nelse:\n{self.block(depth)}"
        if way == 6:
            inner = Writer(draw, "third", is_together=self.is_together, weighs=self.weighs)
            body = "\n".join(inner.plain(2) for _ in range(2))
            return f"for third in person.neighbours:\n{indent(body, '    ')}"
        if way == 7:
            return f"{name} = {self.asked()}\nif {name} is Mind.B:\n{self.block(depth)}"
        return f"{name} = {self.truth()} and {self.asked()}\nif not {name}:\n{self.block(depth)}"

    def plain(self, depth: int) -> str:
        return self.statement(depth)

    def block(self, depth: int) -> str:
        count = self.draw.randint(1, 2)
        return indent("\n".join(self.statement(depth + 1) for _ in range(count)), "    ")


def source(seed: int, ways: int = 1) -> str:
    """Return the text of a world, whose steps do one of several things."""
    draw = Random(seed)
    way = draw.choice(_WAYS)
    states = ["Mind.A", "Mind.B", "Mind.C"]
    transitions = [
        # each event leads to each state from somewhere, as it has weights for all
        f'Transition("{trigger}", {one}, {draw.choice(states) if is_drawn else states[place - 1]}'
        + draw.choice([")", ")", ", guard=is_rich)"])
        for place, one in enumerate(states)
        for trigger in ("go", "turn")
        for is_drawn in (True, False)
    ]
    timeouts = ""
    if "pair" not in way and draw.random() < 0.6:
        transitions.append(f'Transition("timeout", Mind.B, {draw.choice(states)})')
        timeouts = ", timeouts={Mind.B: 2}"
    network = draw.choice(["small_world(self, 4, 0.3)", "random_graph(self, 0.2)", "ring(self, 2)"])
    weighs = draw.random() < 0.7
    deciding = states if weighs else draw.sample(states, draw.randint(1, 3))
    text = _SOURCE.format(
        bound=draw.randint(2, 8),
        transitions=", ".join(transitions),
        deciding=", ".join(deciding),
        timeouts=timeouts,
        way=way or "pass",
        network=network,
    )
    second = ", other" if "pair" in way else ""
    for number, state in enumerate(states):
        if draw.random() < 0.2 and number:
            continue
        others, is_together = second.strip(", "), "together" in way
        writer = Writer(draw, others, is_together=is_together, weighs=weighs)
        bodies = [
            "\n".join(writer.statement() for _ in range(draw.randint(1, 4))) for _ in range(ways)
        ]
        body = "\n".join(
            f"if self.which == {way}:\n{indent(each, '    ')}" for way, each in enumerate(bodies)
        )
        kind = "async def" if writer.waits else "def"
        text += f"\n    @during({state})\n    {kind} step{number}(self, person{second}):\n"
        text += indent(body, "        ") + "\n"

    return text


def check(seed: int, folder: Path, ways: int = 1) -> None:
    """Run a world in both engines, each way of its steps by itself."""
    world: Any = loaded(source(seed, ways), folder, f"world{seed}").Town
    for way in range(ways):
        require_same(world, 14, folder / str(way), seed=seed, parameters={"which": way})


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sampled(8)
def test_random_worlds_are_the_same(seed: int, tmp_path: Path, monkeypatch: Any) -> None:
    """Whatever is put together writes the same folder, carried out by Python itself."""
    monkeypatch.setattr("prism.columns._stage.machine_of", machine_of)
    check(seed, tmp_path)


@pytest.mark.parametrize(
    "seed",
    [pytest.param(n, marks=pytest.mark.long if n % 2 else pytest.mark.slow) for n in range(8)],
)
def test_random_worlds_are_the_same_when_compiled(seed: int, tmp_path: Path) -> None:
    """As machine code, some of them do."""
    check(seed, tmp_path)


@pytest.mark.long
def test_many_random_worlds_are_the_same(tmp_path: Path, monkeypatch: Any) -> None:
    """A thousand of them do, carried out by Python itself."""
    monkeypatch.setattr("prism.columns._stage.machine_of", machine_of)
    for seed in range(100, 1100):
        with TemporaryDirectory(dir=tmp_path) as folder:
            check(seed, Path(folder))


@pytest.mark.long
@pytest.mark.parametrize("first", range(100, 130, 3))
def test_machine_code_of_random_worlds_is_the_same(first: int, tmp_path: Path) -> None:
    """Machine code does, too: of thirty worlds with seven ways each, since compiling takes long."""
    program = (
        "from pathlib import Path\n"
        "from tests.columns.test_random_worlds import check\n"
        f"for seed in range({first}, {first + 3}):\n"
        f"    (folder := Path({str(tmp_path)!r}, str(seed))).mkdir()\n"
        "    check(seed, folder, ways=7)\n"
    )
    # in processes of their own, with a cache that cannot be written, so that nothing is kept
    environment = {**os.environ, "XDG_CACHE_HOME": os.devnull}
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        cwd=Path(__file__).parents[2],
        env=environment,
        timeout=1800,
    )
