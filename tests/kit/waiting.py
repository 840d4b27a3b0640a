"""Waiting for what another process or thread does: the only place of the tests that polls."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

POLL_SECONDS = 0.002
MOST_SECONDS = 30.0
"""Long enough for a loaded machine; a test that gets there has failed."""


def _looks(condition: Callable[[], object], seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds:g} s: {condition}")
        yield


def wait_until(condition: Callable[[], object], seconds: float = MOST_SECONDS) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: If it does not hold in time.
    """
    for _ in _looks(condition, seconds):
        time.sleep(POLL_SECONDS)


def has_ended(process: Popen[Any]) -> bool:
    """Return True if a process has ended, so that nothing more is to be waited for."""
    return process.poll() is not None


def has_stopped(process: Popen[Any]) -> bool:
    """Return whether a process has received the signal that stops it for a while."""
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii")
    return stat.rpartition(")")[2].split()[0] == "T"


async def until(condition: Callable[[], object], seconds: float = MOST_SECONDS) -> None:
    """Wait until a condition holds, while other tasks of this loop run.

    Raises:
        TimeoutError: If it does not hold in time.
    """
    for _ in _looks(condition, seconds):
        # a test may have stopped the clock that asyncio.sleep goes by
        await asyncio.to_thread(time.sleep, POLL_SECONDS)
