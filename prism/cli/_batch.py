"""``prism batch``, ``sensitivity``, ``fit`` and ``calibrate``: what is found out by many runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli import _options as options
from prism.cli._screen import (
    counted,
    note,
    print_heading,
    print_json,
    print_table,
    say,
    write_bytes,
)
from prism.cli._tables import draw_rows, open_logs, records_of
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.science import Batch, Fit, Plan, Sensitivity

PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A TOML file, or the name of a plan that prism has.")
]
Seeds = Annotated[
    int | None, typer.Option(min=1, help="Number of seeds for each configuration, from 0.")
]
Keep = Annotated[
    Literal["logs", "tables"],
    typer.Option(help="Keep the folder of each run, or only its rows of the tables."),
]


def batch(
    plan: PlanFile,
    out: options.OutFolder = None,
    seeds: Seeds = None,
    workers: options.Workers = None,
    keep: Keep = "logs",
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Carry out a plan: every combination of parameters, arms and seeds, in one table.

    A failed run is marked in the table, and the exit status is then 1. `prism resume` continues a
    batch that was stopped.

    **Examples**

    * `prism batch plan.toml --seeds 20 --workers 2 --out runs/herding`

    * `prism batch plan.toml --keep tables --out runs/quick`
    """
    from prism import science

    read = _read(plan, seeds)
    if dry_run:
        from prism.cli._results import print_estimate

        estimated = science.estimate_batch(read)
        print_estimate(estimated, as_json=as_json)
        return

    if out is None:
        raise InputError("--out is missing: name a folder for the batch")
    with batch_screen(out) as screen:
        done = science.batch(read, out, keep=keep, workers=workers, observer=screen)
    print_batch(done, as_json=as_json)


def sensitivity(
    plan: PlanFile,
    out: options.NewFolder,
    method: Annotated[
        Literal["morris", "sobol"],
        typer.Option(help="Morris screens many parameters; Sobol decomposes the variance."),
    ] = "morris",
    samples: Annotated[
        int, typer.Option(min=2, metavar="N", help="Trajectories of Morris, or samples of Sobol.")
    ] = 16,
    keep: Keep = "tables",
    seeds: Seeds = None,
    workers: options.Workers = None,
    as_json: options.AsJson = False,
) -> None:
    """Vary the parameters that a plan bounds, and measure how the results depend on them.

    The runs form a batch. For d parameters, a trajectory of Morris takes d + 1 runs, and a sample
    of Sobol d + 2; the number of Sobol's samples is a power of 2. sensitivity.csv has the indices.

    **Examples**

    * `prism sensitivity plan.toml --samples 20 --out runs/screened`

    * `prism sensitivity plan.toml --method sobol --samples 256 --out runs/shares`
    """
    from prism import science

    with batch_screen(out) as screen:
        done = science.sensitivity(
            _read(plan, seeds), out, method=method, samples=samples, keep=keep, workers=workers,
            observer=screen,
        )  # fmt: skip
    print_sensitivity(done, as_json=as_json)


def fit(
    plan: PlanFile,
    out: options.NewFolder,
    samples: Annotated[int, typer.Option(min=20, metavar="N", help="Number of samples.")] = 400,
    seed: options.Seed = 0,
    seeds: Seeds = None,
    workers: options.Workers = None,
    as_json: options.AsJson = False,
) -> None:
    """Find the parameters that reproduce given figures, and how certain they are.

    The plan gives bounds for the parameters, and targets: each a measure, its value and its spread.
    Targets that are held out test the fit. The runs form a batch.

    **Example**

    * `prism fit plan.toml --samples 400 --out runs/fitted`
    """
    from prism import science

    with batch_screen(out) as screen:
        done = science.fit(
            _read(plan, seeds), out, samples=samples, seed=seed, workers=workers, observer=screen
        )
    print_fit(done, as_json=as_json)


def calibrate(
    runs: options.Runs,
    out: options.OutFile = None,
    least: Annotated[
        int, typer.Option(min=1, help="Least number of decisions for a probability.")
    ] = 10,
) -> None:
    """Estimate a policy from a run's decisions: the share of each choice in each situation.

    **Examples**

    * `prism calibrate runs/model -o policy.json`

    * `prism run feed --agents 1000 --policy policy.json --out runs/policy`
    """
    from prism import science

    logs = open_logs(runs)
    calibration = science.calibrate(logs, least=least)

    print_table((row.values() for row in calibration.rows), *calibration.rows[0])
    for reason, count in calibration.left_out.items():
        say(f"Left out: {counted(count, 'decision')} ({reason})")
    if out is not None:
        write_bytes(calibration.policy.to_json().encode(), out, runs)
        say(f"The policy is in {out}: prism run WORLD --policy {out}")


