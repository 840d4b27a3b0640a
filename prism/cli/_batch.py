"""``prism batch`` and ``prism sensitivity``: all runs of a plan, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from prism.cli._options import Keeping, import_from_here, keeping_panel, model_panel
from prism.cli._screen import note
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.science import Plan

DoneT = TypeVar("DoneT")

PlanFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="PLAN",
        help="The plan, a TOML file, or the name of one that ships: herd, herd-model.",
        show_default=False,
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(min=1, help="Run every configuration with so many seeds, from 0 on."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Runs at a time. By default as many as there are processors."),
]
Model = Annotated[
    Mapping[str, Any],
    model_panel(
        *("model", "host", "max_calls", "max_tokens", "deadline"),
        model="Model that decides, instead of the one that the plan names.",
    ),
]
KeepingBatch = Annotated[
    Keeping,
    keeping_panel(
        "Folder for the batch: plan.json, a folder for each run, and the tables results and "
        "rounds, as CSV and Parquet. A folder that holds a batch is refused.",
        "Go on with the batch in this folder, which was stopped in any way. Runs that are "
        "complete stay as they are; those that failed are tried again.",
        of="its run's",
    ),
]
Keep = Annotated[
    Literal["logs", "tables"],
    typer.Option(
        help="What is kept of each run: its folder with all that a run has, or its rows of the "
        "tables alone, which takes less time.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Ask nobody and write nothing: estimate decisions, tokens and money of all runs from "
        "a few rounds of each configuration by the policy.",
    ),
]
Samples = Annotated[
    int,
    typer.Option(
        min=2,
        metavar="N",
        help="Trajectories of Morris, each one run longer than there are parameters; for Sobol a "
        "power of 2, each for two runs and two for every parameter.",
    ),
]
Method = Annotated[
    Literal["morris", "sobol"],
    typer.Option(
        help="Morris screens many parameters with few runs; Sobol takes the variance apart."
    ),
]
Figures = Annotated[
    Literal["svg", "pdf", "png"] | None,
    typer.Option(
        "--figures", metavar="FORMAT", help="Draw the indices of each outcome, too: svg, pdf, png."
    ),
]


def batch(
    context: typer.Context,
    *,
    plan: PlanFile = None,
    seeds: Seeds = None,
    workers: Workers = None,
    keep: Keep = "logs",
    dry_run: DryRun = False,
    model: Model,
    keeping: KeepingBatch,
) -> None:
    """Carry out a plan: all parameters in all arms with all seeds, one table of all runs.

    Limits on calls, tokens and time hold for all runs together. A run that fails is a row that says
    so, and the command ends with status 1.

    [bold]Examples[/bold]

    prism batch plan.toml --seeds 20 --workers 2 --out runs/herding

    prism batch plan.toml --keep tables --out runs/quick

    prism batch --resume runs/herding
    """
    from prism import science
    from prism.cli._batch_screen import print_batch

    asked = Asked(context, plan, seeds, workers, model, keeping)
    if dry_run:
        from prism.cli._running import naming_options
        from prism.cli._spent import print_estimate
        from prism.science._batch import estimate_batch

        import_from_here()
        with naming_options():
            found = estimate_batch(asked.new_plan())
        print_estimate(found, as_json=keeping.as_json)
        return

    done = carry_out("prism batch", asked, partial(science.batch, keep=keep), science.resume_batch)
    print_batch(done, as_json=keeping.as_json)
    if done.failed:
        raise typer.Exit(1)


def sensitivity(
    context: typer.Context,
    *,
    plan: PlanFile = None,
    method: Method = "morris",
    samples: Samples = 16,
    seeds: Seeds = None,
    workers: Workers = None,
    model: Model,
    keeping: KeepingBatch,
    figures: Figures = "svg",
) -> None:
    """Sample the parameters that a plan has bounds for, and see what depends on them.

    The runs are a batch, which is stopped and resumed like any other. The indices stand in
    sensitivity.csv and sensitivity.parquet beside its tables.

    [bold]Examples[/bold]

    prism sensitivity plan.toml --samples 20 --out runs/screened

    prism sensitivity plan.toml --method sobol --samples 256 --out runs/shares

    prism sensitivity --resume runs/shares
    """
    from prism import science
    from prism.cli._batch_screen import print_batch, print_indices

    command = "prism sensitivity"
    asked = Asked(context, plan, seeds, workers, model, keeping)
    done = carry_out(
        command,
        asked,
        partial(science.sensitivity, method=method, samples=samples),
        science.resume_sensitivity,
    )
    if done.batch.failed:
        print_batch(done.batch, as_json=keeping.as_json)
        note(f"indices need all runs: when that is mended, {command} --resume {done.batch.folder}")
        raise typer.Exit(1)

    if figures is not None:
        done.save_figures(figures)
    print_indices(done, as_json=keeping.as_json)


@dataclass(frozen=True, slots=True)
class Asked:
    """What both commands are asked for."""

    context: typer.Context
    plan: Path | None
    seeds: int | None
    workers: int | None
    model: Mapping[str, Any]
    keeping: Keeping

    def new_plan(self) -> Plan:
        """Return the plan with what the command line says instead.

        Raises:
            InputError: If there is none, or it says what no plan can.
        """
        from prism.cli._running import naming_options
        from prism.science import Plan

        if self.plan is None:
            raise InputError("needs a plan, a file, or --resume, the folder of a batch")

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
    """Begin the runs of a plan, or go on with them."""
    from prism.cli._batch_screen import batch_screen
    from prism.cli._running import begin_or_resume

    import_from_here()
    more = {"workers": asked.workers, "checkpoint_every": asked.keeping.checkpoint_every}

    def begin_new(folder: Path | None, screen: Any) -> DoneT:
        plan = asked.new_plan()
        if folder is None:
            raise InputError("--out must name the folder to keep the batch in")
        return begin(plan, folder, observer=screen, **more)

    def go_on(folder: Path, screen: Any) -> DoneT:
        return resume(folder, hosts=asked.model.get("host", ()), observer=screen, **more)

    return begin_or_resume(
        *(asked.context, asked.keeping, begin_new, go_on, partial(batch_screen, command)),
        what="batch",
        with_resume=("workers", "figures", "paper"),
    )
