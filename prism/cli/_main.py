"""Entry point: runs a command, and turns wrong input into one line and exit status 2."""

from __future__ import annotations

import io
import logging
import os
import sys
from functools import cache
from importlib import import_module
from traceback import format_exception
from typing import Annotated, Any

import typer

from prism._version import __version__
from prism.cli._options import Group, naming_options
from prism.cli._screen import note, say
from prism.cli._tables import interrupts
from prism.errors import InputError, LLMError, PrismError, TooManyFallbacksError

_INTERRUPTED = 130
_TRACEBACK = "PRISM_TRACEBACK"

_COMMANDS = {
    "Begin here": ("tour",),
    "Run": ("run", "simulate", "resume", "replay", "rerun", "status", "watch"),
    "See the results": ("report", "log", "memory"),
    "Experiment": ("batch", "compare", "sensitivity", "fit", "calibrate"),
    "Prepare and check": ("world", "chart", "workflow", "think", "doctor"),
}
"""The commands in the order of the help. Each is in the module of its name, but for these:"""

_ELSEWHERE = dict.fromkeys(("simulate", "resume", "replay", "rerun"), "_run")
_ELSEWHERE |= dict.fromkeys(("sensitivity", "fit", "calibrate"), "_batch")
_ELSEWHERE |= dict.fromkeys(("workflow", "think", "memory"), "_programs")
_PANELS = {name: panel for panel, names in _COMMANDS.items() for name in names}


class _OnDemand(Group):
    """All commands; only those that are called or listed are imported."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # typer only looks here for names, to suggest one that is similar to a misspelt one
        self.commands: Any = dict.fromkeys(_PANELS)

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all commands, in the order in which help shows them."""
        return list(_PANELS)

    def get_command(self, _ctx: Any, name: str) -> Any:
        """Return the command with this name; None if there is none."""
        return command_named(name) if name in _PANELS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command with its name and the arguments left; ``simulate`` is a short form."""
        short = ["run", "feed"] if args[:1] == ["simulate"] else args[:1]
        return super().resolve_command(ctx, [*short, *args[1:]])


@cache
def command_named(name: str) -> Any:
    """Return a command, or a group of commands."""
    module = import_module(f"prism.cli.{_ELSEWHERE.get(name, f'_{name}')}")
    command = getattr(module, name)
    holder = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    if isinstance(command, typer.Typer):
        holder.add_typer(command, name=name, rich_help_panel=_PANELS[name])
        group: Any = typer.main.get_command(holder)
        return group.commands[name]

    holder.command(name, rich_help_panel=_PANELS[name])(command)
    return typer.main.get_command(holder)


app: typer.Typer = typer.Typer(
    name="prism",
    cls=_OnDemand,
    help="Statecharts for LLM-driven agents: run a simulation in which every transition is "
    "explicit, logged and repeatable.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _print_version(value: bool) -> None:
    if value:
        say(f"prism {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show the full traceback of an error.")
    ] = False,
) -> None:
    """Take the options that come before a command."""
    if traceback:
        os.environ[_TRACEBACK] = "1"


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong input, 130 interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # posts may have characters that the user's terminal cannot show
        sys.stdout.reconfigure(errors="replace")

    # what went wrong is in the run's log and summary
    logging.getLogger("prism").addHandler(logging.NullHandler())

    sys.exit(_run())


def _run() -> int:
    before = os.environ.get(_TRACEBACK)
    # also find modules in the current folder, as python -m does
    if (folder := os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.insert(0, folder)
    try:
        command = typer.main.get_command(app)
        status = int(command(sys.argv[1:], prog_name="prism", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except Exception as error:
        if not (interrupts and isinstance(error, RuntimeError)):
            _print_error(error)
            is_input = isinstance(error, (typer.TyperException, PrismError))
            return 2 if is_input and not isinstance(error, (TooManyFallbacksError, LLMError)) else 1
        status = _INTERRUPTED
    finally:
        if before is None:
            os.environ.pop(_TRACEBACK, None)
    if status == _INTERRUPTED:  # typer's status for a KeyboardInterrupt
        note("interrupted")

    return status


def _print_error(error: Exception) -> None:
    """Print what went wrong, with the traceback if it is a mistake in prism itself."""
    # loaded by commands that fail alone
    from prism._faults import shows_all

    is_reported = _print_fault(error) or _print_wrong_input(error)
    if shows_all() or not is_reported:
        for line in "".join(format_exception(error)).splitlines():
            say(line, err=True)
    if isinstance(error, OSError):
        _give_up_output()


def _print_fault(error: Exception) -> bool:
    """Print where in the user's code an error is; return False if none of it was running."""
    from prism._faults import entry_of, location_of

    source, entry = location_of(error), entry_of(error)
    notes = getattr(error, "__notes__", ())
    others = [each for each in notes if not each.startswith(f"{source}: ")]
    is_refused = isinstance(error, PrismError)
    if source is None or entry is None:
        return False
    # what prism itself refuses belongs to a line in a run, where it is noted, or in a module
    if is_refused and len(others) == len(notes) and entry.function != "<module>":
        return False

    kind = "" if is_refused else f"{type(error).__name__}: "
    note(f"{source}: {kind}{' '.join(str(error).split())}")
    cure = "correct it and try again; prism --traceback COMMAND shows the full traceback"
    for line in (source.text, *others, *[cure] * (not is_refused)):
        say(f"  {line}", err=True)

    return True


def _print_wrong_input(error: Exception) -> bool:
    """Print what is wrong outside of prism, in one line or one for each problem."""
    if isinstance(error, PrismError):
        named = naming_options(error) if isinstance(error, InputError) else error
        first, *problems = str(named).split("\n  ")
        note(" ".join(first.split()))
        for problem in problems:
            say(f"  {' '.join(problem.split())}", err=True)
    elif isinstance(error, OSError):  # such as a full disk; what was written until then stays
        note(f"{error.filename or 'output'}: {error.strerror or error}")
    elif isinstance(error, typer.TyperException):
        # what pydantic puts before the reason says nothing to a user
        if message := error.format_message().replace("Value error, ", ""):
            # it is empty if the help was shown instead
            note(f"{' '.join(message.split())} (try --help)")
    else:
        return False
    return True


def _give_up_output() -> None:
    """Discard output that could not be written."""
    # at exit, the interpreter would try to write it again, and fail with a traceback
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
