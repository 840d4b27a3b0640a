"""``prism calibrate``: a policy from a run's decisions, which can take the model's place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prism.cli._options import Runs
from prism.cli._screen import counted, output_file, print_table, say


def calibrate(
    runs: Runs,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="File for the policy, for run --policy."),
    ] = None,
    least: Annotated[
        int, typer.Option(min=1, help="Decisions that a probability needs at least.")
    ] = 10,
) -> None:
    """Estimate a policy from a run's decisions: the share of each choice in each situation.

    **Examples**

    * `prism calibrate runs/model -o policy.json`

    * `prism run feed --agents 1000 --policy policy.json --out runs/policy`
    """
    from prism import science
    from prism.cli._tables import open_logs

    logs = open_logs(runs)
    found = science.calibrate(logs, least=least)

    print_table((row.values() for row in found.rows), *found.rows[0])
    for reason, count in found.left_out.items():
        say(f"Left out: {counted(count, 'decision')} ({reason})")
    if out is not None:
        with output_file(out, runs) as file:
            file.write(found.policy.to_json().encode())
        say(f"The policy is in {out}: prism run feed --policy {out}")
