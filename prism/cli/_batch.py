"""``prism batch`` and ``prism sensitivity``: all runs of a plan, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from prism.cli._options import (
    Keeping,
    declared_panel,
    import_from_here,
    keeping_panel,
    model_panel,
)
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.science import Plan

DoneT = TypeVar("DoneT")

Keep = Annotated[
    Literal["logs", "tables"],
    typer.Option(
        help="What to keep of each run: its whole folder, or only its rows of the tables, which "
        "is faster.",
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
_MODEL = model_panel(
    *("model", "hosts", "max_calls", "max_tokens", "deadline"),
    model="Model that decides, instead of the one in the plan.",
)
_KEEPING = keeping_panel(
    out="Folder for the batch: plan.json, a folder for each run, and the tables results and rounds "
    "as CSV and Parquet. It must not hold a batch yet.",
    resume="Continue the stopped batch in this folder. Complete runs stay as they are, and failed "
    "ones are tried again.",
)


@dataclass(frozen=True, kw_only=True)
class PlannedRuns:
    """What the commands that carry out a plan share.

    Options:
        plan: The plan: a TOML file, or the name of one that comes with prism.
        seeds: Number of seeds for each configuration, counted from 0.
        workers: Number of runs at a time; by default the number of processors.
    """

    plan: Annotated[Path | None, typer.Argument(metavar="PLAN", show_default=False)] = None
    seeds: Annotated[int | None, typer.Option(min=1)] = None
    workers: Annotated[int | None, typer.Option(min=1)] = None
    model: Annotated[Mapping[str, Any], _MODEL]
    keeping: Annotated[Keeping, _KEEPING]

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
        model, hosts = budget.pop("model", None), budget.pop("hosts", ())
        with naming_options():
            if model is not None:
                found = found.with_model(model)
            if hosts:
                found = found.with_hosts(hosts)

        return found.with_budget(**budget)

    def carry_out(
        self, command: str, begin: Callable[..., DoneT], resume: Callable[..., DoneT]
    ) -> DoneT:
        """Begin the runs of a plan, or continue them."""
        from prism.cli._batch_screen import batch_screen
        from prism.cli._running import begin_or_resume

        import_from_here()

        def begin_new(folder: Path | None, screen: Any) -> DoneT:
            plan = self.new_plan()
            if folder is None:
                raise InputError("--out is missing: name a folder for the batch")
            return started(partial(begin, plan, folder), screen)

        def go_on(folder: Path, screen: Any) -> DoneT:
            return started(partial(resume, folder, hosts=self.model.get("hosts", ())), screen)

        def started(runs: Callable[..., DoneT], screen: Any) -> DoneT:
            return runs(workers=self.workers, observer=screen)

        return begin_or_resume(
            *(self.keeping, begin_new, go_on, partial(batch_screen, command)),
            what="batch",
            with_resume=("workers", "figures"),
        )


PLANNED = declared_panel(PlannedRuns, gather=PlannedRuns)


def batch(
    *,
    keep: Keep = "logs",
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    planned: Annotated[PlannedRuns, PLANNED],
) -> None:
    """Carry out a plan: every combination of parameters, arms and seeds, in one table.

    Limits on calls, tokens and time apply to all runs together. A failed run is marked in the
    table, and the exit status is then 1.

    Options:
        dry_run: Ask no model and write nothing. Estimate the decisions, tokens and money of all
            runs from a few rounds of each configuration, which the policy plays.

    [bold]Examples[/bold]

    prism batch plan.toml --seeds 20 --workers 2 --out runs/herding

    prism batch plan.toml --keep tables --out runs/quick

    prism batch --resume runs/herding
    """
    from prism import science
    from prism.cli._batch_screen import print_batch

    as_json = planned.keeping.as_json
    if dry_run:
        from prism.cli._running import naming_options
        from prism.cli._spent import print_estimate
        from prism.science._batch import estimate_batch

        import_from_here()
        with naming_options():
            found = estimate_batch(planned.new_plan())
        print_estimate(found, as_json=as_json)
        return

    begin = partial(science.batch, keep=keep)
    print_batch(planned.carry_out("prism batch", begin, science.resume_batch), as_json=as_json)


def sensitivity(
    *,
    method: Literal["morris", "sobol"] = "morris",
    samples: Annotated[int, typer.Option(min=2, metavar="N")] = 16,
    figures: Figures = "svg",
    planned: Annotated[PlannedRuns, PLANNED],
) -> None:
    """Vary the parameters that a plan bounds, and measure how the results depend on them.

    The runs form a batch, which can be stopped and resumed like any other. The indices are in
    sensitivity.csv and sensitivity.parquet, beside its tables.

    Options:
        method: Morris screens many parameters with few runs; Sobol decomposes the variance.
        samples: For Morris, the number of trajectories, each of which takes one run more than there
            are parameters. For Sobol, a power of 2; each sample takes two runs, and two more for
            every parameter.

    [bold]Examples[/bold]

    prism sensitivity plan.toml --samples 20 --out runs/screened

    prism sensitivity plan.toml --method sobol --samples 256 --out runs/shares

    prism sensitivity --resume runs/shares
    """
    from prism import science
    from prism.cli._batch_screen import print_batch, print_indices

    command, as_json = "prism sensitivity", planned.keeping.as_json
    begin = partial(science.sensitivity, method=method, samples=samples)
    done = planned.carry_out(command, begin, science.resume_sensitivity)
    if done.batch.failed:
        hint = f"run {command} --resume {done.batch.folder}"
        print_batch(
            *(done.batch, f"indices need all runs: once that is fixed, {hint}"), as_json=as_json
        )
    if figures is not None:
        done.save_figures(figures)
    print_indices(done, as_json=as_json)
