"""``prism log``: a run's log as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from prism.cli._chart_argument import chart_from
from prism.cli._screen import evenly, note
from prism.cli._table_output import TableFormat, choose_format, write
from prism.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from prism.analysis import Conformance, RunLogs

_MOST_MOMENTS = 8
_MOST_TIMES = 4

TableT = TypeVar("TableT")

logs: typer.Typer = typer.Typer(
    help="Make tables of a run's log: states, transitions, decisions, cascades, and more.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        help="Folders of runs, or their logs (.jsonl, also .gz). Several make one table, with a "
        "column for the run.",
        show_default=False,
    ),
]
Format = Annotated[
    TableFormat | None,
    typer.Option(
        "--format",
        help="Format to write; by default that of the file's name, else a table to read.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="File to write to, instead of standard output."
    ),
]


@logs.command()
def states(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """Count the agents in each state at the end of every tick.

    A table to read shows some rounds; the other formats have every tick.

    [bold]Example[/bold]

    prism log states runs/first --format csv -o states.csv
    """
    from prism.analysis import state_counts

    chosen = choose_format(as_format, out)
    table = make(runs, state_counts)
    if chosen is TableFormat.TABLE and table.height:
        drawn, hint = _side_by_side(table)
        write(drawn, chosen, out, drawn.columns, hint, reads=runs)
    else:
        write(table, chosen, out, table.columns, reads=runs)


@logs.command()
def transitions(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """Count every kind of transition, with its probability among those out of its state."""
    from prism.analysis import transition_counts

    show(runs, transition_counts, as_format, out)


@logs.command()
def dwell(
    runs: Runs,
    by_round: Annotated[
        bool, typer.Option("--by-round", help="Add rows for each round, before those of all.")
    ] = False,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Describe how many ticks agents stay in each state, with a geometric fit.

    Visits that the end of a round or of the run cuts short are censored.
    """
    from prism.analysis import dwell_times

    shown = (
        *("round", "chart", "state"),
        *("visits", "complete", "cut", "open", "mean", "median", "p90", "p"),
    )
    show(runs, lambda opened: dwell_times(opened, by_round=by_round), as_format, out, shown)


