"""Time that a test moves, for code that is given a clock and a way to sleep."""

import asyncio

import pytest

from prism.testing import FrozenClock


class Clock(FrozenClock):
    """A frozen clock to sleep by: whoever sleeps moves it, and goes on at once.

    Attributes:
        naps: How long each sleep was, in seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.naps: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds pass, and let other tasks run."""
        self.naps.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> Clock:
    """Return a clock that only the test moves."""
    return Clock()
