"""Entry point: runs a command, and turns wrong input into one line and exit status 2."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, wraps
from importlib import import_module
from inspect import Parameter, cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from prism._version import __version__
from prism.cli._options import OPTIONS_SECTION, Panel, documented, option, with_signature
from prism.cli._screen import note, say
from prism.errors import LLMError, PrismError, TooManyFallbacksError

_INTERRUPTED = 130
_TRACEBACK = "--traceback"
"""An option that is allowed anywhere."""

_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Begin here": {"tour": "_tour:tour"},
    "Run": {
        "run": "_run:run",
        "simulate": "_run:simulate",
        "resume": "_run:resume",
        "replay": "_run:replay",
        "status": "_status:status",
        "watch": "_watch:watch",
    },
    "See the results": {
        "report": "_report:report",
        "log": "_log:logs",
        "memory": "_memory:memories",
    },
    "Experiment": {
        "batch": "_batch:batch",
        "compare": "_compare:compare",
        "rerun": "_rerun:rerun",
        "sensitivity": "_batch:sensitivity",
        "fit": "_fit:fit",
        "calibrate": "_calibrate:calibrate",
    },
    "Prepare and check": {
        "world": "_world:worlds",
        "chart": "_chart:charts",
        "workflow": "_workflow:workflows",
        "think": "_think:thinking",
        "doctor": "_doctor:doctor",
    },
}
"""The place of each command, by subject and in the order of the help.

A place is ``module:function`` or ``module:group``.
"""

_MODULES = {name: place for group in _GROUPS.values() for name, place in group.items()}


class _OnDemand(TyperGroup):
    """All commands; only those that are called or listed are imported."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # typer only looks here for names, to suggest one that is similar to a misspelt one
        self.commands: Any = dict.fromkeys(_MODULES)

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all commands, in the order in which help shows them."""
        return list(_MODULES)

    def get_command(self, _ctx: Any, name: str) -> Any:
        """Return the command with this name; None if there is none."""
        return _make(name) if name in _MODULES else None


@cache
def _make(name: str) -> Any:
    """Return a command, or a group."""
    module, _, attribute = _MODULES[name].partition(":")
    found = getattr(import_module(f"prism.cli.{module}"), attribute)
    group = next(title for title, commands in _GROUPS.items() if name in commands)
    # typer makes no group of a single command
    holder = typer.Typer(rich_markup_mode="rich")
    holder.callback()(_nothing)
    if isinstance(found, typer.Typer):
        for one in found.registered_commands:
            one.callback, one.cls = _with_panels(one.callback), _Command
        holder.add_typer(found, name=name, rich_help_panel=group)
    else:
        holder.command(name, cls=_Command, rich_help_panel=group)(_with_panels(found))

    made: Any = typer.main.get_command(holder)
    return made.commands[name]


def _with_panels(function: Any) -> Callable[..., Any]:
    """Return a command with the help of its options and with the options of its panels.

    The options of a panel replace the panel's argument.
    """
    own = documented(function).values()

    @wraps(function)
    def command(**given: Any) -> Any:
        return function(**_gathered(own, given))

    command.__doc__ = OPTIONS_SECTION.sub("", cleandoc(function.__doc__ or ""))
    options = list(_options_among(own))
    rare = {each.name for each, is_rare in options if is_rare}
    made = with_signature(command, [*(each for each, _ in options), *[_HELP_ALL] * bool(rare)])
    made.rare = rare  # type: ignore[attr-defined]

    return made


def _panel_of(parameter: Parameter) -> Panel | None:
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return next((each for each in metadata if isinstance(each, Panel)), None)


def _options_among(
    parameters: Iterable[Parameter], essential: Collection[str] | None = None
) -> Iterator[tuple[Parameter, bool]]:
    """Yield the options of a command, those of its panels included, and whether each is rare."""
    for each in parameters:
        panel = _panel_of(each)
        if panel is None:
            yield each, essential is not None and each.name not in essential
        else:
            yield from _options_among(panel.options(), panel.essential)


def _gathered(parameters: Iterable[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a function; a panel gets the options that were given.

    Others are None, False, or an empty list.
    """
    found: dict[str, Any] = {}
    for each in parameters:
        panel = _panel_of(each)
        if panel is None:
            found[each.name] = given[each.name]
        else:
            values = _gathered(panel.options(), given).items()
            found[each.name] = panel.gather(
                **{
                    name: value
                    for name, value in values
                    if value is not None and value is not False and value != []
                }
            )

    return found


