"""What the text of a compiled world puts before the kernel: its chart, its steps, its records."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Tell type checkers that a world has whatever the kernel asks it for."""
    raise AttributeError(name)
