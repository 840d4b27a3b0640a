"""``prism log``: a run's log as tables, or as the rows of a query."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from prism.cli._log_decision import decision, in_order
from prism.cli._options import OutFile, Runs, TableFile
from prism.cli._output import missing_runs_first
from prism.cli._screen import counted, evenly, note, say
from prism.cli._table_output import TableFormat, choose_format, write
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.analysis import Conformance, Log

_SHOWN = {
    "dwell": "chart state visits complete cut open mean median p90",
    "decisions": "state model asked fallback_share latency_p50 latency_p99 latency_max entropy",
    "cascades": "root_id author_id size depth breadth virality agents lifetime_ticks",
    "agent": "round tick what",
    "faults": "fault from_state trigger error count agents round line",
    "stuck": "state trigger reason guards count agents still_there round tick",
}
"""The columns that are drawn, of tables that have many others."""

_BELOW = {
    "transitions": "The probability is among transitions that leave the state; decisions to stay "
    "are in prism log decisions.",
    "dwell": "Lengths are in ticks, which chart.tick counts: where nobody calls it, they are 0. "
    "Where events happen at rates, they are in rounds.",
    "agents": "Fields of an agent are as it joined.",
}
_MOST_ROUNDS = 8
_CALL = re.compile(r"([\w-]+)(?:\((.*)\))?$", re.DOTALL)


class _Tables(TyperGroup):
    """The commands of ``prism log``; whatever else comes first is a table or a query."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command with its name and the arguments left."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            return "table", self.commands["table"], args
        return super().resolve_command(ctx, args)


logs = typer.Typer(
    cls=_Tables,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help='Make tables of a run\'s log: prism log TABLE RUN, or prism log "select ..." RUN. The '
    "tables are runs, states, transitions, dwell, decisions, costs, faults, stuck, cascades, "
    "agents, participation, measures, treatments, arms, world, messages and run_measures; "
    "states_at(1), transitions_at(1) and dwell_at(1) count nested states on a level, and "
    "decisions_by(['source']) and costs_by(['what']) group by other columns.",
)


@logs.command()
def table(
    what: Annotated[str, typer.Argument(metavar="TABLE|QUERY", show_default=False)],
    runs: Runs,
    as_format: TableFile = None,
    out: OutFile = None,
) -> None:
    """Make a table, or carry out a query in SQL on the tables and on events.

    Options:
        what: A table, as in prism log states RUN, or a query, as in the examples.

    [bold]Examples[/bold]

    prism log states runs/first -o states.csv

    prism log "states_at(1)" runs/day

    prism log "select state, avg(length) from visits group by state" runs/first
    """
    opened = _opened(runs)
    chosen = choose_format(as_format, out)
    name, *arguments = _called(what)
    rows = opened.table(name, *arguments) if name else opened.sql(what)
    drawn, hint = rows, None
    if chosen is TableFormat.TABLE and name == "states":
        drawn, hint = _side_by_side(opened, rows)
    elif chosen is TableFormat.TABLE and name == "run_measures":
        drawn = _upright(opened, rows)
    shown = _SHOWN[name].split() if name in _SHOWN else drawn.columns
    write(drawn, chosen, out, shown, hint, below=_BELOW.get(name, ""), reads=runs)
    print_notes(opened)
    if name == "costs" and chosen is TableFormat.TABLE and out is None:
        _say_spent(runs)


@logs.command()
def agent(
    agent_id: Annotated[str, typer.Argument(metavar="ID", show_default=False)],
    runs: Runs,
    as_format: TableFile = None,
    out: OutFile = None,
) -> None:
    """List everything that one agent did, and how others reacted to its posts and messages.

    Options:
        agent_id: The agent.

    [bold]Example[/bold]

    prism log agent agent_0001 runs/first
    """
    agent_id, runs = in_order(agent_id, runs)
    opened = _opened(runs)
    try:
        rows = opened.table("agent", agent_id)
    except InputError:
        print_notes(opened)
        raise
    chosen = choose_format(as_format, out)
    write(rows, chosen, out, _SHOWN["agent"].split(), reads=runs)
    print_notes(opened)


@logs.command()
def check(
    runs: Runs,
    chart: Annotated[str, typer.Option(metavar="CHART")],
    timeout: Annotated[int | None, typer.Option(min=1)] = None,
    as_format: TableFile = None,
    out: OutFile = None,
) -> None:
    """Replay a log against a chart, and report every step that the chart does not allow.

    The printed table shows the first of them; the other formats have all. The exit status is 0 if
    there are none, and 1 if there are some or if nothing in a run belongs to the chart.

    Options:
        chart: Name of a chart, a .json or .scxml file, a workflow (.yaml), or
            package.module:attribute, which may be a class of a world's agents (rumour.py:Person).
        timeout: The agents' timeout_threshold, if neither the chart nor the log has it.

    [bold]Example[/bold]

    prism log check runs/first --chart social_feed
    """
    from prism.analysis import check_log
    from prism.cli._chart_argument import chart_from

    known, chosen = chart_from(chart), choose_format(as_format, out)
    opened = _opened(runs)
    found = check_log(opened, known, timeout_threshold=timeout)
    print_notes(opened)
    if not found.checked:
        raise InputError(_nothing_checked(found, known.name))

    total = sum(found.found.values())
    if total or chosen is not TableFormat.TABLE:
        write(found.violations, chosen, out, found.violations.columns, total=total, reads=runs)
    for run in found.unrelated:
        note(f"{run}: nothing belongs to the chart {known.name}")
    note(_verdict(found))
    if found.found or found.unrelated:
        raise typer.Exit(1)


