"""``prism rerun``: a run again, with something else from a round on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._options import Keeping, import_from_here, keeping_panel, model_panel
from prism.cli._screen import pour_json, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.cli._running import RunScreen
    from prism.science import Parted, Rerun

_COMMAND = "prism rerun"


def rerun(
    *,
    run: Annotated[Path | None, typer.Argument(metavar="RUN", show_default=False)] = None,
    from_round: Annotated[int | None, typer.Option(min=1)] = None,
    change: Annotated[Path | None, typer.Option("--with", metavar="FILE")] = None,
    treatments: Annotated[list[str] | None, typer.Option("--treat", metavar="NAME@ROUND")] = None,
    then: Literal["model", "policy"] = "model",
    model: Annotated[Mapping[str, Any], model_panel("host")],
    keeping: Annotated[
        Keeping,
        keeping_panel(out="Folder for the new run."),
    ],
) -> None:
    """Repeat a run with something changed from a given round on.

    The rounds before are repeated from the log, with the same random numbers and the recorded
    answers of a model.

    Options:
        run: Folder of the run.
        from_round: First round in which something is different.
        change: TOML file of treatments that make the difference. Without it, the run is repeated
            unchanged.
        treatments: Apply a treatment of the world. Repeat it for several.
        then: If a model decided in the run, who answers the questions that its log does not answer.

    [bold]Examples[/bold]

    prism rerun runs/first --from-round 5 --with treatment.toml --out runs/otherwise

    prism rerun runs/rumour --from-round 12 --treat warning@12 --out runs/warned

    prism rerun --resume runs/otherwise
    """
    from prism.cli._running import begin_or_resume, run_screen

    # only the commands of experiments load what they need
    from prism.science import read_change, resume_rerun
    from prism.science import rerun as run_again

    import_from_here()
    more: dict[str, Any] = {
        "hosts": model.get("host", ()),
        **keeping.paced,
    }

    def begin(folder: Path | None, screen: RunScreen) -> Rerun:
        if run is None or from_round is None or folder is None:
            lacking = "a RUN" if run is None else "--from-round" if from_round is None else "--out"
            raise InputError(f"{_COMMAND} needs {lacking}")

        given: tuple[Any, ...] = tuple(treatments or ())
        if change is not None:
            given += read_change(change, run, from_round)
        more.update(on_round=screen.round_ended, observer=screen)
        return run_again(run, folder, from_round=from_round, treatments=given, then=then, **more)

    def resume(folder: Path, screen: RunScreen) -> Rerun:
        return resume_rerun(folder, on_round=screen.round_ended, observer=screen, **more)

    screen = partial(run_screen, command=f"{_COMMAND} --resume")
    found = begin_or_resume(keeping, begin, resume, screen)
    _print(found, as_json=keeping.as_json)


def _print(found: Rerun, *, as_json: bool) -> None:
    if as_json:
        pour_json({**found.to_dict(), "folder": str(found.folder)})
        return

    if found.outcome is not None:
        from prism.cli._results import print_results

        print_results(found.outcome.results, found.outcome.folder)

    tell_difference(found.run, found.decision, found.transition)


def tell_difference(run: Path, decision: Parted | None, transition: Parted | None) -> None:
    """Print where another run parts from a run, or that it does not."""
    if decision is None and transition is None:
        say(f"Every decision and transition is the same as in {run}.")
        return

    for what, parted in (("decision", decision), ("transition", transition)):
        told = "none"
        if parted is not None:
            when = f"round {parted.round}, tick {parted.tick}: " if parted.round is not None else ""
            told = f"{when}was {_event(parted.was)}, is now {_event(parted.is_now)}"
        say(f"The first {what} that differs from {run}: {told}")


def _event(row: Any) -> str:
    if row is None:
        return "nothing"

    target = row.get("chosen") or row.get("to_state")
    source = row.get("state") or row.get("from_state")
    about = f" about {row['context']}" if row.get("context") else ""
    return f"{row['agent_id']} {source} -> {target} ({row['trigger']}{about})"
