"""What the screens of several commands share: plain tables, and texts that are safe to print."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from prism.drawing import printable


def plain(text: str) -> Text:
    """Return a text to print as it is: no markup, no line breaks, no control characters."""
    return Text(printable(text))


def plain_table() -> Table:
    """Return a table with a line below its headings and no other."""
    return Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def evenly(count: int, most: int) -> list[int]:
    """Pick at most so many places evenly, the first and the last among them.

    Args:
        count: Number of places.
        most: Most places to pick, 2 or more.
    """
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]
