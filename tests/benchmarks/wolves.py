"""Wolves, sheep and grass (Wilensky 1997), beside Mesa's own example: time, and the same curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from statistics import mean
from time import process_time

from mesa.examples.advanced.wolf_sheep.model import WolfSheep
from mesa.experimental.devs import ABMSimulator
from scipy.stats import ks_2samp

from prism import Run
from prism.statechart import Statechart
from prism.worlds import Agent, Space, World, during, measure, state
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table, ratio

SIDE, ROUNDS, REGROWTH = 51, 300, 30
MOST_OF_MESA = 1.3
MOST_APART = {60: 0.3, 5: 0.9}
"""Largest Kolmogorov-Smirnov distance of so many runs; two samples of one law exceed .3 in 1 %."""

Life = StrEnum("Life", ["ALIVE"])

Curves = tuple[list[float], ...]
"""How many sheep, wolves and grown cells there are after each round."""


class Animal(Agent):
    """Somebody who moves, eats, ages, and leaves or has offspring."""

    chart = Statechart(Life, [], initial=Life.ALIVE)
    energy: float = 0.0


class Sheep(Animal):
    """It eats grass, and keeps away from wolves."""


class Wolf(Animal):
    """It eats sheep."""


class Pasture(World[Sheep | Wolf]):
    """A torus whose animals go to one of four cells beside theirs; first the sheep, then wolves."""

    rounds = ROUNDS
    land: Space[Animal] = state(Space)
    grown_in: list[int] = state(list)
    beside: list[list[int]] = state(list)

    def populate(self, agents: int) -> list[Sheep | Wolf]:
        """Return two sheep for every wolf."""
        wolves = agents // 3
        return [
            *(Sheep(energy=8 * self.random.random()) for _ in range(agents - wolves)),
            *(Wolf(energy=40 * self.random.random()) for _ in range(wolves)),
        ]

    def setup(self) -> None:
        """Let half of the grass be grown, and animals be anywhere."""
        cells = range(SIDE**2)
        self.land = Space(SIDE, SIDE, wraps=True, capacity=None)
        self.beside = [
            [up * SIDE + x, down * SIDE + x, y * SIDE + left, y * SIDE + right]
            for y, x in (divmod(cell, SIDE) for cell in cells)
            for up, down in [((y - 1) % SIDE, (y + 1) % SIDE)]
            for left, right in [((x - 1) % SIDE, (x + 1) % SIDE)]
        ]
        draw = self.random
        self.grown_in = [1 if draw.chance(0.5) else 1 + draw.index(REGROWTH) for _ in cells]
        for animal in self.agents:
            self.land.put(animal, self.random.index(len(cells)))

    async def tick(self) -> None:
        """Give turns to the sheep, then to the wolves."""
        await self.activate(self.agents.of(Sheep).shuffled())
        await self.activate(self.agents.of(Wolf).shuffled())

    @during(Life.ALIVE)
    def live(self, animal: Animal) -> None:
        """Move, eat, and die or have offspring."""
        is_sheep = type(animal) is Sheep
        (self.graze if is_sheep else self.hunt)(animal, self.beside[self.land.cells[animal]])
        if animal.energy < 0:
            animal.leave()
        elif animal.random.chance(0.04 if is_sheep else 0.05):
            animal.energy /= 2
            self.add(type(animal)(energy=animal.energy), at=animal)

    def graze(self, sheep: Animal, cells: Sequence[int]) -> None:
        """Go where no wolf is, if possible to grass, and eat."""
        safe = [cell for cell in cells if not self._in(cell, Wolf)]
        if safe:
            grown = [cell for cell in safe if self.grown_in[cell] <= self.round]
            self.land.put(sheep, sheep.random.choice(grown or safe))
        sheep.energy -= 1
        cell = self.land.cells[sheep]
        if self.grown_in[cell] <= self.round:
            sheep.energy += 4
            # in Mesa's, it grows back after the turns of that time
            self.grown_in[cell] = self.round + REGROWTH + 1

    def hunt(self, wolf: Animal, cells: Sequence[int]) -> None:
        """Go where sheep are, and eat one."""
        cell = wolf.random.choice([each for each in cells if self._in(each, Sheep)] or cells)
        self.land.put(wolf, cell)
        wolf.energy -= 1
        if prey := self._in(cell, Sheep):
            wolf.energy += 20
            wolf.random.choice(prey).leave()

    def _in(self, cell: int, kind: type[Animal]) -> list[Animal]:
        return [each for each in self.land.at(cell) if type(each) is kind]

    @measure
    def sheep(self) -> int:
        """Return the number of sheep."""
        return len(self.agents.of(Sheep))

    @measure
    def wolves(self) -> int:
        """Return the number of wolves."""
        return len(self.agents.of(Wolf))

    @measure
    def grown(self) -> int:
        """Return the number of cells with grass."""
        return sum(grown_in <= self.round for grown_in in self.grown_in)


def run(effort: Effort) -> list[Table]:
    """Run both with several seeds."""
    seeds = 60 if effort == FULL else 5
    columns: dict[str, Callable[[int], tuple[float, Curves]]] = {"prism": _prism, "Mesa": _mesa}
    runs = {name: [column(seed) for seed in range(seeds)] for name, column in columns.items()}
    times = [
        Measurement(name, tuple(seconds for seconds, _ in each)) for name, each in runs.items()
    ]
    ours, theirs = ([curves for _, curves in each] for each in runs.values())
    apart = [_apart([each[of] for each in ours], [each[of] for each in theirs]) for of in range(3)]
    names = ("sheep", "wolves", "grown cells")
    distances = [Measurement(name, (each,)) for name, each in zip(names, apart, strict=True)]
    claim = Claim("the largest", max(apart), max(apart), "", at_most=MOST_APART[seeds])
    title = f"{ROUNDS} rounds of wolves and sheep on {SIDE} by {SIDE} cells"

    return [
        Table(title, "s", "prism", times, ratio("time against Mesa", *times, at_most=MOST_OF_MESA)),
        Table(f"distance of means over rounds, {seeds} runs", "", "sheep", distances, [claim]),
    ]


def _apart(ours: Sequence[list[float]], theirs: Sequence[list[float]]) -> float:
    """Return the Kolmogorov-Smirnov distance of the runs' means after the first third."""
    means = [[mean(each[ROUNDS // 3 :]) for each in curves] for curves in (ours, theirs)]
    return float(ks_2samp(*means).statistic)


def _prism(seed: int) -> tuple[float, Curves]:
    run = Run(Pasture, 150, seed=seed)
    run.prepare(None)
    began = process_time()
    results = run.run()
    taken = process_time() - began
    return taken, tuple(
        [float(each or 0) for each in results.series(name)] for name in ("sheep", "wolves", "grown")
    )


def _mesa(seed: int) -> tuple[float, Curves]:
    simulator = ABMSimulator()
    model = WolfSheep(SIDE, SIDE, seed=seed, simulator=simulator)
    began = process_time()
    for _ in range(ROUNDS):
        simulator.run_for(1)
    taken = process_time() - began
    curves = model.datacollector.get_model_vars_dataframe()
    return taken, tuple([*curves[name]][1:] for name in ("Sheep", "Wolves", "Grass"))
