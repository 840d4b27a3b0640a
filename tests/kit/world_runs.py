"""Kept runs of worlds, to read."""

from pathlib import Path

import pytest

from prism import Run
from prism.examples import Market, Rumour


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with two kinds of agents, and events of its own."""
    folder = tmp_path_factory.mktemp("worlds") / "market"
    Run(Market, 20, rounds=12, seed=1).keep(folder)
    return folder


@pytest.fixture(scope="session")
def rumours(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the folders of two runs with other parameters and treatments."""
    parent = tmp_path_factory.mktemp("worlds")
    for friends, treated in ((4, "warning@3"), (8, "warning@5")):
        options = Run(
            Rumour, 30, rounds=10, seed=1, parameters={"friends": friends}, treatments=(treated,)
        )
        options.keep(parent / f"friends-{friends}")

    return sorted(parent.iterdir())
