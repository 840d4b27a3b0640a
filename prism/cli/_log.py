"""``prism log``: a log as tables, as the rows of a query, by agent, decision, and chart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from prism.cli._options import AllRuns, AsJson, Group, OutFile, Runs
from prism.cli._screen import note, print_facts, print_json, say
from prism.cli._tables import open_logs, records_of, write_table
from prism.errors import InputError

_COLUMNS = {
    "dwell": "chart state visits complete cut open mean median p90",
    "decisions": "state model asked fallback_share latency_p50 latency_p99 latency_max entropy",
    "cascades": "root_id author_id size depth breadth virality agents lifetime_ticks",
    "faults": "fault from_state trigger error count agents round line",
    "stuck": "state trigger reason guards count agents still_there round tick timestamp",
    "stuck_agents": "chart agent_id state since refused trigger reason guards",
}
"""The columns that are drawn, of tables that have many others."""

_LISTED = """
select coalesce(decision_id, text_id) as id, round, tick,
       coalesce(state || ' on ' || "trigger", 'text ' || "key") as what,
       coalesce(chosen, text) as "came out", try_cast(probabilities ->> chosen as double) as p,
       source, agent_id, line, reason, context, options, probabilities, model
from events
where event in ('reasoner.decision', 'text.written')
order by line
"""
_ONE = "from events where coalesce(decision_id, text_id) = $id order by line"
_LISTED_COLUMNS = ("id", "round", "tick", "what", "came out", "p", "source")
_ADDED = ("run", "line", "keys")
_LEFT_OUT = ("event", "level", "timestamp", "chart")


class _Tables(Group):
    """The commands of ``prism log``; whatever else comes first is a table or a query."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command with its name and the arguments left."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            return "table", self.commands["table"], args
        return super().resolve_command(ctx, args)


log = typer.Typer(
    cls=_Tables,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    short_help="Make tables of a run's log, or query it in SQL.",
    help='Make tables of a run\'s log: prism log TABLE RUN, or prism log "select ..." RUN. The '
    "tables are runs, states, transitions, dwell, decisions, costs, faults, stuck, "
    "stuck_agents, cascades, "
    "agents, participation, measures, arms, world, messages, run_measures and diff; "
    '"from states_at(1)" counts nested states on a level, as do transitions_at(1) and dwell_at(1); '
    "\"from decisions_by(['source'])\" and costs_by(['what']) group by other columns.",
)


@log.command()
def table(
    what: Annotated[
        str, typer.Argument(metavar="TABLE|QUERY", help="A table, or a query in SQL on the tables.")
    ],
    runs: Runs,
    out: OutFile = None,
    as_json: AsJson = False,
    all_runs: AllRuns = False,
) -> None:
    """Make a table, or carry out a query in SQL on the tables and on `events`.

    `-o` writes CSV, JSON or Parquet by the name of the file; `-o -` writes CSV to standard output.

    **Examples**

    * `prism log states runs/first -o states.csv`

    * `prism log "select state, avg(length) from visits group by state" runs/first`

    * `prism log diff runs/first runs/again`
    """
    opened = open_logs(runs, all_runs=all_runs)
    name = what.replace("-", "_")
    rows = opened.table(name) if name.isidentifier() else opened.sql(what)
    columns = _COLUMNS[name].split() if name in _COLUMNS else None
    write_table(rows, out, runs, as_json=as_json, columns=columns)
    if name.startswith("stuck") and not rows.limit(1).fetchall():
        note("only a log with details=True (prism.runlog.configure) has events that did nothing")
    for each in opened.notes if "_at" in what else ():
        if each.kind in ("no_levels", "unjoined"):
            note(str(each))


