"""Fixtures of the run log's tests."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from prism.runlog import RunLog, SimulatedClock


@pytest.fixture
def _in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set a time zone far from UTC."""
    with monkeypatch.context() as here:
        here.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def open_log(tmp_path: Path) -> Iterator[Callable[..., RunLog]]:
    """Return a function that opens a run log in a temporary folder and closes it at the end."""
    opened: list[RunLog] = []

    def open_log(name: str = "run.jsonl", clock: SimulatedClock | None = None) -> RunLog:
        opened.append(RunLog(tmp_path / name, clock or SimulatedClock()))
        return opened[-1]

    yield open_log
    for log in opened:
        log.close()
