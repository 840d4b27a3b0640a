"""``prism calibrate``: a policy from a run's decisions, which can take the model's place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._log_table import print_notes
from prism.cli._options import Runs
from prism.cli._output import output_file
from prism.cli._screen import counted, print_heading, say
from prism.cli._table_output import TableFormat, write

if TYPE_CHECKING:
    import polars as pl

    from prism.analysis import RunLogs
    from prism.science import Calibration

_PROBABILITIES = ("at", "group", "option", "n", "probability", "agents")
_UNIDENTIFIED = ("what", "at", "group", "name", "n", "reason")


def calibrate(
    runs: Runs,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    by: Annotated[str, typer.Option(metavar="NAME")] = "archetype",
    least: Annotated[int, typer.Option(min=1)] = 10,
    charts: Annotated[list[str] | None, typer.Option("--chart", metavar="CHART")] = None,
) -> None:
    """Estimate a policy from a run's decisions: the share of each choice in each situation.

    Options:
        output: File for the policy, for use with simulate --policy.
        by: Attribute to group the agents by in the table.
        least: Minimum number of decisions to identify a probability.
        charts: Chart of the agents, which shows the states in which nobody decided.

    [bold]Examples[/bold]

    prism calibrate runs/model -o policy.json

    prism simulate --agents 1000 --policy policy.json --out runs/policy
    """
    from prism.analysis import read_log
    from prism.cli._chart_argument import chart_from
    from prism.cli._running import naming_options
    from prism.runs._folder import refuse_own_file

    if output is not None:
        refuse_own_file(output, runs)

    # imported late, since it takes two seconds and needs an extra
    from prism import science

    logs = read_log(*runs)
    print_notes(logs)
    known = [chart_from(name) for name in charts or ()]
    with naming_options():
        found = science.calibrate(logs, by=by, least=least, charts=known)

    _print(found)
    _print_forced(logs)
    if output is not None:
        with output_file(output, runs) as file:
            file.write(found.policy.to_json().encode())
        say(f"The policy is in {output}: prism simulate --policy {output}")


def _print(found: Calibration) -> None:
    import polars as pl

    from prism import science

    everybody = pl.col("group").fill_null("all")
    probabilities = science.policy_probabilities(found).with_columns(everybody)
    _draw("Probabilities", probabilities, _PROBABILITIES)
    _draw("Not identified", science.policy_unidentified(found), _UNIDENTIFIED)

    left_out: Counter[str] = Counter()
    for source in found.sources:
        left_out.update(source.left_out)
    for reason, count in left_out.items():
        say(f"Left out: {counted(count, 'decision')} ({reason})")


def _print_forced(logs: RunLogs) -> None:
    """Print how many choices a model was forced to make though it preferred another answer."""
    import polars as pl

    from prism.telemetry.events import DECISION

    asked = logs.scan(DECISION).filter(pl.col("option_mass").is_not_null())
    masses, forced = (
        asked.select(pl.len(), without=pl.col("probabilities").is_null().sum()).collect().row(0)
    )
    if forced:
        say(
            f"{forced:,} of {masses:,} choices have no probabilities, since the model gave their "
            "options less than half of its probability: here they count as chosen"
        )


def _draw(title: str, table: pl.DataFrame, columns: tuple[str, ...]) -> None:
    """Print a table; state and event are one column, unless all rows have the same ones."""
    import polars as pl

    if not table.height:
        return
    if table.select("state", "event").drop_nulls().n_unique() > 1:
        place = pl.concat_str("state", "event", separator=" ").fill_null("everywhere")
        table = table.with_columns(at=place)
    shown = [name for name in columns if name in table.columns]
    print_heading(title)
    write(table.select(shown), TableFormat.TABLE, None, shown)
