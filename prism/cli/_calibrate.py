"""``prism calibrate``: a policy from a run's decisions, which can take the model's place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._log import print_notes
from prism.cli._options import Runs
from prism.cli._output import output_file
from prism.cli._screen import counted, print_heading, say
from prism.cli._table_output import TableFormat, write

if TYPE_CHECKING:
    from prism.science import Calibration


def calibrate(
    runs: Runs,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE")] = None,
    least: Annotated[int, typer.Option(min=1)] = 10,
    charts: Annotated[list[str] | None, typer.Option("--chart", metavar="CHART")] = None,
) -> None:
    """Estimate a policy from a run's decisions: the share of each choice in each situation.

    Options:
        output: File for the policy, for use with simulate --policy.
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
        found = science.calibrate(logs, least=least, charts=known)

    _print(found)
    if output is not None:
        with output_file(output, runs) as file:
            file.write(found.policy.to_json().encode())
        say(f"The policy is in {output}: prism simulate --policy {output}")


def _print(found: Calibration) -> None:
    parts = (("Probabilities", found.probabilities), ("Not identified", found.unidentified))
    for title, table in parts:
        if table.height:
            print_heading(title)
            write(table, TableFormat.TABLE, None, table.columns)
    for reason, count in found.left_out.items():
        say(f"Left out: {counted(count, 'decision')} ({reason})")
