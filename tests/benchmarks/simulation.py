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
from prism.social import PRESETS, Feed
from prism.social._parameters import DEFAULT_PRESET
from tests.benchmarks.harness import Claim, Effort, Measurement, Table, ratio

SMALL = 100
ROUNDS, TICKS = 10, 12
ROUNDS_OF_GROWTH = 3
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


@dataclass(frozen=True, slots=True)
class Cost:
    """The time of one agent-tick, and the work done in it.

    Args:
        microseconds: Time.
        transitions: Moves between states.
        decisions: Questions decided by the policy.
        lines: Lines of the log; 0 without one.
    """

    microseconds: float
    transitions: float
    decisions: float
    lines: float


def run(effort: Effort) -> Sequence[Table]:
    """Run both sizes of ``classic``, with and without log, in turns; then every preset."""
    sizes = (Size(SMALL, runs=max(1, effort.agents // 100)), Size(10 * effort.agents, runs=1))
    columns = [(size, logged) for logged in (True, False) for size in sizes]
    costs: dict[tuple[Size, bool], list[Cost]] = {column: [] for column in columns}
    for turn in range(max(1, effort.repeats // _TURNS_SAVED)):
        for size, logged in columns[turn % len(columns) :] + columns[: turn % len(columns)]:
            costs[size, logged].append(_average(size, logged=logged))
    return [_times(sizes, costs), _work(sizes, costs), _presets(effort), _growth(effort)]


def _times(sizes: tuple[Size, Size], costs: dict[tuple[Size, bool], list[Cost]]) -> Table:
    found = [
        Measurement(
            f"{size}, {'log written' if logged else 'no log'}",
            tuple(cost.microseconds for cost in turns),
        )
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


def _presets(effort: Effort) -> Table:
    """Return a table of all presets, the default one first, with the log written."""
    names = [DEFAULT_PRESET, *(name for name in PRESETS if name != DEFAULT_PRESET)]
    taken: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(max(1, effort.repeats // _TURNS_SAVED)):
        for name in names:
            cost = _once(effort.agents, seed, preset=name, logged=True)
            taken[name].append(cost.microseconds)

    found = [Measurement(name, tuple(times)) for name, times in taken.items()]
    title = f"simulation: one agent-tick of each preset, {effort.agents:,} agents, log written"

    return Table(title, "µs", names[0], found, [_rate(found[0], LEAST_RATE_OF_DEFAULT)])


def _growth(effort: Effort) -> Table:
    """Return a table of the default preset at three sizes, each ten times the one before.

    Few rounds are enough, as every size has the same: the largest would take many minutes.
    """
    found = []
    for agents in (effort.agents, 10 * effort.agents, 100 * effort.agents):
        cost = _once(agents, 0, preset=DEFAULT_PRESET, logged=True, rounds=ROUNDS_OF_GROWTH)
        found.append(Measurement(f"{agents:,} agents", (cost.microseconds,)))

    title = f"simulation: one agent-tick of {DEFAULT_PRESET}, the default preset, by size"

    return Table(title, "µs", found[0].name, found)


def _work(sizes: tuple[Size, Size], costs: dict[tuple[Size, bool], list[Cost]]) -> Table:
    """Return a table of the work in an agent-tick, which is the same in every turn."""
    first = {size: costs[size, True][0] for size in sizes}
    found = [
        Measurement(f"{size}, {what}", (getattr(first[size], what),))
        for what in ("transitions", "decisions", "lines")
        for size in sizes
    ]
    return Table("simulation: what happens in one agent-tick", "count", found[0].name, found)


def _average(size: Size, *, logged: bool) -> Cost:
    found = [_once(size.agents, seed, logged=logged) for seed in range(size.runs)]
    return Cost(*(mean(values) for values in zip(*map(_figures, found), strict=True)))


def _figures(cost: Cost) -> tuple[float, float, float, float]:
    return cost.microseconds, cost.transitions, cost.decisions, cost.lines


def _once(
    agents: int, seed: int, *, logged: bool, preset: str = "classic", rounds: int = ROUNDS
) -> Cost:
    """Time a run from its first event until its log is closed, without making the agents."""
    population, clock = synthetic_population(agents, seed=seed), SimulatedClock()
    with TemporaryDirectory() as directory:
        log = RunLog(Path(directory) / "events.jsonl", clock) if logged else None
        simulation = Run(
            Feed(first_posts=population.posts, preset=preset),
            population.agents,
            rounds=rounds,
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
        lines = 0 if log is None else log.path.read_bytes().count(b"\n")
    ticks = totals["agent_ticks"]
    return Cost(
        taken / ticks * 1e6,
        totals["transitions"] / ticks,
        totals["decisions_asked"] / ticks,
        lines / ticks,
    )
