"""Worlds in columns: what a tick of a million agents takes, and how much faster than objects."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from time import process_time
from typing import Any

from prism import Run
from prism.examples.epidemic import Epidemic
from prism.examples.rumour import Mind, Rumour
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, small_world
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table, ratio

States = StrEnum("States", [f"s{number}" for number in range(8)])
_AROUND = [*pairwise(States), (States.s7, States.s0)]
_ROUNDS = 20


class HotRumour(Rumour):
    """The rumour, with every twentieth spreading at first."""

    def setup(self) -> None:
        """Let more people know."""
        self.network = small_world(self, self.friends, self.rewired)
        for person in self.agents[::20]:
            person.begin_in(Mind.SPREADER)


class Drawing(Agent):
    """Somebody with eight states."""

    chart = Statechart(
        States, [Transition("goes", one, other) for one, other in _AROUND], States.s0, name="eight"
    )


class EverybodyDraws(World[Drawing]):
    """All draw in every tick, and a third moves."""

    @during(*States)
    def draw(self, agent: Drawing) -> None:
        """Move by chance."""
        if agent.random.chance(0.33):
            agent.fire("goes")


class Timed(Agent):
    """Somebody with eight states that time out."""

    chart = Statechart(
        States,
        [Transition("timeout", one, other) for one, other in _AROUND],
        States.s0,
        name="timed",
        timeouts=dict.fromkeys(States, 3),
    )


class TimeOutsAlone(World[Timed]):
    """Nobody does anything but time out."""


WORLDS: Sequence[tuple[type[World[Any]], dict[str, Any], float]] = (
    (HotRumour, {}, 60.0),
    (Epidemic, {"begun": 0.05}, 60.0),
    (EverybodyDraws, {}, 40.0),
    (TimeOutsAlone, {}, 15.0),
)
"""Worlds, parameters, and the most milliseconds that a tick may take on average."""


def run(effort: Effort) -> list[Table]:
    """Measure ticks of many agents, and both engines beside each other."""
    many, few = (1_000_000, 10_000) if effort == FULL else (10_000, 500)
    return [_ticks(many), *(_beside(world, given, few) for world, given, _ in WORLDS[:3])]


def _seconds(world: Any, agents: int, given: Any, *, columns: bool) -> float:
    run: Run[Any] = Run(
        world, agents, rounds=_ROUNDS, seed=1, columns=columns, parameters=given, log_agents=1
    )
    run.prepare(None)
    began = process_time()
    run.run()
    return process_time() - began


def _ticks(agents: int) -> Table:
    columns, claims = [], []
    for world, given, most in WORLDS:
        # compiled before it is measured
        _seconds(world, 100, given, columns=True)
        spent = _seconds(world, agents, given, columns=True) * 1000 / _ROUNDS
        columns.append(Measurement(world.__name__, (spent,)))
        text = f"a tick of {world.__name__}, {agents:,} agents"
        claims.append(Claim(text, spent, spent, "ms", at_most=most))

    title = f"a tick in columns, {agents:,} agents, CPU"
    return Table(title, "ms", columns[0].name, columns, claims)


def _beside(world: Any, given: Any, agents: int) -> Table:
    objects, columns = (
        Measurement(name, (_seconds(world, agents, given, columns=is_columns),))
        for name, is_columns in (("objects", False), ("columns", True))
    )
    text = f"{world.__name__}: objects take a multiple of the time of columns"
    claims = ratio(text, objects, columns, at_least=20.0)

    title = f"{world.__name__}, {agents:,} agents, {_ROUNDS} ticks, CPU"
    return Table(title, "s", columns.name, [columns, objects], claims)