@logs.command()
def diff(
    run: Annotated[Path, typer.Argument(metavar="RUN", show_default=False)],
    other: Annotated[Path, typer.Argument(metavar="OTHER", show_default=False)],
) -> None:
    """Show the first decision, transition, text and action in which a run differs from another.

    The exit status is 0 if there are none, and 1 if there are some.

    Options:
        run: Folder of a run, or its log.
        other: Folder of the run that is held against it, or its log.

    [bold]Example[/bold]

    prism log diff runs/first runs/again
    """
    from prism.cli._rerun import tell_difference
    from prism.science._rerun import differences

    opened = _opened([run, other])
    if len(opened.runs) < 2:
        lost = next(each for each in opened.notes if each.kind in ("unreadable", "empty"))
        raise InputError(lost.message, path=lost.path, line=lost.line)
    print_notes(opened)
    parted = differences(opened)
    tell_difference(run, parted)
    if any(parted.values()):
        raise typer.Exit(1)


logs.command()(decision)


def print_notes(opened: Log) -> None:
    """Print the notes on the logs to standard error."""
    for each in opened.notes:
        note(str(each))


def _opened(runs: Sequence[Path]) -> Log:
    """Open logs.

    Raises:
        InputError: If none of them has an event of prism.
    """
    with missing_runs_first(runs):
        from prism.analysis import read_log

    opened = read_log(*runs)
    if not opened.runs:
        *others, nothing = opened.notes
        for each in others:
            note(str(each))
        raise InputError(nothing.message, path=nothing.path, line=nothing.line)
    return opened


def _called(what: str) -> list[Any]:
    """Return a table and its arguments, as in ``states_at(1)``; an empty name for a query."""
    found = _CALL.match(what.strip())
    if found is None:
        return [""]
    try:
        arguments = literal_eval(f"({found[2]},)") if found[2] else ()
    except (ValueError, SyntaxError):
        return [""]
    return [found[1].replace("-", "_"), *arguments]


def _side_by_side(opened: Log, rows: Any) -> tuple[Any, str | None]:
    """Put the ends of some rounds side by side, if the states are counted by rounds and ticks."""
    rounds = [
        number
        for (number,) in opened.sql(
            "select distinct round from states where tick is not null order by round"
        ).fetchall()
    ]
    if not rounds:
        return rows, None
    some = [rounds[each] for each in evenly(len(rounds), _MOST_ROUNDS)]
    keys = ", ".join(each for each in ("run", "chart", "state") if each in rows.columns)
    columns = ", ".join(
        f'any_value(agents) filter (round = {each}) as "round {each}"' for each in some
    )
    ends = (
        f"select {keys}, {columns} from (from states qualify tick = max(tick) over "
        f"(partition by run, round)) group by {keys} order by {keys}"
    )
    hint = f"Agents at the end of {len(some)} of {len(rounds)} rounds; --format csv has every tick"
    return opened.sql(ends), hint


def _upright(opened: Log, rows: Any) -> Any:
    """Return a row for each measure and a column for each run."""
    labels = [run.label for run in opened.runs] if "run" in rows.columns else ["value"]
    names = [name for name in rows.columns if name != "run"]
    values = [[row[rows.columns.index(name)] for name in names] for row in rows.fetchall()]
    return _Rows(
        ["measure", *labels],
        [(name, *(own[number] for own in values)) for number, name in enumerate(names)],
    )


class _Rows:
    """Rows to draw.

    Args:
        columns: The names of the columns.
        rows: The rows.
    """

    def __init__(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.columns = columns
        self._rows = rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows."""
        return [tuple(map(_short, row)) for row in self._rows]


def _short(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) else None if value is None else str(value)


def _say_spent(runs: Sequence[Path]) -> None:
    """Print what kept runs have spent by their summaries, with the money if they had prices."""
    from prism.cli._spent import spent_lines
    from prism.runs import run_status

    for run in filter(Path.is_dir, runs):
        spent = run_status(run).spent
        for line in () if spent is None else spent_lines(spent):
            say(f"{run}: {line}" if len(runs) > 1 else line)


def _nothing_checked(found: Conformance, chart: str) -> str:
    others = ", ".join(sorted(found.other_charts))
    if not others:
        return "holds nothing to check"
    return f"nothing to check: its transitions are by the chart {others}, not {chart}"


def _verdict(found: Conformance) -> str:
    total = sum(found.found.values())
    checked = f"{found.checked - found.joined:,} steps"
    if found.joined:
        checked += f" and {counted(found.joined, 'first state')}"
    verdict = f"{checked} agree"
    if total:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(found.found.items()))
        verdict = f"{total:,} violations in {checked} ({kinds})"

    others = "".join(
        f"; {count:,} transitions by the chart {name} not checked"
        for name, count in found.other_charts.items()
    )

    return f"{verdict}{others}"
