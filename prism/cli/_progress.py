"""The progress of a run or a batch on standard error, and how to continue it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

from prism.cli._screen import Screen, note, one_line
from prism.errors import TooManyFallbacksError, UnreachableError
from prism.runs import Observer
from prism.runs.folder import is_begun
from prism.runs.observing import forwarding_warnings


class Bar:
    """A bar on a terminal; nothing elsewhere.

    Attributes:
        drawn: The bar while it is drawn.
    """

    def __init__(self) -> None:
        self.drawn: Any = None

    def begin(self, unit: str, total: int, done: int) -> None:
        """Draw the bar: not earlier, for it and the messages before would overwrite each other."""
        screen = Screen(err=True)
        if not screen.is_terminal:
            return
        # it takes long to load
        from rich import progress

        columns = progress.BarColumn(), progress.MofNCompleteColumn()
        text = progress.TextColumn("{task.description}", markup=False)
        left = progress.TimeRemainingColumn()
        self.drawn = progress.Progress(unit, *columns, text, left, console=screen)
        self.drawn.add_task("", total=total, completed=done)
        self.drawn.start()

    def advance(self, text: str = "") -> None:
        """Move the bar on, with a text beside it."""
        if self.drawn is not None:
            self.drawn.update(self.drawn.task_ids[0], advance=1, description=one_line(text))

    def end(self) -> None:
        """Leave the bar as it is; messages can be printed below it."""
        if self.drawn is not None:
            self.drawn.stop()


class RunScreen(Observer):
    """Prints a run's messages on standard error, and its progress if that is a terminal.

    Args:
        agents: What ``--agents`` asks for, if it was given.
    """

    def __init__(self, agents: str | None) -> None:
        self.bar, self._agents = Bar(), agents

    def note(self, message: str) -> None:
        """Print a note."""
        note(message)

    warn = note

    def started(self, run: Any) -> None:
        """Draw the bar, and note if a world makes fewer agents than it is asked for."""
        wanted, made = self._agents or "", len(run.agents)
        if wanted.isdecimal() and made < int(wanted):
            note(f"the world has made {made:,} agents, though --agents asks for {wanted}")
        self.bar.begin("round", run.rounds, len(run.finished))

    def round_ended(self, summary: Any) -> None:
        """Move the bar on, with the most common state of a round, or the state of an agent."""
        states = getattr(summary, "states", None)
        state = max(states, key=states.__getitem__) if states else summary.state
        self.bar.advance(f"most are {state}")


@contextmanager
def run_screen(folder: Path | None, agents: str | None = None) -> Iterator[RunScreen]:
    """Show a run.

    Args:
        folder: The folder of the run, if it has one.
        agents: What ``--agents`` asks for, if it was given.
    """
    screen = RunScreen(agents)
    with warnings.catch_warnings(), hinting_at(folder, screen.bar), forwarding_warnings(screen):
        # as of a damaged file that was restored, or a decision that no step awaits
        warnings.simplefilter("default", RuntimeWarning)
        warnings.showwarning = _note_warning  # type: ignore[assignment]
        yield screen


def _note_warning(message: Any, _category: Any, filename: str, line: int, *_: Any) -> None:
    """Note a warning, with its line if that is in the user's code; see `warnings.showwarning`."""
    is_prism = Path(filename).is_relative_to(Path(__file__).parents[1])
    note(str(message) if is_prism else f"{filename}:{line}: {message}")


@contextmanager
def hinting_at(folder: Path | None, bar: Bar) -> Iterator[None]:
    """End the bar; after an interruption or a failed write, print how to resume, if possible."""
    try:
        yield
    except (KeyboardInterrupt, TooManyFallbacksError, UnreachableError, OSError):
        bar.end()
        # a run that does not begin leaves no folder
        if folder is not None and (is_begun(folder) or (folder / "plan.json").exists()):
            note(f"continue with: prism resume {quote(str(folder))}")
        raise
    finally:
        bar.end()
