"""A table of ``prism log``: its command, and how it is made, drawn and written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from prism.cli._options import OutFile, Runs, TableFile, argument, option, with_signature
from prism.cli._output import missing_runs_first
from prism.cli._screen import note
from prism.cli._table_output import TableFormat, choose_format, write
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.analysis import RunLogs

TableT = TypeVar("TableT")
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LogTable:
    """A table of ``prism log``.

    Args:
        declared: Declares the command by its name, docstring and parameters: the options that the
            table has in addition to those of every table, and the agent that it may be about.
        made_by: The function of `prism.analysis` that makes the table from the logs and the
            options; by default the function with the command's name.
        instead: By option, the function that makes the table if the option is given.
        shown: Names of the columns to draw, with blanks between them; by default all.
        hidden: Names of columns that are not drawn.
        drawn: The function of `prism.cli._log_forms` that makes the drawn table, and a line below
            it, from the table and the options.
        below: How to read the drawn table.
        after: Called with the runs after the table is drawn on the screen.
    """

    declared: Callable[..., None]
    made_by: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""
    hidden: str = ""
    drawn: str = ""
    below: str = ""
    after: Callable[[Sequence[Path]], None] | None = None

    def command(self) -> Callable[..., None]:
        """Return the command that makes and writes the table."""

        def command(**given: Any) -> None:
            self._carry_out(**given)

        own = signature(self.declared, eval_str=True).parameters.values()
        agent = [each for each in own if each.default is Parameter.empty]
        parameters = [
            *agent,
            argument("runs", Runs),
            *(each for each in own if each not in agent),
            option("as_format", TableFile),
            option("out", OutFile),
        ]
        command.__doc__ = self.declared.__doc__
        return with_signature(command, parameters)

    def _carry_out(
        self, *, runs: list[Path], as_format: str | None, out: Path | None, **given: Any
    ) -> None:
        with missing_runs_first(runs):
            # says which extra it takes
            import prism.analysis  # noqa: F401
        from prism.cli import _log_forms as forms

        if "agent_id" in given:
            given["agent_id"], runs = in_order(given["agent_id"], runs)
        chosen = choose_format(as_format, out)
        table = self._made(runs, given)
        hidden, hint = self.hidden.split(), None
        columns = self.shown.split() or [name for name in table.columns if name not in hidden]
        if self.drawn and chosen is TableFormat.TABLE:
            table, hint = getattr(forms, self.drawn)(table, given)
            columns = table.columns
        write(table, chosen, out, columns, hint, below=self.below, reads=runs)
        if self.after is not None and chosen is TableFormat.TABLE and out is None:
            self.after(runs)

    def _made(self, runs: list[Path], given: Given) -> Any:
        """Return the table."""
        function = self.made_by or self.declared.__name__
        passed = dict(given)
        for name, other in self.instead.items():
            if value := passed.pop(name):
                function, passed = other, {**passed, name: value}

        with missing_runs_first(runs):
            table_of = getattr(import_module("prism.analysis"), function)

        def made(opened: RunLogs) -> Any:
            try:
                return table_of(opened, **passed)
            except InputError:
                if "agent_id" in passed:  # it may be in lines that could not be read
                    print_notes(opened)
                raise

        return make(runs, made)


def in_order(agent: str, runs: list[Path]) -> tuple[str, list[Path]]:
    """Return an agent or an ID, and runs, even if it was named among or after the runs."""
    others = [each for each in runs if not each.exists()]
    if len(others) != 1 or not Path(agent).exists():
        return agent, runs

    return str(others[0]), [Path(agent), *(each for each in runs if each is not others[0])]


def make(runs: Sequence[Path], table_of: Callable[[RunLogs], TableT]) -> TableT:
    """Make a table, and print the notes on the logs to standard error.

    Raises:
        InputError: If the logs are all empty.
    """
    with missing_runs_first(runs):
        from prism.analysis import read_log

    opened = read_log(*runs)
    table = table_of(opened)
    print_notes(opened)
    return table


def print_notes(opened: RunLogs) -> None:
    """Print the notes on the logs to standard error.

    Raises:
        InputError: If the logs are all empty.
    """
    notes = list(opened.notes)
    # Without any run, the last note says why.
    nothing = None if opened.runs else notes.pop()
    for found in notes:
        note(str(found))

    if nothing is not None:
        raise InputError(nothing.message, path=nothing.path, line=nothing.line)
