"""Whole simulations of the feed without a model, small and large, with the log written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from prism import Run
from prism.agents import synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from prism.social.parameters import DEFAULT_PRESET
from tests.benchmarks.harness import Claim, Effort, Measurement, Table, ratio

SMALL, ROUNDS, TICKS = 100, 10, 12
LEAST_RATE, LEAST_RATE_OF_DEFAULT, MOST_GROWTH = 100_000.0, 90_000.0, 1.25
_TURNS_SAVED = 8


def run(effort: Effort) -> Sequence[Table]:
    """Run ``classic`` with few and many agents in turns, and the default preset."""
    many, runs = 10 * effort.agents, max(1, effort.agents // 100)
    costs: dict[str, list[float]] = {
        name: [] for name in (f"{SMALL} agents", f"{many:,} agents", DEFAULT_PRESET)
    }
    small, large, preset = costs.values()
    for seed in range(max(1, effort.repeats // _TURNS_SAVED)):
        # a run of few agents is short
        small.append(mean(_once(SMALL, number) for number in range(runs)))
        large.append(_once(many, seed))
        preset.append(_once(effort.agents, seed, DEFAULT_PRESET))

    found = [Measurement(name, tuple(turns)) for name, turns in costs.items()]
    growth = "many agents: how many times as long as few"
    claims = [
        *(_rate(each, LEAST_RATE) for each in found[:2]),
        *ratio(growth, found[1], found[0], at_most=MOST_GROWTH),
        _rate(found[2], LEAST_RATE_OF_DEFAULT),
    ]
    return [Table("simulation: one agent-tick", "µs", found[0].name, found, claims)]


def _rate(column: Measurement, least: float) -> Claim:
    best, middle = 1e6 / column.best, 1e6 / column.median
    return Claim(column.name, best, middle, "agent-ticks/s", at_least=least)


def _once(agents: int, seed: int, preset: str = "classic") -> float:
    """Return the microseconds of an agent-tick, from the first event until the log is closed."""
    population, clock = synthetic_population(agents, seed=seed), SimulatedClock()
    feed = Feed(first_posts=population.posts, preset=preset)
    options: Any = {"rounds": ROUNDS, "ticks": TICKS, "seed": seed, "clock": clock}
    with TemporaryDirectory() as directory:
        log = RunLog(Path(directory) / "events.jsonl", clock)
        simulation = Run(feed, population.agents, logger=log.logger, **options)
        simulation.prepare(log.logger)

        begin = perf_counter()
        totals = simulation.run().totals()
        log.close()
        taken = perf_counter() - begin

    return taken / totals["agent_ticks"] * 1e6
