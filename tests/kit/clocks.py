"""Time that a test sets, for code that is given a clock."""

import pytest


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


@pytest.fixture
def clock() -> Clock:
    """Return a clock that only the test moves."""
    return Clock()
