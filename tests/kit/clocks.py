"""Time that a test sets, for code that is given a clock or waits by that of its event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from tests.kit.waiting import MOST_SECONDS, until

FOREVER = 1e9


class Clock:
    """A time in seconds that only the test moves, unlike a `FrozenClock` without a date.

    Attributes:
        time: What the clock shows.
    """

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.time

    def takes(self, seconds: float) -> Callable[[], float]:
        """Return a latency for a server of tests: so long by this clock, no time by a real one.

        One question at a time, as those at the same time would each take their time in turn.
        """

        def latency() -> float:
            self.time += seconds
            return 0.0

        return latency

    async def passes(self, seconds: float, when: Callable[[], object] = lambda: True) -> None:
        """Let time pass, as soon as a condition holds.

        Tasks that the condition or the time wakes have taken some steps when this returns.

        Args:
            seconds: How much.
            when: What to wait for, in real time.
        """
        await until(when)
        await _some_turns()
        self.time += seconds
        await _some_turns()


async def _some_turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> Clock:
    """Return a clock that only the test moves."""
    return Clock()


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is asked again of a bare client be asked at once, unless its server says when."""
    monkeypatch.setattr("prism.reasoner.servers.random_backoff", lambda attempt: 0.0)


@pytest.fixture
async def loop_clock() -> AsyncIterator[Clock]:
    """Return the clock of the running event loop: what waits in it waits until the test moves it.

    So a time-out or a pause comes when the test says so, however busy the machine is. If
    a test hangs, all its time-outs end after half a minute.
    """
    loop, clock = asyncio.get_running_loop(), Clock()
    # what was begun before, such as by another fixture, goes on from there
    clock.time = loop.time()
    loop.time = clock  # type: ignore[method-assign]

    def end() -> None:
        clock.time += FOREVER

    watchdog = threading.Timer(MOST_SECONDS, loop.call_soon_threadsafe, [end])
    watchdog.start()
    yield clock
    watchdog.cancel()
    del loop.time  # type: ignore[attr-defined]
