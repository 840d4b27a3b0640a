"""The screen of a run that is begun or resumed: progress, notes, and how to go on with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, Protocol

import typer

from prism.cli._screen import note
from prism.errors import InputError, TooManyFallbacksError
from prism.runs import Observer, RunFolder, Runnable
from prism.runs._folder import SUMMARY_NAME, read_summary
from prism.telemetry._loggers import LOGGER_NAME


class Progress(AbstractContextManager[Any], Protocol):
    """A progress bar."""

    def round_ended(self, summary: Any) -> None:
        """Move on by one round."""


_OPTIONS = {
    "file": "FILE",
    "context_file": "--context",
    "variables": "--set",
    "server": "--reasoner",
    "parameters": "--set",
    "treatments": "--treat",
}
"""Parameters that are called otherwise on the command line."""

_COMMANDS = {"workflow": "prism workflow run", "cognition": "prism think"}
"""By a key that only the options of this kind of run have."""

MakeProgress = Callable[[Runnable[Any]], Progress]


class RunScreen(Observer):
    """Prints what a run says on stderr, and draws its progress until a stack is closed.

    Args:
        stack: Closes the bar.
        progress: Makes the bar, given the run.
    """

    def __init__(self, stack: ExitStack, progress: MakeProgress) -> None:
        self._stack = stack
        self._make_progress = progress
        self._progress: Progress | None = None

    def note(self, message: str) -> None:
        """Print what is good to know."""
        note(message)

    def warn(self, message: str) -> None:
        """Print what went wrong and was dealt with."""
        self.note(message)

    def started(self, run: Runnable[Any]) -> None:
        """Draw the bar."""
        # only now: a bar and the messages before the first round would overwrite each other
        progress = self._make_progress(run)
        self._stack.enter_context(progress)
        self._progress = progress

    def round_ended(self, summary: Any) -> None:
        """Move the bar on."""
        if self._progress is not None:
            self._progress.round_ended(summary)


@contextmanager
def run_screen(
    folder: Path | None, command: str, progress: MakeProgress, kept: Callable[[], str] = str
) -> Iterator[RunScreen]:
    """Show a run, and what goes wrong in it in the words of the command line.

    Args:
        folder: Where the run is kept, if anywhere.
        command: What resumes it, given ``--resume``.
        progress: Makes the progress bar, given the run.
        kept: Says what an interruption has left, before how the run is resumed.
    """
    with _hinting_at(folder, command, kept), naming_options(), ExitStack() as stack:
        screen = RunScreen(stack, progress)
        stack.enter_context(_showing_notes(screen))
        yield screen


@contextmanager
def _showing_notes(screen: RunScreen) -> Iterator[None]:
    """Show what is not in the run's log: about agents, triggers, a budget, prompts or a server."""
    # those of budgets and prompts are below that of charts
    names = ("prism.agents", LOGGER_NAME)
    loggers = [logging.getLogger(name) for name in (*names, "prism.llm", "prism.runs.models")]
    handler = _NoteHandler(screen)
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _NoteHandler(logging.Handler):
    def __init__(self, screen: RunScreen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        # an event of a run without a folder, whose summary counts it
        if not hasattr(record, "prism"):
            self._screen.note(record.getMessage())


@contextmanager
def naming_options(names: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Name the option where a value is refused that was not read from a file.

    Args:
        names: Fields that are called otherwise, such as arguments.
    """
    try:
        yield
    except InputError as error:
        # what begins with an underscore is a variable of prism's own, and no option
        if error.field is None or error.path is not None or error.field.startswith("_"):
            raise
        name = names.get(error.field) or option_of(error.field)
        raise InputError(f"{name} {error.problem}") from None


@contextmanager
def _hinting_at(folder: Path | None, command: str, kept: Callable[[], str]) -> Iterator[None]:
    """Say after an interruption or a failed write how the run is resumed, if it is kept."""
    if folder is None:
        yield
        return

    hint = f"go on with: {command} --resume {quote(str(folder))}"
    try:
        yield
    except KeyboardInterrupt:
        if RunFolder(folder).is_begun:
            note(f"{kept()}{hint}")
        raise
    except TooManyFallbacksError as error:
        raise TooManyFallbacksError(f"{error}; when that is mended, {hint}") from error
    except OSError as error:
        problem = f"{error.strerror or error}; when that is mended, {hint}"
        raise OSError(error.errno, problem, error.filename or str(folder)) from error


def refuse_what_is_settled(context: typer.Context, allowed: Iterable[str]) -> None:
    """Refuse options beside --resume that would make the run another one.

    Args:
        context: The command's context.
        allowed: Parameters that may be given.

    Raises:
        InputError: If there are any.
    """
    given = sorted(
        name for name in context.params if name not in allowed and is_given(context, name)
    )
    if given:
        options = ", ".join(map(option_of, given))
        raise InputError(f"--resume takes everything from the run's folder: leave out {options}")


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether a parameter was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def option_of(name: str) -> str:
    """Return the option of a parameter, as it is written on the command line."""
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")


def refuse_other_runs(folder: Path, command: str) -> None:
    """Refuse to resume a run that another command began, and name that one."""
    if not (folder / SUMMARY_NAME).exists():
        return

    found = command_of(folder)
    if found != command:
        hint = f"go on with: {found} --resume {quote(str(folder))}"
        raise InputError(f"holds a run of another kind; {hint}", path=folder)


def command_of(folder: Path) -> str:
    """Return the command that carries out the kind of run that a folder holds.

    Raises:
        InputError: If it holds none.
    """
    config = read_summary(folder)["config"]
    kinds = (command for key, command in _COMMANDS.items() if key in config)
    return next(kinds, "prism simulate")


def own_folder(option: str, path: Path) -> Path:
    """Refuse an empty path: it is what an unset shell variable leaves, and the current folder."""
    if str(path) in ("", "."):
        raise InputError(f"{option} must name a folder of its own, got {str(path)!r}")
    return path
