"""``prism batch`` and ``prism sensitivity``: all runs of a plan, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from prism.cli._options import Keeping, import_from_here, keeping_panel, model_panel
from prism.cli._screen import note
from prism.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from prism.science import Plan

DoneT = TypeVar("DoneT")

PlanFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="PLAN",
        help="The plan: a TOML file, or one that comes with prism (herd, herd-model).",
        show_default=False,
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(min=1, help="Number of seeds for each configuration, counted from 0."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Number of runs at a time; by default the number of processors."),
]
On = Annotated[
    str | None,
    typer.Option(
        metavar="EXECUTOR",
        help="Where to carry out the runs, instead of in processes on this machine: "
        "dask:ADDRESS, ray:ADDRESS, or FILE.py:FUNCTION, which returns an executor. All "
        "machines must share the folder.",
    ),
]
Model = Annotated[
    Mapping[str, Any],
    model_panel(
        *("model", "host", "max_calls", "max_tokens", "deadline"),
        model="Model that decides, instead of the one in the plan.",
    ),
]
KeepingBatch = Annotated[
    Keeping,
    keeping_panel(
        "Folder for the batch: plan.json, a folder for each run, and the tables results and "
        "rounds as CSV and Parquet. It must not hold a batch yet.",
        "Continue the stopped batch in this folder. Complete runs stay as they are, and failed "
        "ones are tried again.",
        of="its run's",
    ),
]
Keep = Annotated[
    Literal["logs", "tables"],
    typer.Option(
        help="What to keep of each run: its whole folder, or only its rows of the tables, which "
        "is faster.",
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        min=2,
        metavar="N",
        help="For Morris, the number of trajectories, each of which takes one run more than "
        "there are parameters. For Sobol, a power of 2; each sample takes two runs, and two "
        "more for every parameter.",
    ),
]
Figures = Annotated[
    Literal["svg", "pdf", "png"] | None,
    typer.Option(
        "--figures",
        metavar="FORMAT",
        help="Format of the figures, which are drawn beside the tables.",
    ),
]


def batch(
    context: typer.Context,
    *,
    plan: PlanFile = None,
    seeds: Seeds = None,
    workers: Workers = None,
    on: On = None,
    part: Annotated[str | None, typer.Option(metavar="K/N")] = None,
    keep: Keep = "logs",
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    model: Model,
    keeping: KeepingBatch,
) -> None:
    """Carry out a plan: every combination of parameters, arms and seeds, in one table.

    Limits on calls, tokens and time apply to all runs together. A failed run is marked in the
    table, and the exit status is then 1.

    Options:
        part: Carry out only part K of N, for example as one job on a cluster. Each part has its own
            folder and a fixed share of the budget. prism merge combines them.
        dry_run: Ask no model and write nothing. Estimate the decisions, tokens and money of all
            runs from a few rounds of each configuration, which the policy plays.

    [bold]Examples[/bold]

    prism batch plan.toml --seeds 20 --workers 2 --out runs/herding

    prism batch plan.toml --keep tables --out runs/quick

    prism batch plan.toml --part 1/4 --out runs/part-1

    prism batch --resume runs/herding --on dask:tcp://head:8786
    """
    from prism import science
    from prism.cli._batch_screen import print_batch

    asked = Asked(context, plan, seeds, workers, on, model, keeping)
    if dry_run:
        from prism.cli._running import naming_options
        from prism.cli._spent import print_estimate
        from prism.science._batch import estimate_batch

        import_from_here()
        with naming_options():
            found = estimate_batch(asked.new_plan())
        print_estimate(found, as_json=keeping.as_json)
        return

    begin = partial(science.batch, keep=keep, part=part)
    done = carry_out("prism batch", asked, begin, science.resume_batch)
    print_batch(done, as_json=keeping.as_json)
    if done.failed:
        raise typer.Exit(1)


def merge(
    *,
    parts: Annotated[list[Path], typer.Argument(metavar="PART")],
    out: Annotated[Path, typer.Option(metavar="DIR")],
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Combine the parts that prism batch --part K/N carried out into one batch.

    The result is the same as if the batch had been carried out as a whole.

    Options:
        parts: Folders of all parts.
        out: Folder for the whole batch.
        as_json: Print JSON.

    [bold]Example[/bold]

    prism merge runs/part-1 runs/part-2 --out runs/whole
    """
    from prism import science
    from prism.cli._batch_screen import print_batch

    done = science.merge_batches(parts, out)
    print_batch(done, as_json=as_json)
    if done.failed:
        raise typer.Exit(1)


