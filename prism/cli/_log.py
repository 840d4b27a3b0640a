"""``prism log``: a run's log as tables.

Every table is a row of `TABLES`, from which its command is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from prism.cli import _log_forms as forms
from prism.cli._log_decision import list_decisions
from prism.cli._options import OutFile, Runs, TableFile, command_group, command_of, option
from prism.cli._output import missing_runs_first, write_bytes
from prism.cli._screen import note, say
from prism.cli._table_output import TableFormat, choose_format, suffix_of, write
from prism.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from prism.analysis import Conformance, RunLogs

TableT = TypeVar("TableT")
Given = Mapping[str, Any]

logs = command_group(
    "Make tables from a run's log: states, transitions, decisions, cascades and more."
)


@dataclass(frozen=True, slots=True)
class LogTable:
    """A table of ``prism log``, with its own options in addition to those of every table.

    Args:
        name: Name of the command.
        help: The command's help: a sentence, and more below an empty line.
        made_by: The function of `prism.analysis`, or ``room:function``, that makes the table from
            the logs and the options; by default the function with the command's name.
        examples: Examples of its use.
        agent: For a table of one agent, the parameter that takes its name: the first argument.
        options: Its own options.
        instead: By option, the function that makes the table if the option is given. A flag is not
            passed on to it.
        shown: Names of the columns to draw, with blanks between them, or a function of the table
            and the options that returns them; by default all. A table that another function has
            made is drawn as a whole.
        drawn: Makes the drawn table, and a line below it, from the table and the options.
        below: How to read the drawn table.
        as_format: The option that chooses a format.
        other_formats: Functions that write the logs in formats that no other table has.
    """

    name: str
    help: str
    made_by: str = ""
    examples: tuple[str, ...] = ()
    agent: str | None = None
    options: tuple[Parameter, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)
    shown: str | Callable[[Any, Given], Sequence[str]] = ""
    drawn: Callable[[pl.DataFrame, Given], tuple[pl.DataFrame, str | None]] | None = None
    below: str = ""
    as_format: Any = TableFile
    other_formats: Mapping[str, Callable[[RunLogs], bytes]] = field(default_factory=dict)

    def command(self) -> Callable[..., None]:
        """Return the command that makes and writes the table."""
        parameters = [
            Parameter("runs", Parameter.KEYWORD_ONLY, annotation=Runs),
            *self.options,
            option("as_format", self.as_format),
            option("out", OutFile),
        ]
        if self.agent is not None:
            argument = typer.Argument(metavar=self.agent, help="The agent.", show_default=False)
            annotation = Annotated[str, argument]
            parameters.insert(
                0, Parameter("agent_id", Parameter.KEYWORD_ONLY, annotation=annotation)
            )

        return command_of(self._carry_out, parameters, self.help, self.examples)

    def _carry_out(
        self, *, runs: list[Path], as_format: str | None, out: Path | None, **given: Any
    ) -> None:
        to_bytes = self.other_formats.get(as_format or suffix_of(out))
        if to_bytes is not None:
            write_bytes(make(runs, to_bytes), out, runs)
            return

        if self.agent is not None:
            given["agent_id"], runs = _in_order(given["agent_id"], runs)
        chosen = choose_format(None if as_format is None else TableFormat(as_format), out)
        by, round_ = given.pop("sort", None), given.pop("round_", None)
        table, is_other = self._made(runs, given)
        if round_ is not None:
            table = forms.of_round(table, round_)
        if by is not None:
            table = forms.sorted_by(table, by)
        shown = () if is_other else self._columns_of(table, given)
        hint = None
        if chosen is TableFormat.TABLE:
            table, hint = self._drawn_of(table, given, runs)
            if self.name == "why" and not table.height:
                _list_reasons(runs, given["agent_id"])
                return

        columns = shown or table.collect_schema().names()
        write(table, chosen, out, columns, hint, below=self.below, reads=runs)
        if self.name == "costs" and chosen is TableFormat.TABLE and out is None:
            _say_spent(runs)

    def _drawn_of(self, table: Any, given: Given, runs: list[Path]) -> tuple[Any, str | None]:
        """Return the drawn form of a table, and a hint below it."""
        drawn, hint = (table, None) if self.drawn is None else self.drawn(table, given)
        return forms.in_chart_order(drawn, runs), hint

    def _columns_of(self, table: Any, given: Given) -> Sequence[str]:
        return self.shown.split() if isinstance(self.shown, str) else self.shown(table, given)

    def _made(self, runs: list[Path], given: Given) -> tuple[Any, bool]:
        """Return the table, and whether an option's own function has made it."""
        function = usual = self.made_by or self.name.replace("-", "_")
        passed = dict(given)
        for name, other in self.instead.items():
            value = passed.pop(name)
            if value:
                function = other
                passed |= {} if value is True else {name: value}

        room, _, name = function.rpartition(":")
        with missing_runs_first(runs):
            table_of = getattr(import_module(f"prism.{room or 'analysis'}"), name)

        def made(opened: RunLogs) -> Any:
            try:
                return table_of(opened, **passed)
            except InputError:
                if self.agent is not None:  # it may be in lines that could not be read
                    print_notes(opened)
                raise

        return make(runs, made), function != usual


