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
        instead: By option, the function that makes the table if the option is given. A flag is not
            passed on to it.
        shown: Names of the columns to draw, with blanks between them; by default all. A table that
            another function has made is drawn as a whole.
        shown_by: The function of `prism.cli._log_forms` that returns them instead, from the table
            and the options.
        drawn: The function there that makes the drawn table, and a line below it, from the table
            and the options.
        below: How to read the drawn table.
        after: Called with the runs after the table is drawn on the screen.
    """

    declared: Callable[..., None]
    made_by: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""
    shown_by: str = ""
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
        by, round_ = given.pop("sort", None), given.pop("round_", None)
        table, is_other = self._made(runs, given)
        if round_ is not None:
            table = forms.of_round(table, round_)
        if by is not None:
            usual = {**given, **dict.fromkeys(self.instead, False)}
            table = forms.sorted_by(table, by, lambda: self._made(runs, usual)[0])
        columns = () if is_other else self._columns(table, given)
        if chosen is TableFormat.TABLE:
            self._draw(table, columns, runs, out, given)
        else:
            write(table, chosen, out, columns or table.columns, reads=runs)

    def _columns(self, table: Any, given: Given) -> Sequence[str]:
        """Return the columns to draw of a table of its own; none for all."""
        from prism.cli import _log_forms as forms

        found: Sequence[str] = self.shown.split()
        if self.shown_by:
            found = getattr(forms, self.shown_by)(table, given)
        return found

    def _draw(
        self,
        table: Any,
        columns: Sequence[str],
        runs: list[Path],
        out: Path | None,
        given: Given,
    ) -> None:
        from prism.cli import _log_forms as forms

        table, hint = getattr(forms, self.drawn)(table, given) if self.drawn else (table, None)
        table = forms.in_chart_order(table, runs)
        columns = columns or table.columns
        write(table, TableFormat.TABLE, out, columns, hint, below=self.below, reads=runs)
        if self.after is not None and out is None:
            self.after(runs)

    def _made(self, runs: list[Path], given: Given) -> tuple[Any, bool]:
        """Return the table, and whether an option's own function has made it."""
        function = usual = self.made_by or self.declared.__name__
        passed = dict(given)
        for name, other in self.instead.items():
            value = passed.pop(name)
            if value:
                function = other
                passed |= {} if value is True else {name: value}

        with missing_runs_first(runs):
            table_of = getattr(import_module("prism.analysis"), function)

        def made(opened: RunLogs) -> Any:
            try:
                return table_of(opened, **passed)
            except InputError:
                if "agent_id" in passed:  # it may be in lines that could not be read
                    print_notes(opened)
                raise

        return make(runs, made), function != usual


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
