"""Overhearing what charts and reasoners say, whichever logger they say it to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Listener = Callable[[str, dict[str, Any]], None]
"""``listener(event, keys)``: gets every event before the logger does."""

listeners: list[Listener] = []
"""Who listens now; usually nobody."""


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener hear every event of prism meanwhile; loggers get what they would get anyway.

    Args:
        listener: Called with the event's name and a dict of its keys, in the thread that reports
            it.
    """
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


class Overheard:
    """A logger that lets the listeners hear each event, and then hands it to the one it stands for."""

    __slots__ = ("_logger",)

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def info(self, event: str, **keys: Any) -> None:
        """Record something that happened."""
        _tell(event, keys)
        self._logger.info(event, **keys)

    def warning(self, event: str, **keys: Any) -> None:
        """Record something that went wrong and was dealt with."""
        _tell(event, keys)
        self._logger.warning(event, **keys)

    def error(self, event: str, **keys: Any) -> None:
        """Record a fault in the user's code."""
        _tell(event, keys)
        self._logger.error(event, **keys)


def _tell(event: str, keys: dict[str, Any]) -> None:
    for listener in listeners:
        listener(event, dict(keys))