def _in_order(agent: str, runs: list[Path]) -> tuple[str, list[Path]]:
    """Return an agent and runs, even if the agent was named among or after the runs."""
    others = [each for each in runs if not each.exists()]
    if len(others) != 1 or not Path(agent).exists():
        return agent, runs

    return str(others[0]), [Path(agent), *(each for each in runs if each is not others[0])]


def _say_spent(runs: list[Path]) -> None:
    """Print what kept runs have spent by their summaries, with the money if they had prices."""
    from prism.cli._spent import spent_lines
    from prism.runs import run_status

    for run in filter(Path.is_dir, runs):
        spent = run_status(run).spent
        for line in () if spent is None else spent_lines(spent):
            say(f"{run}: {line}" if len(runs) > 1 else line)


def _list_reasons(runs: list[Path], agent: str) -> None:
    """Print the reasons of an agent without posts, taken from its decisions."""
    for run in runs:
        list_decisions(run, agent, None, as_json=False)


def _by(default: str, what: str) -> Parameter:
    text = f"Columns to group {what} by, separated by commas."
    return option("by", str, default, metavar="NAMES", help=text, callback=_names)


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _flag(name: str, words: str) -> Parameter:
    return option(name, bool, False, f"--{name.replace('_', '-')}", help=words)


_DEPTH = option(
    "depth",
    int | None,
    None,
    metavar="N",
    min=1,
    help="How deep to look into nested states; 1 counts the outermost only.",
)
_OF_DECISIONS = (
    *("asked", "fallback_share", "latency_p50", "latency_p99", "latency_max", "entropy"),
)
_BY_ROUND = _flag("by_round", "Add rows for each round, before those for all rounds.")