class _Command(TyperCommand):
    """A command whose ``--help`` shows the most common options."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # typer keeps the line breaks of a docstring, which fit no terminal but ours
        paragraphs = (self.help or "").split("\n\n")
        self.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; with ``--help-all``, that of all options."""
        # typer copies the options of a callback
        rare = () if ctx.meta.get(_ALL) else getattr(self.callback, "rare", ())
        hidden = [each for each in self.params if each.name in rare]
        for each in hidden:
            each.hidden = True  # type: ignore[attr-defined]
        try:
            super().format_help(ctx, formatter)
        finally:
            for each in hidden:
                each.hidden = False  # type: ignore[attr-defined]


def _show_all(ctx: typer.Context, asked: bool) -> None:
    if asked:
        ctx.meta[_ALL] = True
        say(ctx.get_help())
        raise typer.Exit


_ALL = "prism.help_all"
_HELP_ALL = option(
    *("help_all", bool, False, "--help-all"),
    callback=_show_all,
    is_eager=True,
    help="Show all options, including rarely used ones, and exit.",
)


def _nothing() -> None:
    """Represent the command line itself."""


app: typer.Typer = typer.Typer(
    name="prism",
    cls=_OnDemand,
    help="Statecharts for LLM-driven agents: run a simulation in which every transition is "
    "explicit, logged and repeatable.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        say(f"prism {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    traceback: Annotated[  # taken out before
        bool, typer.Option(_TRACEBACK, help="Show the full traceback of an error.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong input, 130 interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # posts may have characters that the user's terminal cannot show
        sys.stdout.reconfigure(errors="replace")

    # what went wrong is in the run's log and summary
    logging.getLogger("prism").addHandler(logging.NullHandler())

    sys.exit(_run())


@cache
def _command() -> Any:
    """Return the command line, which caches the commands that it has made."""
    return typer.main.get_command(app)


def _run() -> int:
    arguments = [each for each in sys.argv[1:] if each != _TRACEBACK]
    if len(arguments) == len(sys.argv) - 1:
        return _carried_out(arguments)

    from prism.cli._faults import whole_tracebacks

    with whole_tracebacks():
        return _carried_out(arguments)


def _carried_out(arguments: list[str]) -> int:
    try:
        status = int(_command()(arguments, prog_name="prism", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except Exception as error:
        _report(error)
        return _status_of(error)

    if status == _INTERRUPTED:  # typer's status for a KeyboardInterrupt
        note("interrupted")

    return status


def _report(error: Exception) -> None:
    """Print what went wrong, with the traceback if it is a mistake in prism itself."""
    # loaded by commands that fail alone
    from prism._faults import shows_all
    from prism.cli._faults import tell_all, tell_fault

    is_told = tell_fault(error)
    if not is_told and isinstance(error, (typer.TyperException, PrismError, OSError)):
        _tell(error)
        is_told = True
    if shows_all() or not is_told:
        tell_all(error)
    if isinstance(error, OSError):
        _give_up_output()


def _tell(error: typer.TyperException | PrismError | OSError) -> None:
    """Print what went wrong outside of prism, in one line or one for each problem."""
    if isinstance(error, PrismError):
        first, *problems = str(error).split("\n  ")
        _complain(first)
        for problem in problems:
            say(f"  {' '.join(problem.split())}", err=True)
    elif isinstance(error, OSError):  # such as a full disk; what was written until then stays
        _complain(f"{error.filename or 'output'}: {error.strerror or error}")
    # what pydantic puts before the reason says nothing to a user
    elif message := error.format_message().replace("Value error, ", ""):
        # it is empty if the help was shown instead
        _complain(f"{message} (try --help)")


def _status_of(error: Exception) -> int:
    """Return the exit status: 2 for wrong input, else 1."""
    is_input = isinstance(error, (typer.TyperException, PrismError))
    return 2 if is_input and not isinstance(error, (TooManyFallbacksError, LLMError)) else 1


def _give_up_output() -> None:
    """Discard output that could not be written."""
    # at exit, the interpreter would try to write it again, and fail with a traceback
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(problem: str) -> None:
    note(" ".join(problem.split()))
