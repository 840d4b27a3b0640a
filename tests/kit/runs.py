"""Fixtures of runs of the feed with the log they wrote."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.agents import synthetic_population
from prism.social import Feed
from tests.kit.worlds import Done
from tests.kit.worlds import run_logged as run_world


@pytest.fixture
def run_logged(tmp_path: Path) -> Callable[..., Done]:
    """Return a function that runs and logs a feed, by default 60 agents for 4 rounds.

    Where neither parameters nor a world are given, the parameters are those of ``classic``.
    """
    return _runner(tmp_path)


@pytest.fixture(scope="session")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Return one run of 60 agents for 6 rounds, to read."""
    return _runner(tmp_path_factory.mktemp("logged"))(rounds=6)


def _runner(folder: Path) -> Callable[..., Done]:
    def run(
        agents: Any = None,
        posts: Any = (),
        *,
        seed: int = 0,
        world: Feed | None = None,
        parameters: Any = None,
        **options: Any,
    ) -> Done:
        if agents is None:
            population = synthetic_population(60, seed=seed)
            agents, posts = population.agents, population.posts
        feed = world or Feed(first_posts=posts, **(parameters or {"preset": "classic"}))
        return run_world(folder, feed, agents, **{"seed": seed, "rounds": 4, **options})

    return run