TABLES = (
    LogTable(
        "states",
        """Count the agents in each state at the end of every tick.

        The printed table shows some rounds; the other formats have every tick.""",
        made_by="state_counts",
        examples=(
            "prism log states runs/first --format csv -o states.csv",
            "prism log states runs/day --depth 1",
        ),
        options=(
            _DEPTH,
            option(
                "round_",
                int | None,
                None,
                "--round",
                metavar="N",
                min=0,
                help="Count in this round only, and print its ticks.",
                show_default=False,
            ),
        ),
        drawn=forms.side_by_side,
    ),
    LogTable(
        "transitions",
        "Count each transition, with its probability among those that leave the same state.",
        made_by="transition_counts",
        options=(_DEPTH,),
        below="The probability is among transitions that leave the state; decisions to stay are in "
        "prism log decisions.",
    ),
    LogTable(
        "dwell",
        """Describe how many ticks agents stay in each state, with a geometric fit.

        Visits that are cut short by the end of a round or of the run are censored.""",
        made_by="dwell_times",
        options=(_BY_ROUND, _DEPTH),
        shown="round chart state visits complete cut open mean median p90 p",
    ),
    LogTable("timeouts", "Count the time-outs of each state in each round.", options=(_DEPTH,)),
    LogTable(
        "decisions",
        "Describe the decisions: number, fallbacks, requests, tokens, latency and entropy.",
        examples=(
            "prism log decisions runs/model",
            "prism log decisions runs/model --by source,reason",
        ),
        options=(_by("state,model", "decisions"),),
        shown=lambda _, given: [*given["by"], *_OF_DECISIONS],
    ),
    LogTable(
        "costs",
        "Add up what models cost: requests, tokens and seconds, for decisions and texts.",
        examples=("prism log costs runs/model --by model,what",),
        options=(_by("model", "costs"),),
    ),
    LogTable("engagement", "Measure how unequally agents post, reply, reshare and like."),
    LogTable(
        "cascades",
        "Measure every cascade, largest first: size, depth, breadth, virality and lifetime.",
        shown="root_id author_id size depth breadth virality agents lifetime_ticks",
    ),
    LogTable(
        "threads",
        """Show threads as people read them, with each reply and reshare below its post.

        By default, the largest threads; with --post, the one that a post belongs to.""",
        examples=(
            "prism log threads runs/first",
            "prism log threads runs/first --post post_000023",
        ),
        options=(
            option(
                "post",
                str | None,
                None,
                metavar="ID",
                help="Show the thread that this post belongs to.",
                show_default=False,
            ),
            option(
                "most",
                int,
                5,
                metavar="N",
                min=1,
                help="Number of threads to show for each run.",
            ),
        ),
        drawn=forms.thread,
    ),
    LogTable(
        "agent",
        "List everything that one agent did, and how others reacted to its posts.",
        made_by="agent_story",
        examples=("prism log agent agent_0001 runs/first",),
        agent="ID",
        shown="round tick what",
    ),
    LogTable(
        "faults",
        """Count what went wrong: exceptions, refused input, and answers that were not used.

        An unknown trigger changes nothing and is not in the log; the chart warns about it on the
        logger prism.statechart.""",
        shown="fault from_state trigger error count agents round line",
    ),
    LogTable(
        "events",
        """List the transitions with the columns that process-mining tools, such as pm4py,
        expect.""",
        made_by="to_event_log",
        examples=("prism log events runs/first -o events.parquet",),
        options=(
            option(
                "activity",
                str,
                "to_state",
                help="Column to use as the activity: to_state or trigger.",
            ),
        ),
        shown="case:concept:name concept:name time:timestamp round tick trigger",
    ),
    LogTable(
        "agents",
        """Describe every agent: its attributes, and how much it did.

        The columns of counts tell which were active; prism log agent has the story of one.""",
        examples=("prism log agents runs/first --entered --sort composing",),
        options=(
            _flag("entered", "Count how often each agent entered each state."),
            option(
                "sort",
                str | None,
                None,
                metavar="COLUMN",
                help="Sort by this column, the largest first.",
                show_default=False,
            ),
        ),
        instead={"entered": "states_entered"},
        drawn=forms.fields_at_first,
        shown=forms.columns_of_agents,
    ),
    LogTable(
        "interactions",
        """Count how often each agent replied to, reshared and liked another's posts.

        GraphML needs the extra networks.""",
        examples=(
            "prism log interactions runs/first --format csv",
            "prism log interactions runs/first -o first.graphml",
        ),
        as_format=forms.NetworkFile,
        other_formats={"edges": forms.edges, "graphml": forms.graphml},
    ),
    LogTable(
        "follows",
        "List who follows whom. Needs the log of a feed with the parameter logs_follows.",
        examples=("prism log follows runs/first --in-all",),
        options=(_flag("in_all", "Describe the network of each run in one row."),),
        instead={"in_all": "follow_networks"},
    ),
    LogTable(
        "why",
        """Explain what an agent did about each post: relevance, threshold, choice and reason.

        In a world without posts, list the agent's decisions.""",
        made_by="reasons",
        examples=("prism log why agent_0001 runs/first",),
        agent="AGENT",
        shown=forms.columns_of_posts,
    ),
    LogTable(
        "measures",
        "List the measures of a world in each round.",
        examples=("prism log measures runs/beta-0.1 runs/beta-0.3 -o measures.parquet",),
    ),
    LogTable(
        "agent-measures",
        """List the measures of each agent in each round.

        For a kind with more than 500 agents, list quantiles and the values of 20 agents.""",
        examples=("prism log agent-measures runs/town -o wealth.parquet",),
    ),
    LogTable(
        "treatments",
        "List the treatments that were applied, and the parameters that they changed.",
    ),
    LogTable(
        "assignments",
        "List the agents and posts that were assigned to the arms of experiments.",
        options=(_flag("posts", "List what happened to the assigned posts."),),
        instead={"posts": "treated_posts"},
    ),
    LogTable(
        "arms",
        "Compare what happened to the posts in the arms of experiments.",
        examples=("prism log arms runs/herd",),
        options=(_flag("by_round", "Compare the posts of each round separately."),),
    ),
    LogTable("parameters", "List the runs with their world's parameters."),
    LogTable(
        "world",
        "Count the events that a world logged itself, or list those with one name.",
        made_by="world_event_counts",
        examples=("prism log world runs/market --event sold --format csv",),
        options=(
            option(
                "event",
                str | None,
                None,
                metavar="NAME",
                help="List the events with this name and their keys, instead of counting all.",
                show_default=False,
            ),
        ),
        instead={"event": "world_events"},
    ),
    LogTable(
        "participation",
        """Measure how many agents are silent, write and create, and how much the top 1 % wrote.

        The last row, which has no round, is for all rounds.""",
    ),
    LogTable(
        "views",
        """Count how posts that agents opened ended: decided, ignored, timed out or cut off.

        The last row, which has no round, is for all rounds.""",
    ),
    LogTable(
        "reach",
        """Measure how many agents opened each post or cascade, or what agents were exposed to.""",
        examples=("prism log reach runs/first --of posts -o reach.csv",),
        options=(
            option(
                "of",
                Literal["posts", "cascades", "agents"],
                "cascades",
                help="Count by post or cascade, or list what each agent was exposed to.",
            ),
            _BY_ROUND,
        ),
    ),
    LogTable(
        "rhythm",
        """Describe the times between acts of agents: mean, burstiness and memory.

        The last rows, which have no round, are for all rounds.""",
        options=(_flag("agents", "Print a row for each agent, instead of each round."),),
        instead={"agents": "agent_rhythms"},
        shown="round what acts agents mean median burstiness memory",
    ),
    LogTable(
        "survival",
        """Estimate, tick by tick, the share of visits to a state that continue (Kaplan-Meier).

        Visits that are cut short by the end of a round or of the run are censored.""",
        made_by="dwell_survival",
        options=(_BY_ROUND, _DEPTH),
        shown="round chart state ticks at_risk exits censored hazard survival",
    ),
    LogTable(
        "run-measures",
        """Measure each run as a whole. The printed table has a column for each run.""",
        examples=("prism log run-measures runs/first runs/second --from-round 5",),
        options=(
            option("from_round", int, 1, metavar="N", min=1, help="First round to include."),
            _BY_ROUND,
        ),
        drawn=forms.upright,
    ),
    LogTable(
        "steady",
        """Find when each measure stops drifting: burn-in by MSER, and tests of the rest.

        Needs the extra science. With --by ticks, the series are acts and agents in each state.""",
        made_by="science:steady_state",
        options=(option("by", Literal["round", "tick"], "round", help="Time unit of the series."),),
        shown="measure observations burn_in mean adf_p kpss_p verdict",
    ),
    LogTable(
        "tails",
        """Fit power laws to the tails of a run: cascades, posts, likes, views and followers.

        Needs the extra science.""",
        made_by="science:tails",
        examples=("prism log tails runs/first --bootstrap 100",),
        options=(
            _BY_ROUND,
            option(
                "bootstrap",
                int,
                0,
                metavar="N",
                min=0,
                help="Bootstrap samples for the p-value of each power law; 2,500 give a "
                "precision of .01.",
            ),
            option("seed", int, 0, min=0, help="Seed of the bootstrap."),
        ),
        shown=lambda _, given: [
            *("round", "what", "values", "xmin", "in_tail", "exponent"),
            *(("ks_p",) if given["bootstrap"] else ()),
            *("lognormal_p", "verdict"),
        ],
    ),
)
"""The tables, in the order of the help."""

