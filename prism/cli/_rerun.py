"""``prism rerun``: a run again, with something else from a round on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._options import (
    Agents,
    AsJson,
    Hosts,
    ModelFile,
    ModelText,
    ParameterFile,
    PolicyFile,
    Rounds,
    Set,
    Ticks,
    Treat,
    WriterText,
    import_from_here,
    model_of,
    own_folder,
    read_settings,
    world_parameters,
)
from prism.cli._screen import print_json, say, shortened

if TYPE_CHECKING:
    from prism.science import Rerun

_MOST_SHOWN = 160


def rerun(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a complete run.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the new run.")],
    from_round: Annotated[int, typer.Option(min=1, help="First round that is different.")],
    treatments: Treat = None,
    parameters: Set = None,
    parameter_file: ParameterFile = None,
    agents: Agents = None,
    rounds: Rounds = None,
    ticks: Ticks = None,
    seed: Annotated[int | None, typer.Option(help="Another seed.")] = None,
    model: ModelText = None,
    model_file: ModelFile = None,
    writer: WriterText = None,
    policy: PolicyFile = None,
    hosts: Hosts = None,
    as_json: AsJson = False,
) -> None:
    """Repeat a run with something changed from a given round on.

    The rounds before are repeated with the same random numbers and the recorded answers. --set,
    --treat, --model, --writer and --policy count from that round on; --agents, --ticks and --seed
    need --from-round 1.

    **Examples**

    * `prism rerun runs/rumour --from-round 12 --treat warning@12 --out runs/warned`

    * `prism rerun runs/asked --from-round 5 --model ollama:qwen3 --out runs/other`
    """
    from prism.cli._progress import run_screen
    from prism.science import rerun as run_again

    import_from_here()
    # a file alone changes settings of the run's own model
    asked: Any = model_of(model, model_file) if model else model_file and read_settings(model_file)
    with run_screen(own_folder("--out", out)) as screen:
        found = run_again(
            run,
            out,
            from_round=from_round,
            treatments=treatments or (),
            parameters=_parameters(run, parameter_file, parameters),
            model=asked,
            writer=writer,
            policy=policy,
            agents=agents,
            seed=seed,
            ticks=ticks,
            rounds=rounds,
            hosts=hosts or (),
            on_round=screen.round_ended,
            observer=screen,
        )
    _print(found, as_json=as_json)


def _parameters(run: Path, file: Path | None, pairs: list[str] | None) -> dict[str, Any]:
    """Return the parameters that change in a run."""
    from prism.runs._folder import read_summary

    world = "" if file is None else str(read_summary(run)["config"].get("world"))
    return world_parameters(world, file, pairs)


def resume_changed(folder: Path, hosts: Sequence[str], *, as_json: bool) -> None:
    """Continue a rerun that was stopped."""
    from prism.cli._progress import run_screen
    from prism.science import resume_rerun

    with run_screen(folder) as screen:
        found = resume_rerun(folder, hosts=hosts, on_round=screen.round_ended, observer=screen)
    _print(found, as_json=as_json)


def _print(found: Rerun, *, as_json: bool) -> None:
    if as_json:
        print_json({**found.to_dict(), "folder": str(found.folder)})
        return
    if found.outcome is not None:
        from prism.cli._results import print_results

        print_results(found.outcome.results)
        say(f"The log and its summary (run.json) are in {found.folder}.")

    for what, parted in {"decision": found.decision, "transition": found.transition}.items():
        if parted is None:
            say(f"Every {what} is the same as in {found.run}.")
        else:
            was, now = (
                shortened(_event(each), _MOST_SHOWN) for each in (parted.was, parted.is_now)
            )
            when = f"round {parted.round}, tick {parted.tick}"
            say(f"The first {what} that differs: {when}: was {was}, is now {now}")


def _event(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "nothing"
    source = row.get("state") or row.get("from_state")
    target = row.get("chosen") or row.get("to_state")
    about = f" about {row['context']}" if row.get("context") else ""
    return f"{row.get('agent_id')} {source} -> {target} ({row.get('trigger')}{about})"
