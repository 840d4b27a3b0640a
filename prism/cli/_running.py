"""Runs that a command begins or resumes: progress, notes, and how to continue them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from prism.cli._options import Keeping, option_of
from prism.cli._screen import Screen, note, pour_json, say
from prism.cli._spent import spent_lines
from prism.errors import InputError, TooManyFallbacksError, UnreachableError
from prism.runs import Observer, Outcome
from prism.runs._folder import is_begun
from prism.runs._running import telling_warnings

_WITH_RESUME = ("resume", "host", "as_json")
"""Parameters that are allowed beside ``--resume``, since they do not change the run."""

if TYPE_CHECKING:
    from prism.cli._bar import Bar

DoneT = TypeVar("DoneT")


def bar(*of: Any, **more: Any) -> Bar | None:
    """Return a progress bar on standard error, or None if that is not a terminal: see `Bar`."""
    if not Screen(err=True).is_terminal:
        return None

    # the module that draws it takes long to load
    from prism.cli._bar import Bar

    return Bar(*of, **more)


class RunScreen(Observer):
    """Prints a run's messages on stderr, and draws its progress until a stack is closed.

    Args:
        stack: Closes the bar.

    Attributes:
        begins: Called once the run can be looked at.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.begins: Callable[[], object] = dict
        self._progress: Any = None

    def note(self, message: str) -> None:
        """Print a note."""
        note(message)

    def warn(self, message: str) -> None:
        """Print a problem that has been dealt with."""
        self.note(message)

    def started(self, run: Any) -> None:
        """Draw the bar, and call `begins`."""
        self.begins()
        # not earlier: the bar and the messages before the first round would overwrite each other
        self._progress = _progress(run)
        if self._progress is not None:
            self.stack.enter_context(self._progress)

    def kept(self) -> str:
        """Describe, for a message, what an interruption has left beside the run's folder."""
        found = getattr(self._progress, "kept", str)()
        return f"{found}; " if found else ""

    def round_ended(self, summary: Any) -> None:
        """Move the bar on."""
        if self._progress is not None:
            self._progress.round_ended(summary)


def begin_or_resume(
    keeping: Keeping,
    begin: Callable[[Path | None, Any], DoneT],
    resume: Callable[[Path, Any], DoneT],
    screen: Callable[[Path | None], AbstractContextManager[Any]],
    *,
    what: str = "run",
    with_resume: Sequence[str] = (),
) -> DoneT:
    """Begin or continue a run, or something that is kept like one.

    Args:
        keeping: The folder to keep it in.
        begin: Begins a new one, given its folder, if any, and its screen.
        resume: Continues the one in a folder, given its screen.
        screen: Shows one, given its folder, if any.
        what: What it is called in messages.
        with_resume: Further parameters that are allowed beside ``--resume``.

    Raises:
        InputError: If options contradict each other.
    """
    if keeping.resume is not None:
        if others := sorted(options_given(keeping.command_line, (*_WITH_RESUME, *with_resume))):
            settled = f"--resume takes everything from the {what}'s folder"
            raise InputError(f"{settled}: leave out {', '.join(others)}")

        folder = own_folder("--resume", keeping.resume)
        with screen(folder) as shown_on:
            return resume(folder, shown_on)

    kept = kept_in(keeping)
    with screen(kept) as shown_on:
        return begin(kept, shown_on)


def kept_in(keeping: Keeping) -> Path | None:
    """Return the folder for a new run, if one is named."""
    return None if keeping.out is None else own_folder("--out", keeping.out)


_SHOWN = {"WorkflowResults": "_workflow", "CognitiveResults": "_think"}
"""The modules that show runs of a single agent, by their results."""


def tell(outcome: Outcome[Any], *, as_json: bool) -> None:
    """Print the results of a run; as JSON, the content of ``run.json``.

    Raises:
        typer.Exit: With status 1, if the run of a single agent failed, or no decision of another
            run is its model's.
    """
    name = _SHOWN.get(type(outcome.results).__name__)
    shows = import_module(f"prism.cli.{name or '_results'}")
    if as_json:
        pour_json(outcome.summary)
    else:
        shows.print_results(outcome.results, outcome.folder)
        if "spent" in outcome.summary:
            for line in spent_lines(outcome.summary["spent"]):
                say(line)
    if shows.has_failed(outcome.results if name else outcome.summary):
        raise typer.Exit(1)


