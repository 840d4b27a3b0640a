"""``prism run``, ``simulate``, ``resume`` and ``replay``: a whole run from one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from prism.cli._options import (
    Agents,
    AsJson,
    DryRun,
    MaxCalls,
    ModelFile,
    ModelText,
    OutFolder,
    ParameterFile,
    PolicyFile,
    Rounds,
    Seed,
    Set,
    Ticks,
    Treat,
    WriterText,
    model_of,
    named_values,
    option_of,
    parameters_in,
)
from prism.errors import InputError

SETTINGS = {
    "simulate": {
        "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True},
        "add_help_option": False,
    }
}
"""Settings of commands for Typer: ``simulate`` passes its options on."""


def run(
    world: Annotated[
        str,
        typer.Argument(
            metavar="WORLD",
            help="A world: package.module:Name, file.py:Name, or a name of prism world list; an "
            "agent in YAML (.yaml); or a thinking agent (.json, or file.py:Class).",
        ),
    ],
    agents: Agents = None,
    rounds: Rounds = None,
    ticks: Ticks = None,
    seed: Seed = 0,
    parameters: Set = None,
    parameter_file: ParameterFile = None,
    treatments: Treat = None,
    log_agents: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Log a sample of agents only; 0 for totals alone."),
    ] = None,
    model: ModelText = None,
    model_file: ModelFile = None,
    max_calls: MaxCalls = None,
    writer: WriterText = None,
    policy: PolicyFile = None,
    dry_run: DryRun = False,
    memory: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Memory of a thinking agent; created if missing."),
    ] = None,
    out: OutFolder = None,
    as_json: AsJson = False,
) -> None:
    """Run a world, an agent in YAML or a thinking agent, through rounds and ticks.

    For a single agent, a round is a turn or a cycle of thinking. With `--out`, the folder has
    every event (`events.jsonl`) and a summary (`run.json`). The exit status is 1 if a single agent
    failed, or no decision is the model's.

    **Examples**

    * `prism run rumour --set friends=8 --treat warning@12 --out runs/rumour`

    * `prism run mine.py:Mine --agents people.csv`

    * `prism run vaccination --model ollama:llama3.2 --max-calls 1000 --out runs/asked`

    * `prism run agent.yaml --rounds 20 --model ollama:llama3.2 --set balance=100`

    * `prism run story/config.json --memory story/memory.json --model ollama:llama3.2`
    """
    from prism.worlds._addresses import key_of

    shared: dict[str, Any] = {
        "agents": agents,
        "ticks": ticks,
        "treatments": treatments,
        "writer": writer,
    }
    shared |= {"log_agents": log_agents, "policy": policy}
    key = key_of(world)
    for name, value in (shared if key else {"memory": memory}).items():
        if value is not None:
            what = "is not for a single agent" if key else "is for single agents"
            raise InputError(f"{option_of(name)} {what}: leave it out")

    given: dict[str, Any] = {"rounds": rounds, "seed": seed}
    if key is None:
        given |= {name: shared[name] for name in ("agents", "ticks", "treatments", "log_agents")}
        given |= _askers(model, model_file, writer, policy, max_calls)
        given["parameters"] = {**parameters_in(parameter_file), **named_values(parameters)}
    elif key == "cognition" and memory is None:
        raise InputError("no memory is named: add --memory FILE; a missing one is created")
    else:
        given |= {"reasoner": model_of(model, model_file, max_calls=max_calls), "memory": memory}
        given |= _of_one(key, parameter_file, parameters)
    given = {name: value for name, value in given.items() if value is not None}
    _carry_out(world, given, out, dry_run=dry_run, as_json=as_json)


def _carry_out(
    world: str, given: dict[str, Any], out: Path | None, *, dry_run: bool, as_json: bool
) -> None:
    """Carry out a run, or estimate its costs, and print the results."""
    from prism.cli._progress import run_screen
    from prism.cli._results import tell
    from prism.runs._folder import RunFolder
    from prism.runs._running import carry_out
    from prism.worlds import Run

    if dry_run:
        from prism.cli._spent import print_estimate
        from prism.runs._dry_run import estimate

        print_estimate(estimate(Run(world, **given)), as_json=as_json)
        return

    with run_screen(out) as screen:
        outcome = carry_out(
            Run(world, **given),
            None if out is None else RunFolder.for_new(out),
            on_round=screen.round_ended,
            observer=screen,
            with_config=out is not None or as_json,
        )
    tell(outcome, as_json=as_json)


def simulate(context: typer.Context) -> None:
    """Run the social feed, where agents scroll, weigh, write and share: `prism run feed`.

    **Examples**

    * `prism simulate --agents 100 --rounds 10 --out runs/first`

    * `prism simulate --set preset=twitter --model ollama:llama3.2 --out runs/asked`
    """
    from prism.cli._main import command_named

    status = command_named("run").main(
        ["feed", *context.args], prog_name="prism run", standalone_mode=False
    )
    raise typer.Exit(int(status or 0))


def resume(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of the run, or of the batch.")
    ],
    workers: Annotated[
        int | None, typer.Option(min=1, help="Runs of a batch at a time; else one a processor.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Continue what was stopped, however that was: a run, a rerun, a batch, an analysis or a fit.

    Everything that it depends on is in its folder; the journal has the answers so far.

    **Example**

    * `prism resume runs/first`
    """
    from prism.cli._progress import run_screen
    from prism.cli._results import tell
    from prism.cli._screen import note

    if (folder / "plan.json").exists():
        from prism.cli._batch import resume_plan

        resume_plan(folder, workers, as_json=as_json)
        return

    from prism import worlds

    with run_screen(folder) as screen:
        outcome = worlds.resume(folder, on_round=screen.round_ended, observer=screen)

    if outcome is None:
        note(f"{folder} is complete: there is nothing to resume")
    else:
        tell(outcome, as_json=as_json)


