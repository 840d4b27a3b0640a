"""``prism sensitivity``: which parameters of a plan its outcomes depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from prism.cli._batch import (
    WITH_RESUME,
    CheckpointEvery,
    Out,
    PlanFile,
    PlansModel,
    ResumeBatch,
    Seeds,
    Workers,
)
from prism.cli._chart_argument import import_from_here
from prism.cli._options import AsJson, Deadline, Hosts, MaxCalls, MaxTokens
from prism.cli._running import own_folder
from prism.cli._screen import Screen, note, plain, plain_table, pour
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN

if TYPE_CHECKING:
    from prism.science import Sensitivity

_COMMAND = "prism sensitivity"
_MOST_OUTCOMES = 6

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


def sensitivity(
    context: typer.Context,
    plan: PlanFile = None,
    method: Method = "morris",
    samples: Samples = 16,
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
    figures: Figures = "svg",
    as_json: AsJson = False,
) -> None:
    """Sample the parameters that a plan has bounds for, and see what depends on them.

    The runs are a batch, which is stopped and resumed like any other. The indices stand in
    sensitivity.csv and sensitivity.parquet beside its tables.

    [bold]Examples[/bold]

    prism sensitivity plan.toml --samples 20 --out runs/screened

    prism sensitivity plan.toml --method sobol --samples 256 --out runs/shares

    prism sensitivity --resume runs/shares
    """
    # what experiments need is loaded by their commands alone
    from prism import science
    from prism.cli._batch_screen import (
        batch_screen,
        new_folder,
        plan_with,
        print_batch,
        refuse_beside_resume,
    )

    import_from_here()
    if resume is not None:
        refuse_beside_resume(context, plan, (*WITH_RESUME, "figures"))
        folder = own_folder("--resume", resume)
        with batch_screen(folder, _COMMAND) as screen:
            done = science.resume_sensitivity(
                folder,
                workers=workers,
                hosts=host or (),
                checkpoint_every=checkpoint_every,
                observer=screen,
            )
    else:
        given = plan_with(plan, seeds, model, host, max_calls, max_tokens, deadline)
        folder = new_folder(out)
        with batch_screen(folder, _COMMAND) as screen:
            done = science.sensitivity(
                given,
                folder,
                method=method,
                samples=samples,
                workers=workers,
                checkpoint_every=checkpoint_every,
                observer=screen,
            )

    if done.batch.failed:
        print_batch(done.batch, as_json=as_json)
        note(f"indices need all runs: when that is mended, {_COMMAND} --resume {folder}")
        raise typer.Exit(1)

    if figures is not None:
        done.save_figures(figures)
    _print(done, as_json=as_json)


def _print(done: Sensitivity, *, as_json: bool) -> None:
    if as_json:
        pour(done.indices().write_json() + "\n")
        return

    screen = Screen()
    rows = done.indices().to_dicts()
    outcomes = list(dict.fromkeys(row["outcome"] for row in rows))
    for outcome in outcomes[:_MOST_OUTCOMES]:
        screen.print(f"[bold]{plain(outcome)}[/bold]")
        screen.print(_table([row for row in rows if row["outcome"] == outcome]))

    place = done.batch.folder / "sensitivity.csv"
    more = len(outcomes) - _MOST_OUTCOMES
    others = f", those of {more} more outcomes too" if more > 0 else ""
    screen.print(plain(f"Every index is a row of {place}{others}."), soft_wrap=True)


def _table(rows: list[dict[str, object]]) -> Table:
    """Return the indices of one outcome, a column each."""
    alone = [row for row in rows if row["other"] is None]
    indices = list(dict.fromkeys(str(row["index"]) for row in alone))
    table = plain_table()
    table.add_column("parameter")
    for index in indices:
        table.add_column(index, justify="right")

    for parameter in dict.fromkeys(str(row["parameter"]) for row in alone):
        own = {str(row["index"]): row for row in alone if row["parameter"] == parameter}
        table.add_row(plain(parameter), *(_shown(own[index]) for index in indices))

    return table


def _shown(row: dict[str, object]) -> str:
    value, interval = row["value"], row["interval"]
    if value is None:
        return "-"
    return f"{value:.3g}" if interval is None else f"{value:.3g} ±{interval:.2g}"
