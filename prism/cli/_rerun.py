"""``prism rerun``: a run again, with something else from a round on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from prism.cli._options import (
    Agents,
    AsJson,
    ModelFile,
    ModelText,
    NewFolder,
    ParameterFile,
    PolicyFile,
    Rounds,
    Set,
    Ticks,
    Treat,
    WriterText,
    model_of,
    named_values,
    parameters_in,
    read_settings,
)
from prism.cli._screen import print_json, say, shortened

_MOST_SHOWN = 160


def rerun(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a complete run.")],
    out: NewFolder,
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
    from prism.cli._results import print_results
    from prism.runs import PolicyOptions
    from prism.science import rerun as run_again

    # a file alone changes settings of the run's own model
    asked: Any = model_file and read_settings(model_file)
    if model is not None:
        asked = model_of(model, model_file) if model_file else model
    changes: dict[str, Any] = {"agents": agents, "rounds": rounds, "ticks": ticks, "seed": seed}
    changes |= {"model": asked, "writer": writer, "reasoner": policy and PolicyOptions(policy)}
    with run_screen(out) as screen:
        found = run_again(
            run,
            out,
            from_round=from_round,
            treatments=treatments or (),
            parameters={**parameters_in(parameter_file), **named_values(parameters)},
            on_round=screen.round_ended,
            observer=screen,
            **{name: value for name, value in changes.items() if value is not None},
        )
    if as_json:
        about = {"run": str(run), "from_round": from_round, "folder": str(out)}
        print_json({**about, "differences": found.differences})
        return
    print_results(found.outcome.results)
    say(f"The log and its summary (run.json) are in {out}.")
    for what, row in found.differences.items():
        was, now = (shortened(row[side] or "nothing", _MOST_SHOWN) for side in ("was", "is_now"))
        when = f"round {row['round']}, tick {row['tick']}"
        say(f"The first {what} that differs: {when}: was {was}, is now {now}")
    if not found.differences:
        say(f"Every decision and transition is the same as in {run}.")