def sensitivity(
    context: typer.Context,
    *,
    plan: PlanFile = None,
    method: Literal["morris", "sobol"] = "morris",
    samples: Samples = 16,
    seeds: Seeds = None,
    workers: Workers = None,
    on: On = None,
    model: Model,
    keeping: KeepingBatch,
    figures: Figures = "svg",
) -> None:
    """Vary the parameters that a plan bounds, and measure how the results depend on them.

    The runs form a batch, which can be stopped and resumed like any other. The indices are in
    sensitivity.csv and sensitivity.parquet, beside its tables.

    Options:
        method: Morris screens many parameters with few runs; Sobol decomposes the variance.

    [bold]Examples[/bold]

    prism sensitivity plan.toml --samples 20 --out runs/screened

    prism sensitivity plan.toml --method sobol --samples 256 --out runs/shares

    prism sensitivity --resume runs/shares
    """
    from prism import science
    from prism.cli._batch_screen import print_batch, print_indices

    command = "prism sensitivity"
    asked = Asked(context, plan, seeds, workers, on, model, keeping)
    done = carry_out(
        command,
        asked,
        partial(science.sensitivity, method=method, samples=samples),
        science.resume_sensitivity,
    )
    if done.batch.failed:
        print_batch(done.batch, as_json=keeping.as_json)
        note(
            f"indices need all runs: once that is fixed, run {command} --resume {done.batch.folder}"
        )
        raise typer.Exit(1)

    if figures is not None:
        done.save_figures(figures)
    print_indices(done, as_json=keeping.as_json)


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments that all these commands share."""

    context: typer.Context
    plan: Path | None
    seeds: int | None
    workers: int | None
    on: str | None
    model: Mapping[str, Any]
    keeping: Keeping

    def new_plan(self) -> Plan:
        """Return the plan, with the changes that the command line makes.

        Raises:
            InputError: If there is no plan, or a change is invalid.
        """
        from prism.cli._running import naming_options
        from prism.science import Plan

        if self.plan is None:
            raise InputError("needs the file of a plan, or --resume with the folder of a batch")

        found = Plan.from_file(self.plan)
        if self.seeds is not None:
            found = found.with_seeds(self.seeds)
        budget = dict(self.model)
        model, hosts = budget.pop("model", None), budget.pop("host", ())
        with naming_options():
            if model is not None:
                found = found.with_model(model)
            if hosts:
                found = found.with_hosts(hosts)

        return found.with_budget(**budget)


def carry_out(
    command: str, asked: Asked, begin: Callable[..., DoneT], resume: Callable[..., DoneT]
) -> DoneT:
    """Begin the runs of a plan, or continue them."""
    from prism.cli._batch_screen import batch_screen
    from prism.cli._running import begin_or_resume

    import_from_here()
    more = {"workers": asked.workers, "checkpoint_every": asked.keeping.checkpoint_every}
    if asked.workers is not None and asked.on is not None:
        raise InputError("--workers has no effect with --on, whose executor decides: leave it out")

    def begin_new(folder: Path | None, screen: Any) -> DoneT:
        plan = asked.new_plan()
        if folder is None:
            raise InputError("--out is missing: name a folder for the batch")
        with _executor(asked.on) as executor:
            return begin(plan, folder, observer=screen, executor=executor, **more)

    def go_on(folder: Path, screen: Any) -> DoneT:
        hosts = asked.model.get("host", ())
        with _executor(asked.on) as executor:
            return resume(folder, hosts=hosts, observer=screen, executor=executor, **more)

    return begin_or_resume(
        *(asked.context, asked.keeping, begin_new, go_on, partial(batch_screen, command)),
        what="batch",
        with_resume=("workers", "on", "figures", "paper"),
    )


@contextmanager
def _executor(name: str | None) -> Iterator[Executor | None]:
    """Yield the executor with this name, or None without a name."""
    if name is None:
        yield None
        return

    from prism.cli._running import naming_options
    from prism.science._executors import executor_named

    with naming_options(), executor_named(name) as executor:
        yield executor