@log.command()
def agent(
    agent_id: Annotated[str, typer.Argument(metavar="ID", help="The agent.")],
    runs: Runs,
    out: OutFile = None,
    as_json: AsJson = False,
    all_runs: AllRuns = False,
) -> None:
    """List everything that one agent did, and how others reacted to its posts and messages.

    **Example**

    * `prism log agent agent_0001 runs/first`
    """
    rows = open_logs(runs, all_runs=all_runs).table("agent", agent_id)
    # without rounds, as in the log of a service, the time says when
    columns = ["chart", *(("round", "tick") if "round" in rows.columns else ("timestamp",)), "what"]
    write_table(rows, out, runs, as_json=as_json, columns=columns)


@log.command()
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
    out: OutFile = None,
    as_json: AsJson = False,
    all_runs: AllRuns = False,
) -> None:
    """Replay a log against a chart, and report every step that the chart does not allow.

    The exit status is 0 if there are none, and 1 if there are some or if nothing in a run belongs
    to the chart.

    **Example**

    * `prism log check runs/first --chart social_feed`
    """
    from prism.cli._chart_argument import chart_from

    statechart, opened = chart_from(chart), open_logs(runs, all_runs=all_runs)

    from prism.analysis import check_log

    result = check_log(opened, statechart)
    others = ", ".join(sorted(result.other_charts))
    if not result.checked:
        by = f": its transitions are by the chart {others}, not {statechart.name}" if others else ""
        raise InputError(f"the log has nothing to check{by}")

    if result.counts or out is not None or as_json:
        write_table(result.violations, out, runs, as_json=as_json)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(result.counts.items()))
    steps = f"{result.checked:,} steps"
    note(f"violations in {steps}: {kinds}" if kinds else f"{steps} agree")
    if others:
        note(f"transitions by the chart {others} were not checked")
    if result.counts:
        raise typer.Exit(1)


@log.command()
def decision(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[ID] RUN",
            help="Folder of the run, or its log; before it a decision or text, such as "
            "agent_0001:3, the agent's third. Without one, all are listed.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Show a decision or a text: the question, the prompt, the reply, and the choice.

    Prompts and replies are in the journal of a run that is kept. `prism log agent` shows what came
    of it.

    **Examples**

    * `prism log decision runs/model`

    * `prism log decision agent_0001:3 runs/model`
    """
    *ids, name = names
    run = Path(name)
    if len(ids) > 1:
        raise InputError(f"takes an ID and a run, not {len(names)} names: {', '.join(names)}")
    if ids:
        _show(run, ids[0], as_json=as_json)
        return
    write_table(open_logs([run]).sql(_LISTED), None, as_json=as_json, columns=_LISTED_COLUMNS)


def _show(run: Path, record_id: str, *, as_json: bool) -> None:
    """Print one decision or text, as tables or as JSON."""
    from prism.reasoner.prompts import in_words
    from prism.runlog.reader import find_answers, locate_log

    table = open_logs([run]).sql(_ONE, id=record_id)
    if not (records := records_of(table)):
        problem = f"holds no decision or text {record_id!r}: 'prism log decision {run}' lists them"
        raise InputError(problem, path=run)
    kinds = dict(zip(table.columns, map(str, table.types), strict=True))
    event = {
        key: json.loads(value) if kinds[key] == "JSON" else value
        for key, value in records[0].items()
        if value is not None and key not in _ADDED
    }
    record = find_answers(locate_log(run).parent, [record_id]).get(record_id)
    if as_json:
        print_json({"id": record_id, "event": event, "record": record})
        return

    facts = {key: in_words(value) for key, value in event.items() if key not in _LEFT_OUT}
    print_facts(record_id, facts)
    if record is None:
        note(f"{run} has no prompt for it: no model was asked, or there is no answers.jsonl")
        return
    parts = [("Prompt", record.get("prompt"))]
    for each in record.get("repairs", ()):
        parts += [("Useless reply", each["reply"]), ("Next prompt", each["prompt"])]
    for heading, content in (*parts, ("Reply", record.get("reply"))):
        say(heading)
        text = content if isinstance(content, str) else json.dumps(content, indent=2)
        for line in text.splitlines():
            say(f"  {line}")
