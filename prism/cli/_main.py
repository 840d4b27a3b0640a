"""Entry point: runs a command, and turns wrong input into one line and exit status 2."""

from __future__ import annotations

import io
import logging
import os
import sys
from functools import cache
from traceback import format_exc
from typing import Annotated, Any

import typer

from prism import __version__
from prism.cli._batch import batch
from prism.cli._calibrate import calibrate
from prism.cli._chart import charts
from prism.cli._chart_explain import explain
from prism.cli._chart_fits import fits
from prism.cli._compare import compare
from prism.cli._doctor import doctor
from prism.cli._log import logs
from prism.cli._log_agents import agents, follows, interactions, why
from prism.cli._log_decision import decision
from prism.cli._log_measures import OF_RUNS
from prism.cli._log_worlds import (
    arms,
    assignments,
    measures,
    parameters,
    treatments,
    world,
)
from prism.cli._memory import memories
from prism.cli._protocol import protocol
from prism.cli._report import report
from prism.cli._rerun import rerun
from prism.cli._screen import note, say
from prism.cli._sensitivity import sensitivity
from prism.cli._simulate import simulate
from prism.cli._status import status
from prism.cli._think import thinking
from prism.cli._workflow import workflows
from prism.cli._world import worlds
from prism.errors import PrismError, TooManyFallbacksError

_INTERRUPTED = 130

app: typer.Typer = typer.Typer(
    name="prism",
    help="Statecharts for LLM-driven agents: run a simulation in which every transition is "
    "explicit, logged and repeatable.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command()(simulate)
app.command()(status)
app.command()(report)
app.command()(calibrate)
app.command()(protocol)
app.command()(doctor)
app.command()(batch)
app.command()(rerun)
app.command()(compare)
app.command()(sensitivity)
charts.command()(explain)
charts.command()(fits)
logs.command()(agents)
logs.command()(interactions)
logs.command()(follows)
logs.command()(why)
logs.command()(decision)
logs.command()(measures)
logs.command()(treatments)
logs.command()(assignments)
logs.command()(arms)
logs.command()(parameters)
logs.command()(world)
for table in OF_RUNS:
    logs.command()(table)
app.add_typer(charts, name="chart")
app.add_typer(logs, name="log")
app.add_typer(memories, name="memory")
app.add_typer(thinking, name="think")
app.add_typer(workflows, name="workflow")
app.add_typer(worlds, name="world")


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
    """Return all commands; made once, as it takes a tenth of a second."""
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
