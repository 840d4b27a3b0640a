"""Fixtures of the simulation's tests: runs with the log they wrote."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism.agents import synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.social import Parameters, Results, Simulation


@dataclass(frozen=True)
class LoggedRun:
    """A run that has ended."""

    simulation: Simulation
    results: Results
    log: bytes

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Return the log's events of these names, all of them without a name."""
        events = map(orjson.loads, self.log.splitlines())
        return [event for event in events if not names or event["event"] in names]


@pytest.fixture
def run_logged(tmp_path: Path) -> Callable[..., LoggedRun]:
    """Return a function that runs and logs a simulation, by default 60 agents for 6 rounds.

    Where neither parameters nor a world are given, the parameters are those of ``classic``.
    """
    numbers = count()

    def run(
        agents: Any = None, posts: Any = (), *, seed: int = 0, rounds: int = 6, **options: Any
    ) -> LoggedRun:
        if agents is None:
            population = synthetic_population(60, seed=seed)
            agents, posts = population.agents, population.posts
        if "world" not in options:
            options.setdefault("parameters", Parameters())
        clock = SimulatedClock()
        with RunLog(tmp_path / f"{next(numbers)}.jsonl", clock) as log:
            simulation = Simulation(
                agents, posts, seed=seed, rounds=rounds, logger=log.logger, clock=clock, **options
            )
            results = simulation.run()
        return LoggedRun(simulation, results, log.path.read_bytes())

    return run


@pytest.fixture
def logged(run_logged: Callable[..., LoggedRun]) -> LoggedRun:
    """Return one run of the default size."""
    return run_logged()
