"""``prism status``: the progress of runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._options import AsJson
from prism.cli._results import spent_lines
from prism.cli._screen import print_json, print_table, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.runs import RunStatus

_HELP = "Folders of runs, their logs, or folders that hold runs; by default the current folder."


def status(
    runs: Annotated[list[Path] | None, typer.Argument(metavar="RUN...", help=_HELP)] = None,
    as_json: AsJson = False,
) -> None:
    """Show how far a run has come: round and tick, what it has spent, and whether it is alive.

    For a folder that contains several runs, list them all.

    **Example**

    * `prism status runs/first`
    """
    statuses = [each for path in runs or [Path()] for each in _look(path)]
    if as_json:
        print_json([{**asdict(each), "path": str(each.path)} for each in statuses])
        return

    rows = []
    for each in statuses:
        ticks = _out_of(each.tick, each.ticks_per_round)
        rows.append((each.path, each.state, _out_of(each.round, each.rounds), ticks))
    print_table(rows, "run", "state", "round", "tick")
    for line in _lines(statuses[0]) if len(statuses) == 1 else ():
        say(line)


def _look(path: Path) -> Iterator[RunStatus]:
    """Look at a run, or at the runs below another folder."""
    from prism.runs import RunStatus, find_runs, run_status

    below = find_runs(path)
    if not path.is_dir() or below == [path]:
        yield run_status(path)
        return
    if not below:
        raise InputError("is not a run, and holds none", path=path)
    for folder in below:
        try:
            yield run_status(folder)
        except InputError as error:  # an unreadable run must not hide the others
            yield RunStatus(folder, "damaged", problem=str(error))


def _lines(status: RunStatus) -> Iterator[str]:
    """Yield what else is known of a run: what it asks, what it has spent, and how to go on."""
    from prism.runs.folder import is_begun
    from prism.runs.status import spent_in

    spent = status.spent or spent_in(status.path)
    if spent is not None:
        yield from spent_lines(spent)
    if status.problem is not None:
        yield status.problem
    if status.state == "stopped" and is_begun(status.path):
        yield f"continue with: prism resume {quote(str(status.path))}"


def _out_of(number: int | None, total: int | None) -> str:
    if number is None and total is not None:
        number = 0
    return " of ".join(f"{each:,}" for each in (number, total) if each is not None)
