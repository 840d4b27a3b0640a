"""Fixtures of the simulation's tests: runs with the log they wrote."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run
from prism.agents import synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.worlds import WorldResults
from tests.kit.social import run_of_feed


@dataclass(frozen=True)
class LoggedRun:
    """A run that has ended."""

    simulation: Run[Any]
    results: WorldResults
    log: bytes

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Return the log's events of these names, all of them without a name."""
        events = map(orjson.loads, self.log.splitlines())
        return [event for event in events if not names or event["event"] in names]


@pytest.fixture
def run_logged(tmp_path: Path) -> Callable[..., LoggedRun]:
    """Return a function that runs and logs a simulation, by default 60 agents for 4 rounds.

    Where neither parameters nor a world are given, the parameters are those of ``classic``.
    """
    return _runner(tmp_path)


@pytest.fixture(scope="session")
def logged(tmp_path_factory: pytest.TempPathFactory) -> LoggedRun:
    """Return one run of 60 agents for 6 rounds, to read."""
    return _runner(tmp_path_factory.mktemp("logged"))(rounds=6)


def _runner(folder: Path) -> Callable[..., LoggedRun]:
    numbers = count()

    def run(
        agents: Any = None, posts: Any = (), *, seed: int = 0, rounds: int = 4, **options: Any
    ) -> LoggedRun:
        if agents is None:
            population = synthetic_population(60, seed=seed)
            agents, posts = population.agents, population.posts
        if "world" not in options:
            options.setdefault("parameters", {"preset": "classic"})
        clock = SimulatedClock()
        with RunLog(folder / f"{next(numbers)}.jsonl", clock) as log:
            simulation = run_of_feed(
                agents, posts, seed=seed, rounds=rounds, logger=log.logger, clock=clock, **options
            )
            results = simulation.run()
        return LoggedRun(simulation, results, log.path.read_bytes())

    return run
