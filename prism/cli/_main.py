"""Entry point: runs a command, and turns wrong input into one line and exit status 2."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache, wraps
from importlib import import_module
from inspect import Parameter, signature
from traceback import format_exc
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from prism import __version__
from prism.cli._options import Panel, with_signature
from prism.cli._screen import note, say
from prism.errors import PrismError, TooManyFallbacksError

_INTERRUPTED = 130

_MODULES: Mapping[str, tuple[str, ...]] = {
    "simulate": ("_simulate:simulate",),
    "status": ("_status:status",),
    "report": ("_report:report",),
    "calibrate": ("_calibrate:calibrate",),
    "doctor": ("_doctor:doctor",),
    "batch": ("_batch:batch",),
    "rerun": ("_rerun:rerun",),
    "compare": ("_compare:compare",),
    "sensitivity": ("_batch:sensitivity",),
    "chart": ("_chart:charts",),
    "log": ("_log:logs", "_log_decision:decision"),
    "memory": ("_memory:memories",),
    "think": ("_think:thinking",),
    "workflow": ("_workflow:workflows",),
    "world": ("_world:worlds",),
}
"""Where each command is, in the order of the help: ``module:function``, or ``module:group``
followed by what is added to the group."""


class _OnDemand(TyperGroup):
    """All commands, of which only those are imported that are called or listed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # typer looks here for names alone, to suggest one that is like a misspelt one
        self.commands: Any = dict.fromkeys(_MODULES)

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all commands, in the order in which help shows them."""
        return list(_MODULES)

    def get_command(self, _ctx: Any, name: str) -> Any:
        """Return a command; None if there is none of this name."""
        return _make(name) if name in _MODULES else None


@cache
def _make(name: str) -> Any:
    """Return a command, or a group with the commands that other modules add to it."""
    place, *added = _MODULES[name]
    found = _load(place)
    # of one command alone typer makes no group
    holder = typer.Typer(rich_markup_mode="rich")
    holder.callback()(_nothing)
    if isinstance(found, typer.Typer):
        for other in added:
            found.command()(_load(other))
        for each in (*found.registered_commands, found.registered_callback):
            if each is not None and each.callback is not None:
                each.callback = _with_panels(each.callback)
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(_with_panels(found))

    group: Any = typer.main.get_command(holder)
    return group.commands[name]


def _with_panels(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that has the options of a panel in the place of the panel's argument."""
    own = signature(function, eval_str=True).parameters
    panels = {
        name: (panel.options(), panel)
        for name, each in own.items()
        for panel in getattr(each.annotation, "__metadata__", ())
        if isinstance(panel, Panel)
    }
    if not panels:
        return function

    @wraps(function)
    def command(**given: Any) -> Any:
        for name, (options, panel) in panels.items():
            values = {each.name: given.pop(each.name) for each in options}
            # an option that was not given is None, a flag False, and a list may be empty
            told = {
                key: value
                for key, value in values.items()
                if value is not None and value is not False and value != []
            }
            given[name] = panel.gather(**told)
        return function(**given)

    parameters = [
        each.replace(kind=Parameter.KEYWORD_ONLY)
        for name, own_one in own.items()
        for each in (panels[name][0] if name in panels else (own_one,))
    ]
    return with_signature(command, parameters)


def _nothing() -> None:
    """Stand for the command line itself."""


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"prism.cli.{module}"), name)


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
) -> None:
    """Take the options that stand before a command."""


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong input, 130 interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # posts may say what the user's terminal cannot show
        sys.stdout.reconfigure(errors="replace")

    # what went wrong is in the run's log and summary
    logging.getLogger("prism").addHandler(logging.NullHandler())

    sys.exit(_run())


@cache
def _command() -> Any:
    """Return the command line, which keeps the commands that it has made."""
    return typer.main.get_command(app)


def _run() -> int:
    try:
        status = int(_command()(prog_name="prism", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        status = _INTERRUPTED
    except typer.TyperException as error:
        # what pydantic puts before the reason says nothing to a user
        message = error.format_message().replace("Value error, ", "")
        # it is empty where the help was shown instead
        return _complain(message, hint=" (try --help)") if message else 2
    except TooManyFallbacksError as error:
        _complain(str(error))
        return 1
    except PrismError as error:
        return _complain(str(error))
    except OSError as error:  # such as a full disk; what was written until then stays
        _complain(f"{error.filename or 'output'}: {error.strerror or error}")
        _give_up_output()
        return 1
    except Exception:
        # a mistake of prism itself; what it quotes may come from anywhere
        for line in format_exc().splitlines():
            say(line, err=True)
        return 1

    if status == _INTERRUPTED:  # what typer makes of a KeyboardInterrupt
        note("interrupted")

    return status


def _give_up_output() -> None:
    """Discard output that could not be written."""
    # the interpreter would try to write it once more at exit, and fail with a traceback
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(problem: str, hint: str = "") -> int:
    note(f"{' '.join(problem.split())}{hint}")
    return 2
