"""The progress of a run on standard error, and how to continue it after an interruption."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

from prism.cli._options import naming_options
from prism.cli._screen import Screen, note, shown
from prism.errors import TooManyFallbacksError, UnreachableError
from prism.runs import Observer
from prism.runs._folder import is_begun
from prism.runs._observing import telling_warnings


def bar(unit: str, total: int | None = None, done: int = 0) -> Any:
    """Return a progress bar of rich, which is drawn only on a terminal, and its task.

    Args:
        unit: What is counted.
        total: How many there are; None if that is not known yet.
        done: How many have ended.
    """
    # it takes long to load
    from rich import progress

    screen = Screen(err=True)
    drawn = progress.Progress(
        progress.TextColumn(unit),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.TimeRemainingColumn(),
        console=screen,
        disable=not screen.is_terminal,
    )
    return drawn, drawn.add_task("", total=total, completed=done)


class RunScreen(Observer):
    """Prints a run's messages on standard error, and its progress if that is a terminal.

    Args:
        stack: Closes the bar.
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._bar: Any = None

    def note(self, message: str) -> None:
        """Print a note."""
        note(message)

    def warn(self, message: str) -> None:
        """Print a problem that has been dealt with."""
        note(message)

    def started(self, run: Any) -> None:
        """Draw the bar: not earlier, for it and the messages before would overwrite each other."""
        if Screen(err=True).is_terminal:
            self._bar = bar("round", run.rounds, len(run.finished))
            self._stack.enter_context(self._bar[0])

    def round_ended(self, summary: Any) -> None:
        """Move the bar on, with the most common state of a round, or the state of an agent."""
        if self._bar is not None:
            drawn, task = self._bar
            states = getattr(summary, "states", None)
            state = max(states, key=states.__getitem__) if states else summary.state
            drawn.update(task, advance=1, description=shown(f"most are {state}"))


@contextmanager
def run_screen(folder: Path | None) -> Iterator[RunScreen]:
    """Show a run, and name options in its errors as on the command line.

    Args:
        folder: The folder of the run, if it has one.
    """
    with warnings.catch_warnings(), ExitStack() as stack:
        # as of a damaged file that was restored
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        screen = RunScreen(ExitStack())
        stack.enter_context(hinting_at(folder))
        stack.enter_context(naming_options())
        # the bar has to be gone before a message is printed
        screen._stack = stack.enter_context(ExitStack())
        stack.enter_context(telling_warnings(screen))
        yield screen


@contextmanager
def hinting_at(folder: Path | None) -> Iterator[None]:
    """After an interruption or a failed write, print how to resume the run, if it is kept."""
    hint = f"continue with: prism resume {quote(str(folder))}"
    try:
        yield
    except KeyboardInterrupt:
        if _holds_any(folder):
            note(hint)
        raise
    except (TooManyFallbacksError, UnreachableError) as error:
        # a run that does not begin leaves no folder
        if not _holds_any(folder):
            raise
        raise type(error)(f"{error}; once that is fixed, {hint}") from error
    except OSError as error:
        if folder is None:
            raise
        problem = f"{error.strerror or error}; once that is fixed, {hint}"
        raise OSError(error.errno, problem, error.filename or str(folder)) from error


def _holds_any(folder: Path | None) -> bool:
    """Return whether a folder holds a run or a batch that can be resumed."""
    return folder is not None and (is_begun(folder) or (folder / "plan.json").exists())
