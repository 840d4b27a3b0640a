"""Runs that a command begins or resumes: progress, notes, and how to go on with them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import typer

from prism import runs
from prism.cli._options import Keeping, option_of
from prism.cli._screen import Screen, note, pour
from prism.errors import InputError, TooManyFallbacksError
from prism.runs import Observer, Outcome, RunFolder, Runnable, RunOptions
from prism.runs._folder import SUMMARY_NAME, read_summary

_LOGGERS = ("prism.agents", "prism.statechart", "prism.llm", "prism.runs.models")
"""Who says what is not in a run's log: about agents, triggers, a budget, prompts or a server."""

_COMMANDS = {"workflow": "prism workflow run", "cognition": "prism think"}
"""By a key that only the options of this kind of run have."""

_WITH_RESUME = ("resume", "host", "checkpoint_every", "as_json")
"""What may be given beside ``--resume``: it does not make a run another one."""

DoneT = TypeVar("DoneT")


class RunProgress(AbstractContextManager[Any], Protocol):
    """A progress bar."""

    def round_ended(self, summary: Any) -> None:
        """Move on by one round."""


MakeProgress = Callable[[Runnable[Any]], RunProgress]


def bar(*of: Any, **more: Any) -> RunProgress:
    """Return a progress bar on standard error, or none where that is no terminal: see `Bar`."""
    if not Screen(err=True).is_terminal:
        return _Nothing()

    # what draws it takes long to load
    from prism.cli._bar import Bar

    return Bar(*of, **more)


class _Nothing(AbstractContextManager[Any]):
    def __exit__(self, *_of_error: object) -> None:
        """Leave nothing."""

    def round_ended(self, summary: Any) -> None:
        """Draw nothing."""


class RunScreen(Observer):
    """Prints what a run says on stderr, and draws its progress until a stack is closed.

    Args:
        stack: Closes the bar.
        progress: Makes the bar, given the run.
    """

    def __init__(self, stack: ExitStack, progress: MakeProgress) -> None:
        self._stack = stack
        self._make_progress = progress
        self._progress: RunProgress | None = None

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


def begin_or_resume(
    context: typer.Context,
    keeping: Keeping,
    begin: Callable[[Path | None, Any], DoneT],
    resume: Callable[[Path, Any], DoneT],
    screen: Callable[[Path | None], AbstractContextManager[Any]],
    *,
    what: str = "run",
    with_resume: Sequence[str] = (),
) -> DoneT:
    """Begin a run, or whatever is kept like one, or go on with it.

    Args:
        context: The command's context.
        keeping: Where it is kept.
        begin: Begins a new one in a folder, if in any, given its screen.
        resume: Goes on with the one in a folder, given its screen.
        screen: Shows one that is kept in a folder, if in any.
        what: What is kept.
        with_resume: Parameters that may be given beside ``--resume``, other than those of every
            command.

    Raises:
        InputError: If options contradict each other.
    """
    if keeping.resume is not None:
        settled = f"--resume takes everything from the {what}'s folder"
        refuse_given(context, (*_WITH_RESUME, *with_resume), settled)
        folder = own_folder("--resume", keeping.resume)
        with screen(folder) as shown_on:
            return resume(folder, shown_on)

    if keeping.out is None and is_given(context, "checkpoint_every"):
        raise InputError("--checkpoint-every needs --out, the folder to keep checkpoints in")

    kept_in = None if keeping.out is None else own_folder("--out", keeping.out)
    with screen(kept_in) as shown_on:
        return begin(kept_in, shown_on)


def carry_out(
    context: typer.Context,
    command: str,
    keeping: Keeping,
    make: Callable[[], RunOptions[Any]],
    kind_of: Callable[[Path], type[RunOptions[Any]]],
    screen: Callable[[Path | None], AbstractContextManager[RunScreen]],
    *,
    hosts: Sequence[str] = (),
) -> Outcome[Any] | None:
    """Carry out a new run, or the rest of one.

    Args:
        context: The command's context.
        command: How the command is called.
        keeping: Where the run is kept.
        make: Makes the options of a new run.
        kind_of: Returns the kind of the options of the run in a folder.
        screen: Shows a run that is kept in a folder, if in any.
        hosts: Addresses of servers, with what is secret in them, for a run that goes on.

    Returns:
        What came of it; None if there was nothing to resume.
    """
    every = keeping.checkpoint_every
    more: dict[str, Any] = {} if every is None else {"checkpoint_every": every}

    def begin(folder: Path | None, shown_on: RunScreen) -> Outcome[Any] | None:
        more.update(on_round=shown_on.round_ended, observer=shown_on)
        return runs.begin(make(), folder, **more)

    def resume(folder: Path, shown_on: RunScreen) -> Outcome[Any] | None:
        refuse_other_runs(folder, command)
        more.update(on_round=shown_on.round_ended, observer=shown_on)
        outcome = runs.resume(folder, kind_of(folder), hosts=hosts, **more)
        if outcome is None:
            note(f"{folder} is complete: there is nothing to resume")
        return outcome

    return begin_or_resume(context, keeping, begin, resume, screen)


def print_outcome(
    outcome: Outcome[Any], print_results: Callable[[Any, Path | None], None], *, as_json: bool
) -> None:
    """Print what came of a run: as tables, or as JSON what ``run.json`` says."""
    if as_json:
        pour(json.dumps(outcome.summary, indent=2) + "\n")
    else:
        print_results(outcome.results, outcome.folder)


def round_screen(command: str) -> Callable[[Path | None], AbstractContextManager[RunScreen]]:
    """Return a function that shows a run of rounds, given its folder.

    Args:
        command: What resumes the run, given ``--resume``.
    """

    def progress(run: Runnable[Any]) -> RunProgress:
        return round_bar(run.rounds, done=len(run.finished))

    return lambda folder: run_screen(folder, command, progress)


def round_bar(rounds: int, done: int = 0) -> RunProgress:
    """Return a bar that shows the rounds of a simulation, and the commonest state."""
    return bar("round", rounds, done, describe=_busiest)


def _busiest(summary: Any) -> str:
    return f"most are {max(summary.states, key=lambda state: summary.states[state])}"


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
    loggers = list(map(logging.getLogger, _LOGGERS))
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


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether a parameter was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def options_given(context: typer.Context, without: Iterable[str] = ()) -> Iterator[str]:
    """Return what was given on the command line, as it is written there: a plan by its name."""
    for name, value in context.params.items():
        if name not in without and is_given(context, name):
            yield str(value) if name == "plan" else option_of(name)


def refuse_given(context: typer.Context, allowed: Iterable[str], why: str) -> None:
    """Refuse everything that was given, apart from what is allowed.

    Raises:
        InputError: If there is anything.
    """
    given = sorted(options_given(context, allowed))
    if given:
        raise InputError(f"{why}: leave out {', '.join(given)}")


def own_folder(name: str, path: Path) -> Path:
    """Refuse an empty path: it is what an unset shell variable leaves, and the current folder."""
    if str(path) in ("", "."):
        raise InputError(f"{name} must name a folder of its own, got {str(path)!r}")
    return path
