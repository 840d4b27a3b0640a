"""``prism run``, ``simulate``, ``resume``, ``replay`` and ``rerun``: a run from one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from prism.cli import _options as options
from prism.cli._screen import note, print_json, say, shortened
from prism.errors import InputError

_LONGEST = 160


def run(
    world: Annotated[
        str,
        typer.Argument(
            metavar="WORLD",
            help="A world: package.module:Name, file.py:Name, or a name of prism world list; an "
            "agent in YAML (.yaml); or a thinking agent (.json, or file.py:Class).",
        ),
    ],
    agents: options.Agents = None,
    rounds: options.Rounds = None,
    ticks: options.Ticks = None,
    seed: options.Seed = 0,
    parameters: options.Set = None,
    treatments: options.Treat = None,
    log_agents: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Log a sample of N agents; with 0, only totals."),
    ] = None,
    model: options.ModelText = None,
    model_file: options.ModelFile = None,
    max_calls: options.MaxCalls = None,
    writer: options.WriterText = None,
    policy: options.PolicyFile = None,
    dry_run: options.DryRun = False,
    memory: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Memory of a thinking agent; created if missing."),
    ] = None,
    out: options.OutFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """Run a world, an agent in YAML or a thinking agent, through rounds and ticks.

    For a single agent, a round is a turn or a cycle of thinking. With `--out`, the folder has
    every event (`events.jsonl`) and a summary (`run.json`). The exit status is 1 if a single agent
    failed, or if the model made no decision. `prism simulate` is `prism run feed`, and takes no
    WORLD.

    **Examples**

    * `prism run rumour --set friends=8 --treat warning@12 --out runs/rumour`

    * `prism run mine.py:Mine --agents people.csv`

    * `prism run vaccination --model ollama:llama3.2 --max-calls 1000 --out runs/asked`

    * `prism run agent.yaml --rounds 20 --model ollama:llama3.2 --set balance=100`

    * `prism run story/config.json --memory story/memory.json --model ollama:llama3.2`
    """
    from prism.worlds.addresses import alone

    values: dict[str, Any] = {**options.named_values(parameters)}
    arguments: dict[str, Any] = {"agents": agents, "rounds": rounds, "ticks": ticks, "seed": seed}
    arguments |= {"treatments": treatments, "log_agents": log_agents, "memory": memory}
    if alone(world) is None:
        arguments |= _askers(model, model_file, writer, policy, max_calls)
    else:
        # a run of a single agent refuses what is for worlds
        arguments |= {"writer": writer, "policy": policy}
        arguments["reasoner"] = options.model_of(model, model_file, max_calls=max_calls)
        values = {name: _value(each) for name, each in values.items()}
    arguments["parameters"] = values or None
    arguments = {name: value for name, value in arguments.items() if value is not None}
    _carry_out(world, arguments, out, dry_run=dry_run, as_json=as_json)


def _carry_out(
    world: str, arguments: dict[str, Any], out: Path | None, *, dry_run: bool, as_json: bool
) -> None:
    """Carry out a run, or estimate its costs, and print the results."""
    from prism.cli._progress import run_screen
    from prism.cli._results import print_outcome
    from prism.runs import RunFolder
    from prism.runs.running import carry_out
    from prism.worlds import Run

    if dry_run:
        from prism.cli._results import print_estimate
        from prism.runs.dry_run import estimate

        print_estimate(estimate(Run(world, **arguments)), as_json=as_json)
        return

    with run_screen(out, arguments.get("agents")) as screen:
        outcome = carry_out(
            Run(world, **arguments),
            None if out is None else RunFolder.for_new(out),
            on_round=screen.round_ended,
            observer=screen,
            with_config=out is not None or as_json,
        )
    print_outcome(outcome, as_json=as_json)


def simulate() -> None:
    """Run the social feed, where agents scroll, weigh, write and share: `prism run feed`.

    **Examples**

    * `prism simulate --agents 100 --rounds 10 --out runs/first`

    * `prism simulate --set preset=twitter --model ollama:llama3.2 --out runs/asked`
    """


def resume(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder of the run, or of the batch.")
    ],
    workers: options.Workers = None,
    as_json: options.AsJson = False,
) -> None:
    """Continue a run, a rerun, a batch, an analysis or a fit that was stopped.

    Everything that it depends on is in its folder; the journal has the answers so far.

    **Example**

    * `prism resume runs/first`
    """
    from prism.cli._progress import run_screen
    from prism.cli._results import print_outcome

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
        print_outcome(outcome, as_json=as_json)


def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.")],
    out: options.OutFolder = None,
    as_json: options.AsJson = False,
) -> None:
    """Repeat a run with the answers of its journal, and write the same log; ask no model.

    **Example**

    * `prism replay runs/asked --out runs/again`
    """
    from prism import worlds
    from prism.cli._progress import run_screen
    from prism.cli._results import print_outcome

    with run_screen(out) as screen:
        outcome = worlds.replay(run, out, on_round=screen.round_ended, observer=screen)
    print_outcome(outcome, as_json=as_json)


def rerun(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a complete run.")],
    out: options.NewFolder,
    from_round: Annotated[int, typer.Option(min=1, help="First round that is different.")],
    treatments: options.Treat = None,
    parameters: options.Set = None,
    agents: options.Agents = None,
    rounds: options.Rounds = None,
    ticks: options.Ticks = None,
    seed: Annotated[int | None, typer.Option(help="Another seed.")] = None,
    model: options.ModelText = None,
    model_file: options.ModelFile = None,
    writer: options.WriterText = None,
    policy: options.PolicyFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Repeat a run with something changed from a given round on.

    The rounds before are repeated with the same random numbers and the recorded answers. --set,
    --treat, --model, --writer and --policy count from that round on; --agents, --ticks and --seed
    need --from-round 1.

    **Examples**

    * `prism rerun runs/rumour --from-round 12 --treat warning@12 --out runs/warned`

    * `prism rerun runs/asked --from-round 5 --model ollama:qwen3 --out runs/other`
    """
    from prism import science
    from prism.cli._progress import run_screen
    from prism.cli._results import print_results
    from prism.runs import PolicyOptions

    # a file alone changes settings of the run's own model
    new_model: Any = model_file and options.read_settings(model_file)
    if model is not None:
        new_model = options.model_of(model, model_file) if model_file else model
    changes: dict[str, Any] = {"agents": agents, "rounds": rounds, "ticks": ticks, "seed": seed}
    changes |= {"model": new_model, "writer": writer, "reasoner": policy and PolicyOptions(policy)}
    with run_screen(out) as screen:
        repeated = science.rerun(
            run,
            out,
            from_round=from_round,
            treatments=treatments or (),
            parameters=options.named_values(parameters),
            on_round=screen.round_ended,
            observer=screen,
            **{name: value for name, value in changes.items() if value is not None},
        )
    if as_json:
        about = {"run": str(run), "from_round": from_round, "folder": str(out)}
        print_json({**about, "differences": repeated.differences})
        return
    print_results(repeated.outcome.results)
    say(f"The log and its summary (run.json) are in {out}.")
    for what, row in repeated.differences.items():
        was, now = (shortened(row[side] or "nothing", _LONGEST) for side in ("was", "is_now"))
        when = f"round {row['round']}, tick {row['tick']}"
        say(f"The first {what} that differs: {when}: was {was}, is now {now}")
    if not repeated.differences:
        say(f"Every decision and transition is the same as in {run}.")


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
    decider = options.model_of(model, file, max_calls=max_calls) if decides else None
    if policy is not None and decider is not None:
        raise InputError("--policy already decides: leave out --model")
    writes: Any = writer
    if writer is not None and decider is None:
        writes = options.model_of(writer, file, "writer", max_calls=max_calls)
    elif writer is not None and writer == model:
        # one model that does both has the settings of the file, such as prices, for both
        writes = WriterOptions()
    reasoner = decider if policy is None else PolicyOptions(policy)
    return {"reasoner": reasoner, "writer": writes}


def _value(text: str) -> Any:
    """Read the value of an agent's variable: JSON, or else text."""
    from prism.files import parse_json

    try:
        return parse_json(text)
    except InputError:
        return text
