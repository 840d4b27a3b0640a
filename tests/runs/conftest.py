"""Fixtures of the tests of run folders: a run that nothing disturbed, and one that was killed."""

from pathlib import Path

import pytest

from prism.runs import RunFolder
from tests.kit.dice import StoppedError, stop_after, throw_in, tree


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes | None]:
    """Return what a run that nothing disturbed leaves behind."""
    path = tmp_path_factory.mktemp("whole")
    throw_in(RunFolder.for_new(path))
    return tree(path)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Return the folder of a run killed in its fourth round, with a torn line at the log's end."""
    path = tmp_path / "stopped"
    with pytest.raises(StoppedError):
        throw_in(RunFolder.for_new(path), stop_after(3))
    with (path / "events.jsonl").open("ab") as log:
        log.write(b'{"event":"round.started","timestamp":"2026-01-0')
    return path
