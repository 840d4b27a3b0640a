"""Worlds of arrays: a million agents from nothing, beside worlds of objects, and the first use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

from prism import Run
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table, ratio
from tests.kit import crowds

ROUNDS = 60
MOST_SECONDS = {"rumour": 2.4, "epidemic": 2.0}
MOST_FIRST_USE = 0.1
MOST_OF_OBJECTS = 0.2
_ROOT = Path(__file__).parents[2]
_FIRST_USE = """
import numpy
from time import perf_counter
began = perf_counter()
from prism.arrays import ArrayChart, ArrayWorld
import enum, prism.statechart
Mood = enum.StrEnum("Mood", ["CALM"])
class World(ArrayWorld):
    chart = ArrayChart(Mood, [], Mood.CALM)
World(10).run()
print(perf_counter() - began)
"""


def run(effort: Effort) -> Sequence[Table]:
    """Run both models of both kinds in turns, in this process, and count CPU time."""
    agents, objects, turns = (1_000_000, 10_000, 5) if effort == FULL else (20_000, 500, 2)
    return [
        _table("rumour", agents, objects, turns, _rumour, crowds.RumourOfObjects),
        _table("epidemic", agents, objects, turns, _epidemic, crowds.EpidemicOfObjects),
        _first_use(effort.starts // 4),
    ]


def _rumour(agents: int, seed: int) -> crowds.Rumour:
    return crowds.Rumour(agents, seed=seed, begun=agents // 20, rounds=ROUNDS)


def _epidemic(agents: int, seed: int) -> crowds.Epidemic:
    return crowds.Epidemic(agents, seed=seed, rounds=ROUNDS)


def _table(
    name: str,
    agents: int,
    people: int,
    turns: int,
    make: Callable[[int, int], Any],
    of_objects: Any,
) -> Table:
    ours, theirs = [], []
    for turn in range(turns):
        began = process_time()
        make(agents, turn).run()
        between = process_time()
        begun = people // 20 if name == "rumour" else 0.05
        Run(of_objects(begun=begun), people, rounds=ROUNDS, seed=turn).run()
        ours.append((between - began) / agents / ROUNDS * 1e6)
        theirs.append((process_time() - between) / people / ROUNDS * 1e6)

    arrays, objects = Measurement("arrays", tuple(ours)), Measurement("objects", tuple(theirs))
    scale = agents * ROUNDS / 1e6
    claims = [
        Claim(
            f"{name}, {agents:,} agents, {ROUNDS} ticks from nothing",
            arrays.best * scale,
            arrays.median * scale,
            "s",
            at_most=MOST_SECONDS[name],
        ),
        *ratio(f"{name}, time of objects", arrays, objects, at_most=MOST_OF_OBJECTS),
    ]
    title = f"{name}: one agent-tick of {agents:,} in arrays and {people:,} objects, with setup"
    return Table(title, "us", objects.name, [arrays, objects], claims)


def _first_use(starts: int) -> Table:
    command = [sys.executable, "-c", _FIRST_USE]
    taken = [
        float(subprocess.run(command, check=True, cwd=_ROOT, capture_output=True).stdout)
        for _ in range(max(starts, 2))
    ]
    first = Measurement("first use of arrays, after numpy", tuple(taken))
    claim = Claim("first use of arrays", first.best, first.median, "s", at_most=MOST_FIRST_USE)
    return Table("first use of arrays", "s", first.name, [first], [claim])
