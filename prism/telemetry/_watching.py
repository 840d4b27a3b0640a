"""Watching charts at work, for tools such as coverage: what is watched is settled when a chart is built.

A chart that nobody watches is built from plain rows, and its fires cost next to nothing for being
watchable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Watcher = Callable[[str, Any], Any]
"""``watcher(name, rows)``: gives the rows that the chart of this name is to run, say with its guards wrapped."""

_watchers: list[Watcher] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Let a watcher have a hand in every chart that is built meanwhile; such a chart stays watched.

    Args:
        watcher: Called once for every chart, with its name and its compiled rows (`machine.Rows`).
    """
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def watched(name: str, rows: Any) -> Any:
    """Return the rows that a new chart is to run."""
    for watcher in _watchers:
        rows = watcher(name, rows)

    return rows