def _progress(run: Any) -> Any:
    """Return the bar that shows a run's progress, if there is one."""
    world: Any = getattr(run, "world", None)
    if type(world).__name__ == "Turns":
        from prism.cli._workflow import progress

        return progress(run, bar)
    if type(world).__name__ == "Cycles":
        from prism.cli._think_view import ThinkView

        return ThinkView(run, world.agent)

    return round_bar(run.rounds, done=len(run.finished))


def round_bar(rounds: int, done: int = 0) -> Bar | None:
    """Return a bar that shows the rounds of a simulation and the most common state."""
    return bar("round", rounds, done, describe=_busiest)


def _busiest(summary: Any) -> str:
    return f"most are {max(summary.states, key=lambda state: summary.states[state])}"


@contextmanager
def run_screen(
    folder: Path | None,
    names: Mapping[str, str] = MappingProxyType({}),
    *,
    command: str = "prism resume",
) -> Iterator[RunScreen]:
    """Show a run, and name options in its errors as on the command line.

    Args:
        folder: The folder of the run, if it has one.
        names: Fields that are called otherwise, such as arguments.
        command: The command that resumes it, without its folder.
    """
    with warnings.catch_warnings(), ExitStack() as stack:
        # as of a damaged file that was restored
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        screen = RunScreen(stack)
        stack.enter_context(hinting_at(folder, command, screen.kept))
        stack.enter_context(naming_options(names))
        # the bar has to be gone before a message is printed
        screen.stack = stack.enter_context(ExitStack())
        stack.enter_context(telling_warnings(screen))
        yield screen


@contextmanager
def naming_options(names: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Name the option in errors about values that were not read from a file.

    Args:
        names: Fields that are called otherwise, such as arguments.
    """
    try:
        yield
    except InputError as error:
        # a name with an underscore in front is a variable of prism, not an option
        if error.field is None or error.path is not None or error.field.startswith("_"):
            raise
        name = names.get(error.field) or option_of(error.field)
        # a problem begins with its verb, or is a sentence about something else
        colon = ":" if error.problem[:1].isupper() else ""
        raise InputError(f"{name}{colon} {error.problem}") from error.__cause__


@contextmanager
def hinting_at(folder: Path | None, command: str, kept: Callable[[], str] = str) -> Iterator[None]:
    """After an interruption or a failed write, print how to resume the run, if it is kept."""
    hint = f"continue with: {command} {quote(str(folder))}"
    try:
        yield
    except KeyboardInterrupt:
        told = kept()
        if _holds_any(folder):
            note(f"{told}{hint}")
        elif folder is None and told:
            note(f"{told}run the same command again to continue")
        raise
    except (TooManyFallbacksError, UnreachableError) as error:
        # a run that does not begin leaves no folder
        if not _holds_any(folder):
            raise
        raise type(error)(f"{error}; once that is fixed, {hint}") from error
    except OSError as error:
        if folder is None:
            raise
        raise _with_hint(error, folder, hint) from error


def _with_hint(error: OSError, folder: Path, hint: str) -> OSError:
    problem = f"{error.strerror or error}; once that is fixed, {hint}"
    return OSError(error.errno, problem, error.filename or str(folder))


def _holds_any(folder: Path | None) -> bool:
    """Return whether a folder holds a run or a batch that can be resumed."""
    return folder is not None and (is_begun(folder) or (folder / "plan.json").exists())


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether a parameter was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def options_given(context: typer.Context, without: Iterable[str] = ()) -> Iterator[str]:
    """Return the options that were given as they are written: a plan by its name."""
    for name, value in context.params.items():
        if name not in without and is_given(context, name):
            yield str(value) if name == "plan" else option_of(name)


def own_folder(name: str, path: Path) -> Path:
    """Refuse an empty path: an unset shell variable leaves one, and it is the current folder."""
    if str(path) in ("", "."):
        raise InputError(f"{name} must name a folder of its own, got {str(path)!r}")
    return path
