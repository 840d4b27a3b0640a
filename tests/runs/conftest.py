"""Fixtures of the tests of run folders: a run that nothing disturbed, and one that was killed."""

from pathlib import Path

import pytest

from prism import Run
from tests.kit.kept import StoppedError, stop_after, tree


@pytest.fixture(scope="session")
def run() -> Run:
    """Return a short run without a model."""
    return Run("rumour", 10, rounds=5, seed=1)


@pytest.fixture(scope="module")
def whole(run: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes | None]:
    """Return what a run that nothing disturbed leaves behind."""
    path = tmp_path_factory.mktemp("whole")
    run.keep(path)
    return tree(path)


@pytest.fixture
def stopped(run: Run, tmp_path: Path) -> Path:
    """Return the folder of a run killed in its fourth round, with a torn line at the log's end."""
    path = tmp_path / "stopped"
    with pytest.raises(StoppedError):
        run.keep(path, on_round=stop_after(3))
    with (path / "events.jsonl").open("ab") as log:
        log.write(b'{"event":"round.started","timestamp":"2026-01-0')
    return path
