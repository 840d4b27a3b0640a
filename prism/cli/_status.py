"""``prism status``: the progress of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._options import AsJson
from prism.cli._screen import counted, pour_json, print_table, say, shown
from prism.cli._spent import duration, spent_lines
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.runs import RunStatus

Runs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="RUN",
        help="Folders of runs, their logs, or folders that hold runs; by default the current "
        "folder.",
        show_default=False,
    ),
]


def status(
    runs: Runs = None,
    as_json: AsJson = False,
) -> None:
    """Show how far a run has come: round and tick, speed, time left, and whether it is alive.

    For a folder that contains several runs, list them all.

    [bold]Examples[/bold]

    prism status runs/first

    prism status runs
    """
    given = runs or [Path()]
    found = [status for path in given for status in _looked_at(path)]
    if as_json:
        pour_json([{**asdict(each), "path": str(each.path)} for each in found])
    elif len(found) == 1:
        for line in _described(found[0]):
            say(line)
    else:
        _list(found)


def _looked_at(path: Path) -> Iterator[RunStatus]:
    """Look at a run, or at the runs below another folder."""
    from prism.runs import RunStatus, find_runs, run_status
    from prism.runs._status import is_run

    if not path.is_dir() or is_run(path):
        yield run_status(path)
        return

    below = find_runs(path)
    if not below:
        raise InputError("is not a run, and holds none", path=path)

    for found in below:
        try:
            yield run_status(found)
        except InputError as error:  # an unreadable run must not hide the others
            yield RunStatus(found, "damaged", problem=str(error))


def _described(status: RunStatus) -> Iterator[str]:
    from prism.runs._folder import is_begun

    name = shown(str(status.path))
    if status.state == "damaged":
        yield f"{name}: {status.problem}"
    elif status.state == "stopped":
        yield f"{name}: stopped at {_place(status)}"
        if status.problem is not None:
            yield status.problem
        elif is_begun(status.path):
            yield f"continue with: prism resume {quote(str(status.path))}"
    elif status.state == "running":
        yield f"{name}: alive, at {_place(status)}"
        yield from _pace(status)
        yield from _costs(status)
    else:
        yield f"{name}: {status.state}{_length(status)}"
        yield from _costs(status)


def _pace(status: RunStatus) -> Iterator[str]:
    if status.questions is not None:
        asked = (status.asking or {}).get("open")
        longest = f", the oldest for {duration(asked[0]['seconds'])}" if asked else ""
        yield f"{counted(status.questions, 'question')} under way{longest}"
    if status.asking is not None:
        hosts = status.asking["hosts"]
        taken, limit = (sum(host[name] for host in hosts) for name in ("in_flight", "limit"))
        waiting = counted(status.asking["waiting"], "request")
        yield f"{taken:,} of {limit:,} slots of the models' servers in use, {waiting} waiting"
    if status.rate is not None and status.seconds_left is not None:
        what = "rounds" if status.ticks_per_round is None else "ticks"
        yield f"{status.rate:,.3g} {what} a second, {duration(status.seconds_left)} left"


def _costs(status: RunStatus) -> Iterator[str]:
    """Describe what was spent on models, in total and, if agents have their own, by model."""
    spent = status.spent
    if spent is None:
        return

    yield from spent_lines(spent)


def _length(status: RunStatus) -> str:
    """Describe how many rounds a complete run has, and of how many if it ended itself earlier."""
    if status.rounds is None:
        return ""
    if status.round is not None and status.round < status.rounds:
        return f", ended in round {status.round:,} of {status.rounds:,}"
    return f", {counted(status.rounds, 'round')}"


def _place(status: RunStatus) -> str:
    if status.round is None:
        return "an unknown round"

    rounds = "" if status.rounds is None else f" of {status.rounds:,}"
    ticks = "" if status.ticks_per_round is None else f" of {status.ticks_per_round:,}"
    tick = "" if status.tick is None else f" tick {status.tick:,}{ticks}"

    return f"round {status.round:,}{rounds}{tick}"


def _list(found: Sequence[RunStatus]) -> None:
    rows = (
        (
            str(each.path),
            each.state,
            _out_of(each.round, each.rounds),
            _out_of(each.tick, each.ticks_per_round),
            "" if each.seconds_left is None else duration(each.seconds_left),
        )
        for each in found
    )
    print_table(rows, "run", "state", "round", "tick", "left")


def _out_of(number: int | None, total: int | None) -> str:
    return " of ".join(f"{each:,}" for each in (number, total) if each is not None)
