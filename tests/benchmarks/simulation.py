"""Whole simulations without a model, small and large, with the log written and without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from time import perf_counter

from prism import Run
from prism.agents import synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from prism.social._parameters import DEFAULT_PRESET
from tests.benchmarks.harness import Claim, Effort, Measurement, Table, ratio

SMALL = 100
ROUNDS, TICKS = 10, 12
LEAST_RATE, MOST_GROWTH = 100_000.0, 1.25
LEAST_RATE_OF_DEFAULT = 90_000.0
_TURNS_SAVED = 8


@dataclass(frozen=True, slots=True)
class Size:
    """A population to simulate.

    Args:
        agents: How many agents.
        runs: Runs of one turn, each with a seed of its own.
    """

    agents: int
    runs: int

    def __str__(self) -> str:
        """The name of its column."""
        return f"{self.agents:,} agents"


def run(effort: Effort) -> Sequence[Table]:
    """Run both sizes of ``classic``, with and without log, in turns; then the default preset."""
    sizes = (Size(SMALL, runs=max(1, effort.agents // 100)), Size(10 * effort.agents, runs=1))
    columns = [(size, logged) for logged in (True, False) for size in sizes]
    costs: dict[tuple[Size, bool], list[float]] = {column: [] for column in columns}
    for turn in range(max(1, effort.repeats // _TURNS_SAVED)):
        for size, logged in columns[turn % len(columns) :] + columns[: turn % len(columns)]:
            costs[size, logged].append(_average(size, logged=logged))
    return [_times(sizes, costs), _default_preset(effort)]


def _times(sizes: tuple[Size, Size], costs: dict[tuple[Size, bool], list[float]]) -> Table:
    found = [
        Measurement(f"{size}, {'log written' if logged else 'no log'}", tuple(turns))
        for (size, logged), turns in costs.items()
    ]
    small, large = found[:2]
    claims = [_rate(small), _rate(large)]
    claims += ratio(
        f"{sizes[1]}: how many times as long as {sizes[0]}", large, small, at_most=MOST_GROWTH
    )
    claims += ratio("the same without log", found[3], found[2])
    return Table("simulation: one agent-tick", "µs", small.name, found, claims)


def _rate(column: Measurement, at_least: float = LEAST_RATE) -> Claim:
    return Claim(
        column.name, 1e6 / column.best, 1e6 / column.median, "agent-ticks/s", at_least=at_least
    )


def _default_preset(effort: Effort) -> Table:
    """Return what the default preset costs, with the log written."""
    turns = range(max(1, effort.repeats // _TURNS_SAVED))
    taken = (_once(effort.agents, seed, preset=DEFAULT_PRESET, logged=True) for seed in turns)
    found = Measurement(DEFAULT_PRESET, tuple(taken))
    title = f"simulation: one agent-tick of the default preset, {effort.agents:,} agents, log"
    return Table(title, "µs", found.name, [found], [_rate(found, LEAST_RATE_OF_DEFAULT)])


def _average(size: Size, *, logged: bool) -> float:
    return mean(_once(size.agents, seed, logged=logged) for seed in range(size.runs))


def _once(agents: int, seed: int, *, logged: bool, preset: str = "classic") -> float:
    """Return the microseconds of an agent-tick, from the first event until the log is closed."""
    population, clock = synthetic_population(agents, seed=seed), SimulatedClock()
    with TemporaryDirectory() as directory:
        log = RunLog(Path(directory) / "events.jsonl", clock) if logged else None
        simulation = Run(
            Feed(first_posts=population.posts, preset=preset),
            population.agents,
            rounds=ROUNDS,
            ticks=TICKS,
            seed=seed,
            logger=None if log is None else log.logger,
            clock=clock,
        )
        simulation.prepare(None if log is None else log.logger)
        begin = perf_counter()
        totals = simulation.run().totals()
        if log is not None:
            log.close()
        taken = perf_counter() - begin
    return taken / totals["agent_ticks"] * 1e6