@logs.command()
def timeouts(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """Count the time-outs of each state in each round."""
    from prism.analysis import timeouts as count_timeouts

    show(runs, count_timeouts, as_format, out)


@logs.command()
def decisions(
    runs: Runs,
    by: Annotated[
        str, typer.Option(metavar="NAMES", help="What to group decisions by, separated by commas.")
    ] = "state,model",
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Describe decisions: number, fallbacks, requests, tokens, latency, entropy.

    [bold]Examples[/bold]

    prism log decisions runs/model

    prism log decisions runs/model --by source,reason
    """
    from prism.analysis import decisions as describe

    names = [name.strip() for name in by.split(",") if name.strip()]
    shown = (*names, "asked", "fallback_share", "latency_p50", "latency_p99", "entropy")
    show(runs, lambda opened: describe(opened, by=names), as_format, out, shown)


@logs.command()
def costs(
    runs: Runs,
    by: Annotated[
        str, typer.Option(metavar="NAMES", help="What to group costs by, separated by commas.")
    ] = "model",
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Add up what models cost: requests, tokens and seconds, of decisions and texts.

    [bold]Example[/bold]

    prism log costs runs/model --by model,what
    """
    from prism.analysis import costs as add_up

    names = [name.strip() for name in by.split(",") if name.strip()]
    show(runs, lambda opened: add_up(opened, by=names), as_format, out)


@logs.command()
def engagement(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """Measure how unequally agents post, reply, reshare and like."""
    from prism.analysis import engagement as measure

    show(runs, measure, as_format, out)


@logs.command()
def cascades(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """Measure every cascade: size, depth, breadth, virality, lifetime; the largest first."""
    from prism.analysis import cascades as measure

    shown = (
        "root_id",
        "author_id",
        "size",
        "depth",
        "breadth",
        "virality",
        "agents",
        "lifetime_ticks",
    )
    show(runs, measure, as_format, out, shown)


@logs.command()
def agent(
    agent_id: Annotated[str, typer.Argument(metavar="ID", help="The agent.", show_default=False)],
    runs: Runs,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """List all that one agent did, and how others reacted to its posts.

    [bold]Example[/bold]

    prism log agent agent_0001 runs/first
    """
    from prism.analysis import agent_story

    def story(opened: RunLogs) -> pl.DataFrame:
        try:
            return agent_story(opened, agent_id)
        except InputError:
            print_notes(opened)  # the agent may be in lines that could not be read
            raise

    show(runs, story, as_format, out, ("round", "tick", "what"))


@logs.command()
def faults(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """Count what went wrong: what raised or was refused, answers that were not used.

    A trigger that no transition has changes nothing, so the log does not have it: the chart warns
    of it on the logger prism.statechart.
    """
    from prism.analysis import faults as find

    shown = ("fault", "from_state", "trigger", "error", "count", "agents", "round", "line")
    show(runs, find, as_format, out, shown)


@logs.command()
def events(
    runs: Runs,
    activity: Annotated[
        str, typer.Option(help="Column of the activity: to_state or trigger.")
    ] = "to_state",
    as_format: Format = None,
    out: Out = None,
) -> None:
    """List the transitions with the columns that process-mining tools, such as pm4py, expect.

    [bold]Example[/bold]

    prism log events runs/first -o events.parquet
    """
    from prism.analysis import to_event_log

    shown = ("case:concept:name", "concept:name", "time:timestamp", "round", "tick", "trigger")
    show(runs, lambda opened: to_event_log(opened, activity=activity), as_format, out, shown)


@logs.command()
def check(
    runs: Runs,
    chart: Annotated[
        str,
        typer.Option(
            metavar="CHART",
            help="Name of a chart, a .json file, a workflow (.yaml), or package.module:attribute, "
            "which may be a class of a world's agents (rumour.py:Person).",
        ),
    ],
    timeout: Annotated[
        int | None,
        typer.Option(min=1, help="The agents' timeout_threshold, if neither chart nor log has it."),
    ] = None,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Replay a log against a chart, and report every step that the chart does not allow.

    A table to read shows the first; the other formats have all. Exit status 0 if there are none, 1
    if there are some.

    [bold]Example[/bold]

    prism log check runs/first --chart social_feed
    """
    from prism.analysis import check_log

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

    note(_verdict(found))
    if found.found:
        raise typer.Exit(1)


def show(
    runs: Sequence[Path],
    table_of: Callable[[RunLogs], pl.DataFrame | pl.LazyFrame],
    as_format: TableFormat | None,
    out: Path | None,
    shown: Sequence[str] = (),
) -> None:
    """Make a table and write it."""
    chosen = choose_format(as_format, out)
    table = make(runs, table_of)
    write(table, chosen, out, shown or table.collect_schema().names(), reads=runs)


def make(runs: Sequence[Path], table_of: Callable[[RunLogs], TableT]) -> TableT:
    """Make a table, and print the notes on the logs to standard error.

    Raises:
        InputError: If the logs are all empty.
    """
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


def _side_by_side(counts: pl.DataFrame) -> tuple[pl.DataFrame, str | None]:
    """Put some moments side by side: the ends of rounds, or the ticks of a single round.

    Returns:
        The table, and a hint at what it leaves out, if it does.
    """
    import polars as pl

    moment = [name for name in ("round", "tick", "time") if name in counts.columns]
    # Runs of different shape do not fit beside each other.
    if sum(counts.select(moment).null_count().row(0)):
        return counts, None

    ends, what = _last_ticks(counts) if moment == ["round", "tick"] else (counts, moment[-1])
    moments = ends[what].unique().sort()
    some = moments[evenly(moments.len(), _MOST_TIMES if what == "time" else _MOST_MOMENTS)]
    shown = ends.filter(pl.col(what).is_in(some.implode()))
    # Nor do runs of different times.
    if "run" in counts.columns and shown["run"].n_unique() < counts["run"].n_unique():
        return counts, None

    title = pl.col(what).dt.strftime("%F %T") if what == "time" else pl.format(f"{what} {{}}", what)
    index = [name for name in counts.columns if name not in (*moment, "agents", "share")]
    wide = shown.with_columns(moment=title).pivot(
        "moment", index=index, values="agents", maintain_order=True
    )
    places = f"{some.len()} of {moments.len()} {what}s"
    hint = f"Agents at the end of {places}; all of them with --format csv"

    return wide.select(*index, *some.to_frame().select(title).to_series()), hint


def _last_ticks(counts: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Return the last tick of each round of every run, if there are several rounds."""
    import polars as pl

    if counts["round"].n_unique() == 1:
        return counts, "tick"

    each = [name for name in ("run", "round") if name in counts.columns]
    return counts.filter(pl.col("tick") == pl.col("tick").max().over(each)), "round"


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
