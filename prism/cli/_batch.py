"""``prism batch``: all runs of a plan, several at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prism.cli._chart_argument import import_from_here
from prism.cli._options import (
    AsJson,
    Deadline,
    Hosts,
    MaxCalls,
    MaxTokens,
    keeping_option,
    model_option,
)
from prism.cli._running import own_folder
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN

COMMAND = "prism batch"
WITH_RESUME = ("resume", "workers", "host", "checkpoint_every", "as_json")

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
PlansModel = Annotated[
    str | None,
    model_option(help="Model that decides, instead of the one that the plan names."),
]
Out = Annotated[
    Path | None,
    keeping_option(
        metavar="DIR",
        help="Folder for the batch: plan.json, a folder for each run, and the tables results and "
        "rounds, as CSV and Parquet. A folder that holds a batch is refused.",
    ),
]
ResumeBatch = Annotated[
    Path | None,
    keeping_option(
        metavar="DIR",
        help="Go on with the batch in this folder, which was stopped in any way. Runs that are "
        "complete stay as they are; those that failed are tried again.",
    ),
]
CheckpointEvery = Annotated[
    float,
    keeping_option(
        min=0,
        metavar="SECONDS",
        help="A round that ends so long after its run's last checkpoint gets one; 0 for every "
        "round.",
    ),
]


def batch(
    context: typer.Context,
    plan: PlanFile = None,
    seeds: Seeds = None,
    workers: Workers = None,
    model: PlansModel = None,
    host: Hosts = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    deadline: Deadline = None,
    out: Out = None,
    resume: ResumeBatch = None,
    checkpoint_every: CheckpointEvery = DEFAULT_SECONDS_BETWEEN,
    as_json: AsJson = False,
) -> None:
    """Carry out a plan: all parameters in all arms with all seeds, one table of all runs.

    Limits on calls, tokens and time hold for all runs together. A run that fails is a row that says
    so, and the command ends with status 1.

    [bold]Examples[/bold]

    prism batch plan.toml --seeds 20 --workers 2 --out runs/herding

    prism batch --resume runs/herding
    """
    # what experiments need is loaded by their commands alone
    from prism.cli._batch_screen import (
        batch_screen,
        new_folder,
        plan_with,
        print_batch,
        refuse_beside_resume,
    )
    from prism.science import batch as carry_out
    from prism.science import resume_batch

    import_from_here()
    if resume is not None:
        refuse_beside_resume(context, plan, WITH_RESUME)
        folder = own_folder("--resume", resume)
        with batch_screen(folder, COMMAND) as screen:
            done = resume_batch(
                folder,
                workers=workers,
                hosts=host or (),
                checkpoint_every=checkpoint_every,
                observer=screen,
            )
    else:
        given = plan_with(plan, seeds, model, host, max_calls, max_tokens, deadline)
        folder = new_folder(out)
        with batch_screen(folder, COMMAND) as screen:
            done = carry_out(
                given,
                folder,
                workers=workers,
                checkpoint_every=checkpoint_every,
                observer=screen,
            )

    print_batch(done, as_json=as_json)
    if done.failed:
        raise typer.Exit(1)