def resume_plan(folder: Path, workers: int | None, *, as_json: bool) -> None:
    """Continue a batch, an analysis or a fit, and print its results."""
    from prism import science
    from prism.files import parse_json

    with batch_screen(folder) as screen:
        done = science.resume_batch(folder, workers=workers, observer=screen)
        begun = parse_json((folder / "plan.json").read_text(encoding="utf-8"))
    if "fit" in begun:
        print_fit(science.read_fit(folder), as_json=as_json)
    elif "sensitivity" in begun:
        print_sensitivity(science.read_sensitivity(folder), as_json=as_json)
    else:
        print_batch(done, as_json=as_json)


def _read(plan: Path, seeds: int | None) -> Plan:
    from prism.science import Plan

    read = Plan.from_file(plan)
    return read if seeds is None else read.with_seeds(seeds)


@contextmanager
def batch_screen(folder: Path) -> Iterator[Any]:
    """Show a batch and, after an interruption or a failed write, how to resume it."""
    from prism.cli._progress import Bar, hinting_at
    from prism.science import BatchObserver, BatchRun

    bar = Bar()

    class Screen(BatchObserver):
        """A bar on a terminal, else a line for each run."""

        ended = total = 0

        def started(self, runs: Sequence[BatchRun]) -> None:
            self.total = len(runs)
            self.ended = sum(each.status in ("complete", "failed") for each in runs)
            if self.ended:
                note(f"continuing after {self.ended} of {self.total} runs")
            bar.begin("run", self.total, self.ended)

        def run_ended(self, run: BatchRun) -> None:
            self.ended += 1
            bar.advance(run.name)
            if run.status == "failed":
                note(f"{run.name} failed: {run.error}")
            elif bar.drawn is None:
                say(f"{self.ended} of {self.total}: {run.name} {run.status}", err=True)

        def note(self, message: str) -> None:
            note(message)

        def warn(self, run: BatchRun, message: str) -> None:
            note(f"{run.name}: {message}")

    with hinting_at(folder, bar):
        yield Screen()


def print_batch(done: Batch, *, as_json: bool) -> None:
    """Print how the runs of a batch ended, and their results.

    Raises:
        typer.Exit: With status 1, if a run failed, or no decision of a run is its model's.
    """
    rows = records_of(done.results())
    if as_json:
        ended = {"folder": str(done.folder), "complete": done.is_complete}
        print_json({**ended, "spent": dict(done.spent), "runs": rows})
    else:
        complete = sum(each.status == "complete" for each in done.runs)
        print_heading(f"{complete:,} of {len(done.runs):,} runs are complete")
        draw_rows(rows, ["configuration", "seed", "status", *done.outcomes()])
        if done.spent:
            calls, tokens = done.spent["calls"], done.spent["tokens"]
            say(f"In total, the runs made {calls:,} calls and used {tokens:,} tokens.")
        say(f"{done.folder / 'results.csv'} has a row for each run, and rounds.csv for each round.")
    deciding = [row for row in rows if done.spent and row.get("decisions_asked")]
    if deciding and not as_json:
        total = sum(row["decisions_asked"] for row in deciding)
        answered = sum(row["decisions_answered"] for row in deciding)
        say(f"{answered:,} of {total:,} decisions are by the model.")
    if fallen := [row["run"] for row in deciding if not row["decisions_answered"]]:
        note(f"the model made no decision in {counted(len(fallen), 'run')}, such as {fallen[0]}")
    if done.failed or fallen:
        raise typer.Exit(1)


def print_sensitivity(done: Sensitivity, *, as_json: bool) -> None:
    """Write and print the indices of a sensitivity analysis."""
    if done.batch.failed:
        note("indices need every run: mend the cause, and resume the analysis")
        print_batch(done.batch, as_json=as_json)
    done.write()
    rows = records_of(done.indices())
    if as_json:
        print_json(rows)
        return
    draw_rows(rows)
    say(f"{done.batch.folder / 'sensitivity.csv'} has a row for each index; the interval is what "
        "may be added or subtracted.")  # fmt: skip


def print_fit(done: Fit, *, as_json: bool) -> None:
    """Write and print the estimates of a fit, and how close it comes to its targets."""
    done.write()
    estimates, targets = records_of(done.estimates()), records_of(done.targets())
    samples, kept = len(done.points), len(done.kept.indices)
    if failed := len(done.batch.failed):
        note(f"{failed} runs failed, so their samples count as far from every target")
    if as_json:
        about = {"folder": str(done.batch.folder), "samples": samples, "kept": kept}
        print_json({**about, "failed": failed, "estimates": estimates, "targets": targets})
        return

    print_heading(f"{samples:,} samples, of which {kept:,} are kept")
    draw_rows([{**row, "remark": None} for row in estimates])
    for row in estimates:
        if row["remark"]:
            say(f"{row['parameter']}: {row['remark']}.")
    draw_rows(targets)
    say(f"low and high are the ends of 90 % intervals; more is in {done.batch.folder}.")
