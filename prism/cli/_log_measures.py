"""``prism log participation``, ``views``, ``reach``, ``rhythm``, ``run-measures`` and others."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._log import Format, Out, Runs, make, show
from prism.cli._table_output import TableFormat, choose_format, write

if TYPE_CHECKING:
    import polars as pl

_RUN = "run"


class Whom(StrEnum):
    """What reaches, or is reached."""

    POSTS = "posts"
    CASCADES = "cascades"
    AGENTS = "agents"


class Unit(StrEnum):
    """What a series is counted by."""

    ROUND = "round"
    TICK = "tick"


FromRound = Annotated[
    int,
    typer.Option("--from-round", metavar="N", min=1, help="The first round that counts."),
]
ByRound = Annotated[
    bool, typer.Option("--by-round", help="Add rows for each round, before those of all.")
]


def participation(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """Measure who is silent, writes and creates, and the shares of what the top 1 % wrote.

    By round; the last row, without a round, is of all rounds.
    """
    from prism.analysis import participation as measure

    show(runs, measure, as_format, out)


def views(runs: Runs, as_format: Format = None, out: Out = None) -> None:
    """Count what came of the posts that agents opened: decided, ignored, timed out, cut.

    By round; the last row, without a round, is of all rounds.
    """
    from prism.analysis import views as count

    show(runs, count, as_format, out)


def reach(
    runs: Runs,
    of: Annotated[
        Whom, typer.Option(help="Posts or cascades, or agents and what they were exposed to.")
    ] = Whom.CASCADES,
    by_round: ByRound = False,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Measure how many agents opened each post or cascade, or what agents were exposed to.

    [bold]Example[/bold]

    prism log reach runs/first --of posts -o reach.csv
    """
    from prism.analysis import reach as measure

    show(runs, lambda opened: measure(opened, of=of.value, by_round=by_round), as_format, out)


def rhythm(
    runs: Runs,
    agents: Annotated[
        bool, typer.Option("--agents", help="A row for each agent, not for each round.")
    ] = False,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Describe the times between the acts of agents: mean, burstiness, memory.

    By round; the last rows, without a round, are of all rounds.
    """
    from prism.analysis import agent_rhythms
    from prism.analysis import rhythm as describe

    if agents:
        show(runs, agent_rhythms, as_format, out)
        return

    shown = ("round", "what", "acts", "agents", "mean", "median", "burstiness", "memory")
    show(runs, describe, as_format, out, shown)


def survival(
    runs: Runs, by_round: ByRound = False, as_format: Format = None, out: Out = None
) -> None:
    """Estimate, tick by tick, how many visits of a state go on (Kaplan and Meier).

    Visits that the end of a round or of the run cuts short are censored.
    """
    from prism.analysis import dwell_survival

    shown = (
        *("round", "chart", "state", "ticks"),
        *("at_risk", "exits", "censored", "hazard", "survival"),
    )
    show(runs, lambda opened: dwell_survival(opened, by_round=by_round), as_format, out, shown)


def run_measures(
    runs: Runs,
    from_round: FromRound = 1,
    by_round: ByRound = False,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Measure each run as a whole, as one row of numbers; a table to read has them as columns.

    [bold]Example[/bold]

    prism log run-measures runs/first runs/second --from-round 5
    """
    from prism.analysis import run_measures as measure

    chosen = choose_format(as_format, out)
    table = make(runs, lambda opened: measure(opened, from_round=from_round, by_round=by_round))
    if chosen is TableFormat.TABLE and not by_round:
        table = _upright(table)

    write(table, chosen, out, table.columns, reads=runs)


def steady(
    runs: Runs,
    by: Annotated[Unit, typer.Option(help="What a series is counted by.")] = Unit.ROUND,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Say of each measure from when on it is steady: burn-in by MSER, and tests of the rest.

    Needs the extra science. By ticks the series are acts and agents in each state.
    """
    from prism.science import steady_state

    shown = ("measure", "observations", "burn_in", "mean", "adf_p", "kpss_p", "verdict")
    show(runs, lambda opened: steady_state(opened, by=by.value), as_format, out, shown)


def tails(
    runs: Runs,
    by_round: ByRound = False,
    bootstrap: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="Bootstrap samples for the p-value of each power law; 2,500 give it within .01.",
        ),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    as_format: Format = None,
    out: Out = None,
) -> None:
    """Fit power laws to the tails of a run: cascades, what agents wrote, likes, views, followers.

    Needs the extra science.

    [bold]Example[/bold]

    prism log tails runs/first --bootstrap 100
    """
    from prism.science import tails as fit

    shown = (
        *("round", "what", "values", "xmin", "in_tail", "exponent"),
        *(("ks_p",) if bootstrap else ()),
        *("lognormal_p", "verdict"),
    )
    show(
        runs,
        lambda opened: fit(opened, by_round=by_round, bootstrap=bootstrap, seed=seed),
        as_format,
        out,
        shown,
    )


def _upright(table: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each measure, and a column for each run."""
    import polars as pl

    labels = table[_RUN].to_list() if _RUN in table.columns else ["value"]
    numbers = table.select(name for name in table.columns if name != _RUN)
    rows = [[name, *(_short(value) for value in numbers[name])] for name in numbers.columns]

    return pl.DataFrame(rows, schema=["measure", *labels], orient="row")


def _short(value: object) -> str | None:
    return f"{value:.4g}" if isinstance(value, float) else None if value is None else str(value)


OF_RUNS = (participation, views, reach, rhythm, survival, run_measures, steady, tails)
"""The commands, in the order of the help."""
