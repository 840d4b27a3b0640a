"""The screen of a batch: its progress and its results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import typer

from prism.cli._bar import Bar
from prism.cli._results import fell_back
from prism.cli._running import hinting_at, naming_options
from prism.cli._screen import counted, note, pour, pour_json, print_heading, print_table, say
from prism.runs._folder import TRACEBACK_NAME
from prism.science import Batch, BatchObserver, BatchRun, Sensitivity

_MOST_SHOWN = 40
_MOST_MEASURES = 4
_MOST_OUTCOMES = 6


class BatchScreen(BatchObserver):
    """Shows the progress of a batch: a bar on a terminal, else a line for each run."""

    def __init__(self) -> None:
        self._progress = Bar("runs")
        self._all = 0
        self._ended = 0
        self._failed = 0

    def started(self, runs: Sequence[BatchRun]) -> None:
        """Draw the bar."""
        ended = sum(each.status in ("complete", "failed") for each in runs)
        if self._all:
            # a fit draws more samples once all runs have ended
            self._all, self._ended = len(runs) - ended, 0
            self.note(f"next generation: {self._all} runs")
        else:
            self._all, self._ended = len(runs), ended
        if self._ended:
            self.note(f"continuing after {self._ended} of {self._all} runs")
        self._progress.show(self._ended, self._all)
        self._progress.start()

    def round_ended(self, run: BatchRun, rounds: int) -> None:
        """Show progress."""
        self._describe(f"{run.name} round {rounds}")

    def run_ended(self, run: BatchRun) -> None:
        """Move the bar on by one run."""
        if run.status == "stopped":
            return

        self._ended += 1
        self._failed += run.status == "failed"
        self._progress.show(self._ended, self._all)
        if run.status == "failed":
            note(f"{run.name} failed: {run.error}")
        elif self._progress.disable:
            say(f"{self._ended} of {self._all}: {run.name} {run.status}", err=True)

    def note(self, message: str) -> None:
        """Print a note."""
        note(message)

    def warn(self, run: BatchRun, message: str) -> None:
        """Print a problem that a run has dealt with."""
        note(f"{run.name}: {message}")

    def close(self) -> None:
        """Leave the bar as it is."""
        self._progress.stop()

    def _describe(self, text: str) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        self._progress.update(self._progress.bar, description=f"{text}{failed}")


@contextmanager
def batch_screen(command: str, folder: Path | None) -> Iterator[BatchScreen]:
    """Show a batch and, after an interruption or a failed write, how to resume it.

    Args:
        command: The command that resumes it with ``--resume``.
        folder: The folder of the batch.
    """
    screen = BatchScreen()
    # the bar is gone before anything is printed below it
    with hinting_at(folder, f"{command} --resume"), naming_options(), closing(screen):
        yield screen


def print_batch(done: Batch, if_failed: str = "", *, as_json: bool) -> None:
    """Print how the runs of a batch ended, and the results of each configuration.

    Args:
        done: The batch.
        if_failed: A note about what to do if a run failed.
        as_json: Whether to print it as JSON.

    Raises:
        typer.Exit: With status 1, if a run failed, or no decision of a run is its model's.
    """
    if as_json:
        pour_json(_as_data(done))
    else:
        _print_tables(done)
    if done.failed and if_failed:
        note(if_failed)
    fallen = _fallen_back(done)
    if fallen:
        note(f"no decision is the model's in {counted(len(fallen), 'run')}, such as {fallen[0]}")
    if done.failed or fallen:
        raise typer.Exit(1)


def _fallen_back(done: Batch) -> list[str]:
    """Return the runs whose decisions all fell back, if a model was asked."""
    columns = ("run", "decisions_asked", "decisions_answered")
    results = done.results()
    if not done.spent or not set(columns) <= set(results.columns):
        return []

    rows = results.select(columns).drop_nulls().iter_rows()
    return [run for run, asked, answered in rows if fell_back(asked, answered)]


def _print_tables(done: Batch) -> None:
    complete = sum(each.status == "complete" for each in done.runs)
    print_heading(f"{complete:,} of {len(done.runs):,} runs are complete")
    _print_configurations(done)
    traces = (done.folder / run.name / TRACEBACK_NAME for run in done.failed)
    if (trace := next(filter(Path.is_file, traces), None)) is not None:
        say(f"A failed run leaves its traceback: {trace}")
    if done.spent:
        calls, tokens = done.spent["calls"], done.spent["tokens"]
        say(f"In total, the runs made {calls:,} calls and used {tokens:,} tokens.")

    table = done.folder / "results.csv"
    say(f"{table} has a row for each run, and rounds.csv one for each round.")


def _print_configurations(done: Batch) -> None:
    """Print the means of measures over the runs of each configuration."""
    measures = (done.measures() or done.outcomes())[:_MOST_MEASURES]
    results: dict[str, list[dict[str, Any]]] = {run.configuration.name: [] for run in done.runs}
    for row in done.results().to_dicts():
        results[row["configuration"]].append(row)

    rows = []
    for name, found in islice(results.items(), _MOST_SHOWN):
        complete = [row for row in found if row["status"] == "complete"]
        means = [_mean(row.get(measure) for row in complete) for measure in measures]
        rows.append((name, f"{len(complete)} of {len(found)}", *means))
    if len(results) > _MOST_SHOWN:
        rows.append((f"and {len(results) - _MOST_SHOWN} more",))

    print_table(rows, "configuration", "runs", *measures, numbers=("runs", *measures))


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


def print_indices(done: Sensitivity, *, as_json: bool) -> None:
    """Print the indices of a sensitivity analysis."""
    if as_json:
        pour(done.indices().write_json() + "\n")
        return

    rows = done.indices().to_dicts()
    outcomes = list(dict.fromkeys(row["outcome"] for row in rows))
    for outcome in outcomes[:_MOST_OUTCOMES]:
        print_heading(outcome)
        _print_outcome([row for row in rows if row["outcome"] == outcome])

    place = done.batch.folder / "sensitivity.csv"
    more = len(outcomes) - _MOST_OUTCOMES
    others = f", including those of {more} more outcomes" if more > 0 else ""
    say(f"Every index is a row of {place}{others}.")


def _print_outcome(rows: list[dict[str, object]]) -> None:
    """Print the indices of one outcome, one per column."""
    alone = [row for row in rows if row["other"] is None]
    indices = list(dict.fromkeys(str(row["index"]) for row in alone))
    own: dict[str, dict[str, str]] = {}
    for row in alone:
        own.setdefault(str(row["parameter"]), {})[str(row["index"])] = _shown(row)

    cells = ((name, *(found[index] for index in indices)) for name, found in own.items())
    print_table(cells, "parameter", *indices, numbers=indices)


def _shown(row: dict[str, object]) -> str:
    value, interval = row["value"], row["interval"]
    if value is None:
        return "-"
    return f"{value:.3g}" if interval is None else f"{value:.3g} ±{interval:.2g}"
