"""``prism log``: a run's log as tables.

Every table is declared by a function, from which its command is made: see `LogTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from prism.cli._log_decision import decision
from prism.cli._log_table import LogTable, make
from prism.cli._options import OutFile, Runs, TableFile, command_group, listed
from prism.cli._screen import counted, note, say
from prism.cli._table_output import TableFormat, choose_format, write
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.analysis import Conformance

DeclaredT = TypeVar("DeclaredT", bound=Callable[..., None])

logs = command_group(
    "Make tables from a run's log: states, transitions, decisions, cascades and more."
)

_STATES = "Agents and their states"
_DECISIONS = "Decisions and what they cost"
_FEED = "The feed"
_WHOLE = "Runs as a whole"
_WORLDS = "Worlds and experiments"

Depth = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="How deep to look into nested states; 1 counts the outermost only.",
    ),
]
By = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        callback=lambda text: [*filter(None, listed([text]))],
        help="Columns to group by, separated by commas.",
    ),
]
ByRound = Annotated[
    bool, typer.Option("--by-round", help="Add rows for each round, before those for all rounds.")
]


def _table(panel: str, made_by: str = "", **more: Any) -> Callable[[DeclaredT], DeclaredT]:
    """Register the table that a function declares.

    Args:
        panel: The group of the table in the help.
        made_by: As for `LogTable`, as all others are.
        more: Other arguments of `LogTable`.
    """

    def register(declared: DeclaredT) -> DeclaredT:
        name = declared.__name__.replace("_", "-")
        command = LogTable(declared, made_by, **more).command()
        logs.command(name, rich_help_panel=panel)(command)
        return declared

    return register


def _flag(name: str) -> Any:
    """Return the option of a flag without a negation."""
    return typer.Option(f"--{name}")


@_table(_STATES, "state_counts", drawn="side_by_side")
def states(depth: Depth = None) -> None:
    """Count the agents in each state at the end of every tick.

    The printed table shows some rounds; the other formats have every tick.

    [bold]Examples[/bold]

    prism log states runs/first --format csv -o states.csv

    prism log states runs/day --depth 1
    """


@_table(
    _STATES,
    "transition_counts",
    below="The probability is among transitions that leave the state; decisions to stay are in "
    "prism log decisions.",
)
def transitions(depth: Depth = None) -> None:
    """Count each transition, with its probability among those that leave the same state."""


@_table(
    _STATES,
    "dwell_times",
    shown="round chart state visits complete cut open mean median p90",
    below="Lengths are in ticks, which chart.tick counts: where nobody calls it, they are 0. Where "
    "events happen at rates, they are in rounds.",
)
def dwell(by_round: ByRound = False, depth: Depth = None) -> None:
    """Describe how many ticks agents stay in each state.

    Visits that are cut short by the end of a round or of the run are censored.
    """


@_table(
    _DECISIONS,
    shown="state model source trigger host reason chosen round "
    "asked fallback_share latency_p50 latency_p99 latency_max entropy",
)
def decisions(by: By = "state,model") -> None:
    """Describe the decisions: number, fallbacks, requests, tokens, latency and entropy.

    [bold]Examples[/bold]

    prism log decisions runs/model

    prism log decisions runs/model --by source,reason
    """


def _say_spent(runs: Sequence[Path]) -> None:
    """Print what kept runs have spent by their summaries, with the money if they had prices."""
    from prism.cli._spent import spent_lines
    from prism.runs import run_status

    for run in filter(Path.is_dir, runs):
        spent = run_status(run).spent
        for line in () if spent is None else spent_lines(spent):
            say(f"{run}: {line}" if len(runs) > 1 else line)


@_table(_DECISIONS, after=_say_spent)
def costs(by: By = "model") -> None:
    """Add up what models cost: requests, tokens and seconds, for decisions and texts.

    [bold]Example[/bold]

    prism log costs runs/model --by model,what
    """


@_table(_FEED, shown="root_id author_id size depth breadth virality agents lifetime_ticks")
def cascades() -> None:
    """Measure every cascade, largest first: size, depth, breadth, virality and lifetime."""


@_table(_STATES, "agent_story", shown="round tick what")
def agent(agent_id: Annotated[str, typer.Argument(metavar="ID", show_default=False)]) -> None:
    """List everything that one agent did, and how others reacted to its posts.

    Options:
        agent_id: The agent.

    [bold]Example[/bold]

    prism log agent agent_0001 runs/first
    """


@_table(_DECISIONS, shown="fault from_state trigger error count agents round line")
def faults() -> None:
    """Count what went wrong: exceptions, refused input, and answers that were not used.

    An unknown trigger changes nothing and is not in the log; the chart warns about it on the logger
    prism.statechart.
    """


@_table(
    _STATES,
    hidden="display_name interests following",
    below="Fields of an agent are as it joined.",
)
def agents() -> None:
    """Describe every agent: its attributes, and how much it did.

    The columns of counts tell which were active; prism log agent has the story of one.
    """


@_table(_WORLDS)
def measures() -> None:
    """List the measures of a world in each round.

    [bold]Example[/bold]

    prism log measures runs/beta-0.1 runs/beta-0.3 -o measures.parquet
    """


@_table(_WORLDS)
def arms(by_round: Annotated[bool, _flag("by-round")] = False) -> None:
    """Compare what happened to the posts in the arms of experiments.

    Options:
        by_round: Compare the posts of each round separately.

    [bold]Example[/bold]

    prism log arms runs/votes
    """


@_table(_WORLDS, "world_event_counts", instead={"event": "world_events"})
def world(
    event: Annotated[str | None, typer.Option(metavar="NAME", show_default=False)] = None,
) -> None:
    """Count the events that a world logged itself, or list those with one name.

    Options:
        event: List the events with this name and their keys, instead of counting all.

    [bold]Example[/bold]

    prism log world runs/market --event sold --format csv
    """


@_table(_FEED)
def participation() -> None:
    """Measure how many agents are silent, write and create, and how much the top 1 % wrote.

    The last row, which has no round, is for all rounds.
    """


@_table(_WHOLE, drawn="upright")
def run_measures(
    from_round: Annotated[int, typer.Option(metavar="N", min=1)] = 1, by_round: ByRound = False
) -> None:
    """Measure each run as a whole. The printed table has a column for each run.

    Options:
        from_round: First round to include.

    [bold]Example[/bold]

    prism log run-measures runs/first runs/second --from-round 5
    """


@logs.command(rich_help_panel=_WHOLE)
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
    from prism.analysis._conformance import DEFAULT_MOST
    from prism.cli._chart_argument import chart_from

    known, chosen = chart_from(chart), choose_format(as_format, out)
    most = DEFAULT_MOST if chosen is TableFormat.TABLE else None
    found = make(
        runs, lambda opened: check_log(opened, known, timeout_threshold=timeout, most=most)
    )
    if not found.checked:
        raise InputError(_nothing_checked(found, known.name))

    first, total = found.violations, sum(found.found.values())
    if total or most is None:
        write(first, chosen, out, first.columns, total=total, reads=runs)

    for run in found.unrelated:
        note(f"{run}: nothing belongs to the chart {known.name}")
    note(_verdict(found))
    if found.found or found.unrelated:
        raise typer.Exit(1)


@logs.command(rich_help_panel=_WHOLE)
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
    was, now = (make([each], lambda opened: opened) for each in (run, other))

    from prism.cli._rerun import tell_difference
    from prism.science._rerun import differences, require_same_agents

    require_same_agents(was, now)
    parted = differences(was, now)
    tell_difference(run, parted)
    if any(parted.values()):
        raise typer.Exit(1)


logs.command(rich_help_panel=_DECISIONS)(decision)


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