_GROUPS = {
    "Agents and their states": "states transitions dwell timeouts agents agent survival rhythm",
    "Decisions and what they cost": "decisions why costs faults",
    "The feed": "engagement cascades threads interactions follows participation views reach tails",
    "Worlds and experiments": "measures agent-measures treatments arms assignments parameters "
    "world",
    "Runs as a whole": "events run-measures steady",
}
"""The tables by subject."""

for _table in TABLES:
    _panels = (title for title, names in _GROUPS.items() if _table.name in names.split())
    _panel = next(_panels, None)
    logs.command(_table.name, rich_help_panel=_panel)(_table.command())


@logs.command(rich_help_panel="Runs as a whole")
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
    found = make(runs, lambda opened: check_log(opened, known, timeout_threshold=timeout))
    if not found.checked:
        raise InputError(_nothing_checked(found, known.name))

    first, total = found.violations, sum(found.found.values())
    if chosen is not TableFormat.TABLE:
        every = first if first.height == total else found.all_violations
        write(every, chosen, out, first.columns, reads=runs)
    elif total:
        write(first, chosen, out, first.columns, total=total, reads=runs)

    for run in found.unrelated:
        note(f"{run}: nothing belongs to the chart {known.name}")
    note(_verdict(found))
    if found.found or found.unrelated:
        raise typer.Exit(1)


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


def _nothing_checked(found: Conformance, chart: str) -> str:
    others = ", ".join(sorted(found.other_charts))
    if not others:
        return "holds nothing to check"
    return f"nothing to check: its transitions are by the chart {others}, not {chart}"


def _verdict(found: Conformance) -> str:
    total = sum(found.found.values())
    verdict = f"{found.checked:,} steps agree"
    if total:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(found.found.items()))
        verdict = f"{total:,} violations in {found.checked:,} steps ({kinds})"

    others = "".join(
        f"; {count:,} transitions by the chart {name} not checked"
        for name, count in found.other_charts.items()
    )

    return f"{verdict}{others}"