def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.")],
    out: OutFolder = None,
    as_json: AsJson = False,
) -> None:
    """Repeat a run with the answers of its journal, and write the same log; ask no model.

    **Example**

    * `prism replay runs/asked --out runs/again`
    """
    from prism import worlds
    from prism.cli._progress import run_screen
    from prism.cli._results import tell

    with run_screen(out) as screen:
        outcome = worlds.replay(run, out, on_round=screen.round_ended, observer=screen)
    tell(outcome, as_json=as_json)


def _askers(
    model: str | None,
    file: Path | None,
    writer: str | None,
    policy: Path | None,
    max_calls: int | None,
) -> dict[str, Any]:
    """Return what decides in a world, and what writes."""
    from prism.runs import PolicyOptions, WriterOptions

    # a writer may be the only one that is asked
    decides = model is not None or writer is None
    asked = model_of(model, file, max_calls=max_calls) if decides else None
    if policy is not None and asked is not None:
        raise InputError("--policy already decides: leave out --model")
    text = writer if asked or writer is None else model_of(writer, file, max_calls=max_calls)
    return {
        "reasoner": PolicyOptions(policy) if policy is not None else asked,
        "writer": text and WriterOptions(text),
    }


def _of_one(key: str, file: Path | None, pairs: list[str] | None) -> dict[str, Any]:
    """Return the variables of an agent in YAML; a thinking agent has none."""
    values = named_values(pairs)
    if key != "workflow" and (file is not None or values):
        raise InputError("--set and --parameters are not for a thinking agent: leave them out")
    if key != "workflow":
        return {}
    read = {name: _value(name, each) for name, each in values.items()}
    return {"parameters": {**parameters_in(file), **read}}


def _value(name: str, text: str) -> Any:
    """Read the value of a variable: JSON, or else text."""
    from prism.files import parse_json

    if not name.isidentifier():
        raise InputError(f"--set: {name!r} is no name of letters, digits and underscores")
    try:
        return parse_json(text)
    except InputError:
        return text
