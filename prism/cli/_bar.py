"""The progress bar of runs and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from prism.cli._screen import Screen, shown


class Bar(Progress):
    """A progress bar on standard error, drawn only on a terminal.

    Args:
        unit: What is counted.
        total: How many there are; None if that is not known yet.
        done: How many have ended.
        text: What is said beside the bar at first.
        describe: What is said of a round, turn or cycle that has ended.
    """

    def __init__(
        self,
        unit: str,
        total: int | None = None,
        done: int = 0,
        text: str = "",
        describe: Callable[[Any], str] = str,
    ) -> None:
        screen = Screen(err=True)
        columns: list[ProgressColumn] = [
            TextColumn(unit),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(),
        ]
        super().__init__(*columns, console=screen, disable=not screen.is_terminal)
        self._describe = describe
        self.bar = self.add_task(shown(text), total=total, completed=done)

    def show(self, done: int, total: int) -> None:
        """Show how many have ended."""
        self.update(self.bar, completed=done, total=total)

    def round_ended(self, summary: Any) -> None:
        """Move the bar on by one, and say what has ended."""
        self.update(self.bar, advance=1, description=shown(self._describe(summary)))
