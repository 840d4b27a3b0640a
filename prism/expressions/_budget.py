"""The budget of an evaluation: all values that are made or looked at are paid for in advance."""

from __future__ import annotations

from typing import Any

MAX_SPENT = 4_000_000
"""Characters that one evaluation may make or look at, all of its texts and lists together."""

ITEM = 4
"""The cost of an item of a list or dict, in characters: it takes that much longer."""


class ExpressionError(ValueError):
    """An expression cannot be read, or cannot be evaluated with the given variables."""


class Budget:
    """The characters and items that evaluations may still make and look at.

    Args:
        left: Characters.

    Attributes:
        left: Characters that are left.
    """

    __slots__ = ("left",)

    def __init__(self, left: int = MAX_SPENT) -> None:
        self.left: int = left

    def spend(self, characters: int) -> None:
        """Pay for some characters.

        Raises:
            ExpressionError: If fewer are left.
        """
        self.left -= characters
        if self.left < 0:
            raise ExpressionError("makes or reads texts or lists that are too long")

    def look_through(self, *values: Any) -> None:
        """Pay for looking at everything in some values."""
        waiting = [value for value in values if isinstance(value, (str, list, tuple, dict))]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str):
                self.spend(len(value))
            elif isinstance(value, (list, tuple)):
                self.spend(ITEM * len(value))
                waiting += value
            elif isinstance(value, dict):
                self.spend(2 * ITEM * len(value))
                waiting += value
                waiting += value.values()

    def make(self, value: Any) -> Any:
        """Pay for a new text or list, and return it."""
        if isinstance(value, str):
            self.spend(len(value))
        elif isinstance(value, (list, tuple)):
            self.spend(ITEM * len(value))

        return value
