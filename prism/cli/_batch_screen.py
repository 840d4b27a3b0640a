"""The screen of a batch: how far it is, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from statistics import fmean
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from prism.cli._running import is_given, naming_options, option_of, own_folder
from prism.cli._screen import Screen, note, plain, plain_table, pour, say
from prism.errors import InputError
from prism.science import Batch, BatchObserver, BatchRun, Plan

_MOST_SHOWN = 40
_MOST_MEASURES = 4


def plan_with(
    plan: Path | None,
    seeds: int | None,
    model: str | None,
    hosts: Sequence[str] | None,
    max_calls: int | None,
    max_tokens: int | None,
    deadline: float | None,
) -> Plan:
    """Return a plan with what the command line says instead.

    Raises:
        InputError: If there is none, or it says what no plan can.
    """
    if plan is None:
        raise InputError("needs a plan, a file, or --resume, the folder of a batch")

    found = Plan.from_file(plan)
    if seeds is not None:
        found = found.with_seeds(seeds)
    with naming_options():
        if model is not None:
            found = found.with_model(model)
        if hosts:
            found = found.with_hosts(hosts)

    return found.with_budget(max_calls=max_calls, max_tokens=max_tokens, deadline=deadline)


def new_folder(out: Path | None) -> Path:
    """Return the folder that is given.

    Raises:
        InputError: If none is.
    """
    if out is None:
        raise InputError("--out must name the folder to keep the batch in")

    return own_folder("--out", out)


def refuse_beside_resume(context: typer.Context, plan: Path | None, allowed: Iterable[str]) -> None:
    """Refuse what would make a batch that is resumed another one.

    Raises:
        InputError: If there is anything.
    """
    others = [name for name in context.params if name not in allowed and is_given(context, name)]
    given = [str(plan) if name == "plan" else option_of(name) for name in others]
    if given:
        raise InputError(
            f"--resume takes everything from the batch's folder: leave out {', '.join(given)}"
        )


class BatchScreen(BatchObserver):
    """Shows how far a batch is: a bar on a terminal, else a line for each run."""

    def __init__(self) -> None:
        screen = Screen(err=True)
        self._progress = Progress(
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=screen,
            disable=not screen.is_terminal,
        )
        self._bar = self._progress.add_task("", total=None)
        self._all = 0
        self._ended = 0
        self._failed = 0

    def started(self, runs: Sequence[BatchRun]) -> None:
        """Draw the bar."""
        self._all = len(runs)
        self._ended = sum(each.status == "complete" for each in runs)
        if self._ended:
            self.note(f"going on after {self._ended} of {self._all} runs")
        self._progress.update(self._bar, total=self._all, completed=self._ended)
        self._progress.start()

    def round_ended(self, run: BatchRun, rounds: int) -> None:
        """Say what goes on."""
        self._describe(f"{run.name} round {rounds}")

    def run_ended(self, run: BatchRun) -> None:
        """Move the bar on by one run."""
        if run.status == "stopped":
            return

        self._ended += 1
        self._failed += run.status == "failed"
        self._progress.update(self._bar, completed=self._ended)
        if run.status == "failed":
            note(f"{run.name} failed: {run.error}")
        elif self._progress.disable:
            say(f"{self._ended} of {self._all}: {run.name} {run.status}", err=True)

    def note(self, message: str) -> None:
        """Print what is good to know."""
        note(message)

    def warn(self, run: BatchRun, message: str) -> None:
        """Print what went wrong in a run and was dealt with."""
        note(f"{run.name}: {message}")

    def close(self) -> None:
        """Leave the bar as it is."""
        self._progress.stop()

    def _describe(self, text: str) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        self._progress.update(self._bar, description=f"{text}{failed}")


@contextmanager
def batch_screen(folder: Path, command: str) -> Iterator[BatchScreen]:
    """Show a batch, and after an interruption or a failed write how it is resumed.

    Args:
        folder: Where it is kept.
        command: What resumes it, given ``--resume``.
    """
    hint = f"go on with: {command} --resume {quote(str(folder))}"
    screen = BatchScreen()
    try:
        with naming_options():
            yield screen
    except KeyboardInterrupt:
        screen.close()
        note(hint)
        raise
    except OSError as error:
        problem = f"{error.strerror or error}; when that is mended, {hint}"
        raise OSError(error.errno, problem, error.filename or str(folder)) from error
    finally:
        screen.close()


def print_batch(done: Batch, *, as_json: bool) -> None:
    """Print how the runs of a batch ended, and what came of each configuration."""
    if as_json:
        pour(json.dumps(_as_data(done), indent=2) + "\n")
        return

    screen = Screen()
    complete = sum(each.status == "complete" for each in done.runs)
    screen.print(f"[bold]{complete:,} of {len(done.runs):,} runs are complete[/bold]")
    screen.print(_table(done))
    for run in done.failed[:_MOST_SHOWN]:
        screen.print(plain(f"{run.name} failed: {run.error}"), soft_wrap=True)
    if done.spent:
        calls, tokens = done.spent["calls"], done.spent["tokens"]
        screen.print(f"All runs together made {calls:,} calls and used {tokens:,} tokens.")

    text = f"Each run is a row of {done.folder / 'results.csv'}, each round one of rounds.csv."
    screen.print(plain(text), soft_wrap=True)


def _table(done: Batch) -> Table:
    """Return the means of measures over the runs of each configuration."""
    results = done.results().to_dicts()
    measures = (done.measures() or done.outcomes())[:_MOST_MEASURES]
    table = plain_table()
    table.add_column("configuration", no_wrap=True)
    table.add_column("runs", justify="right")
    for name in measures:
        table.add_column(plain(name), justify="right")

    configurations = list(dict.fromkeys(run.configuration.name for run in done.runs))
    for name in configurations[:_MOST_SHOWN]:
        rows = [row for row in results if row["configuration"] == name]
        complete = [row for row in rows if row["status"] == "complete"]
        means = [_mean(row.get(measure) for row in complete) for measure in measures]
        table.add_row(plain(name), f"{len(complete)} of {len(rows)}", *means)
    if len(configurations) > _MOST_SHOWN:
        table.add_row(f"and {len(configurations) - _MOST_SHOWN} more", "")

    return table


def _mean(values: Iterable[Any]) -> str:
    numbers = [value for value in values if isinstance(value, (int, float))]
    return f"{fmean(numbers):.4g}" if numbers else "-"


def _as_data(done: Batch) -> dict[str, Any]:
    return {
        "folder": str(done.folder),
        "complete": done.is_complete,
        "spent": dict(done.spent),
        "runs": [
            {
                "run": each.name,
                "configuration": each.configuration.name,
                "arm": each.configuration.arm,
                "seed": each.seed,
                "parameters": dict(each.configuration.parameters),
                "status": each.status,
                "error": each.error,
            }
            for each in done.runs
        ],
    }
