"""The part of a compiled world before the kernel: its chart, its steps and its records."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Tell type checkers that a world has every name that the kernel uses."""
    raise AttributeError(name)
