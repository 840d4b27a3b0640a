"""``prism log``: a run's log as tables, as the rows of a query, and held against a chart."""

from __future__ import annotations

import re
from ast import literal_eval
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from prism.cli._decision import decision
from prism.cli._options import AsJson, OutFile, Runs
from prism.cli._screen import note
from prism.cli._spent import spent_lines
from prism.cli._tables import open_logs, write_table
from prism.errors import InputError

_SHOWN = {
    "dwell": "chart state visits complete cut open mean median p90",
    "decisions": "state model asked fallback_share latency_p50 latency_p99 latency_max entropy",
    "cascades": "root_id author_id size depth breadth virality agents lifetime_ticks",
    "agent": "round tick what",
    "faults": "fault from_state trigger error count agents round line",
    "stuck": "state trigger reason guards count agents still_there round tick",
}
"""The columns that are drawn, of tables that have many others."""

_CALL = re.compile(r"([\w-]+)(?:\((.*)\))?$", re.DOTALL)


class _Tables(TyperGroup):
    """The commands of ``prism log``; whatever else comes first is a table or a query."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command with its name and the arguments left."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            return "table", self.commands["table"], args
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Tables,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help='Make tables of a run\'s log: prism log TABLE RUN, or prism log "select ..." RUN. The '
    "tables are runs, states, transitions, dwell, decisions, costs, faults, stuck, cascades, "
    "agents, participation, measures, arms, world, messages, run_measures and diff; "
    "states_at(1), transitions_at(1) and dwell_at(1) count nested states on a level, and "
    "decisions_by(['source']) and costs_by(['what']) group by other columns.",
)


@app.command()
def table(
    what: Annotated[
        str, typer.Argument(metavar="TABLE|QUERY", help="A table, or a query in SQL on the tables.")
    ],
    runs: Runs,
    out: OutFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a table, or carry out a query in SQL on the tables and on `events`.

    `-o` writes CSV, JSON or Parquet by the name of the file; `-o -` writes CSV to standard output.

    **Examples**

    * `prism log states runs/first -o states.csv`

    * `prism log "select state, avg(length) from visits group by state" runs/first`

    * `prism log diff runs/first runs/again`
    """
    opened = open_logs(runs)
    name, *arguments = _called(what)
    rows = opened.table(name, *arguments) if name else opened.sql(what)
    shown = _SHOWN[name].split() if name in _SHOWN else None
    write_table(rows, out, runs, as_json=as_json, shown=shown)
    if name == "costs" and out is None and not as_json:
        _note_spending(runs)


def _note_spending(runs: list[Path]) -> None:
    """Print what is in no log: loading the model, and money."""
    from prism.runs import run_status

    for run in runs:
        if (spent := run_status(run).spent) is not None:
            note(f"{run} {next(spent_lines(spent))}")


@app.command()
def agent(
    agent_id: Annotated[str, typer.Argument(metavar="ID", help="The agent.")],
    runs: Runs,
    out: OutFile = None,
    as_json: AsJson = False,
) -> None:
    """List everything that one agent did, and how others reacted to its posts and messages.

    **Example**

    * `prism log agent agent_0001 runs/first`
    """
    rows = open_logs(runs).table("agent", agent_id)
    write_table(rows, out, runs, as_json=as_json, shown=_SHOWN["agent"].split())


@app.command()
def check(
    runs: Runs,
    chart: Annotated[
        str,
        typer.Option(
            metavar="CHART",
            help="Name of a chart, a .json or .scxml file, a workflow (.yaml), or "
            "package.module:attribute, which may be a class of a world's agents.",
        ),
    ],
    timeout: Annotated[
        int | None,
        typer.Option(min=1, help="timeout_threshold, if neither the chart nor the log has it."),
    ] = None,
    out: OutFile = None,
    as_json: AsJson = False,
) -> None:
    """Replay a log against a chart, and report every step that the chart does not allow.

    The exit status is 0 if there are none, and 1 if there are some or if nothing in a run belongs
    to the chart.

    **Example**

    * `prism log check runs/first --chart social_feed`
    """
    from prism.cli._chart_argument import chart_from

    known, opened = chart_from(chart), open_logs(runs)

    from prism.analysis import check_log

    found = check_log(opened, known, timeout_threshold=timeout)
    others = ", ".join(sorted(found.other_charts))
    if not found.checked:
        by = f": its transitions are by the chart {others}, not {known.name}" if others else ""
        raise InputError(f"the log has nothing to check{by}")

    if found.found or out is not None or as_json:
        write_table(found.violations, out, runs, as_json=as_json)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(found.found.items()))
    steps = f"{found.checked:,} steps"
    note(f"violations in {steps}: {kinds}" if kinds else f"{steps} agree")
    if others:
        note(f"transitions by the chart {others} were not checked")
    if found.found:
        raise typer.Exit(1)


app.command()(decision)


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
