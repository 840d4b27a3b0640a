"""``prism protocol``: can a policy take a model's place?"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._calibrate import print_divergence
from prism.cli._feed_parameters import ParameterFile, PresetName, feed_parameters
from prism.cli._options import (
    Cache,
    Deadline,
    Hosts,
    MaxCalls,
    MaxTokens,
    ModelName,
    Models,
    Patience,
    Resume,
    ServerKind,
    Temperature,
    Thinking,
    Timeout,
    keeping_option,
    model_option,
    model_options,
)
from prism.cli._results import RoundProgress
from prism.cli._running import own_folder, refuse_what_is_settled, run_screen
from prism.cli._screen import Screen, say
from prism.cli._simulate_world import Parameters
from prism.cli._table_output import TableFormat, write
from prism.errors import InputError
from prism.files import write_durably
from prism.social import SocialRun
from prism.social._feed import DEFAULT_TICKS_PER_ROUND

if TYPE_CHECKING:
    from prism.science import Protocol, ProtocolResults

_COMMAND = "prism protocol"
_WITH_RESUME = ("resume", "host")
_PAGE = "index.html"
_FIGURES = "{comparison}-{strategy}.pdf"


class Told(StrEnum):
    """What the model is told of how users of its type behave."""

    BASE = "base"
    GUIDED = "guided"
    PROBABILISTIC = "probabilistic"


def protocol(
    context: typer.Context,
    model: ModelName = None,
    reasoner: ServerKind = None,
    host: Hosts = None,
    think: Thinking = None,
    temperature: Temperature = None,
    models: Models = None,
    concurrency: Annotated[
        int | None, model_option(min=1, help="Questions under way at once on each server.")
    ] = None,
    timeout: Timeout = None,
    patience: Patience = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    deadline: Deadline = None,
    cache: Cache = None,
    agents: Annotated[
        str, typer.Option(metavar="N|FILE", help="How many agents to make up, or a file of them.")
    ] = "1000",
    posts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Posts to begin with, JSON Lines.")
    ] = None,
    ticks: Annotated[
        int, typer.Option(min=1, help="Steps every agent takes in a round.")
    ] = DEFAULT_TICKS_PER_ROUND,
    decisions: Annotated[int, typer.Option(min=1, help="Decisions to compare.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all runs.")] = 0,
    preset: PresetName = None,
    parameter_file: ParameterFile = None,
    parameters: Parameters = None,
    strategies: Annotated[
        list[Told] | None,
        typer.Option(
            "--strategy",
            help="What the model is told of how users of its type behave: nothing (base, the "
            "default), in words, or in numbers. Repeat it for several.",
        ),
    ] = None,
    kind: Annotated[
        Literal["markov", "logit"],
        typer.Option("--calibrate", help="The policy that is calibrated on the model."),
    ] = "markov",
    reference: Annotated[
        Path | None,
        typer.Option(
            "--policy", metavar="FILE", help="Explicit policy to compare with, not the built-in."
        ),
    ] = None,
    smoothing: Annotated[
        float, typer.Option(min=0, help="Added to every count before the divergence is taken.")
    ] = 1.0,
    out: Annotated[
        Path | None, keeping_option(metavar="DIR", help="Folder for all runs and results.")
    ] = None,
    resume: Resume = None,
) -> None:
    """Run a model and explicit policies on the same seed, and say how far their choices differ.

    The explicit policy runs first, until it has made the decisions. Then the model does, a policy
    is calibrated on one half of its agents, and runs as well. Compared are the model and the
    explicit policy, and the other half of the agents with those of the calibrated policy. After
    arXiv:2606.12369.

    [bold]Examples[/bold]

    prism protocol --model llama3.2 --out runs/protocol

    prism protocol --model llama3.2 --strategy base --strategy probabilistic --out runs/told

    prism protocol --resume runs/protocol
    """
    if resume is not None:
        refuse_what_is_settled(context, _WITH_RESUME)
        _carry_out(None, own_folder("--resume", resume), tuple(host or ()))
        return
    if out is None:
        raise InputError("--out is needed: the folder to keep all runs in")

    from prism.science import Protocol

    asked = {
        "model": model,
        "server": reasoner,
        "host": tuple(host) if host else None,
        "think": think,
        "temperature": temperature,
        "concurrency": concurrency,
        "timeout": timeout,
        "patience": patience,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "deadline": deadline,
        "cache": cache,
    }
    if model is None and models is None:
        raise InputError("--model is needed: the name of a model")

    run = SocialRun(
        agents,
        posts,
        ticks_per_round=ticks,
        seed=seed,
        reasoner=model_options(models, asked),
        parameters=feed_parameters(None, preset, parameter_file, parameters),
        preset=preset,
    )
    told: Any = tuple(each.value for each in dict.fromkeys(strategies or (Told.BASE,)))
    made = Protocol(run, decisions, told, kind, reference, smoothing=smoothing)
    _carry_out(made, own_folder("--out", out), ())


def _carry_out(made: Protocol | None, folder: Path, hosts: tuple[str, ...]) -> None:
    from prism.science import run_protocol

    with run_screen(folder, _COMMAND, _progress) as screen:
        results = run_protocol(made, folder, hosts=hosts, observer=screen)

    _keep(results)
    for (strategy, compared), table in results.divergence.group_by(
        "strategy", "comparison", maintain_order=True
    ):
        against = "the explicit policy" if compared == "reference" else "its calibrated policy"
        say(f"\nModel ({strategy}) against {against}")
        print_divergence(table)

    Screen().print("[bold]Time[/bold]")
    write(results.speed, TableFormat.TABLE, None, results.speed.columns)
    say(f"Everything is in {folder}: {_PAGE}, divergence.csv, speed.csv, figures and runs.")


def _progress(run: Any) -> RoundProgress:
    return RoundProgress(run.rounds, done=len(run.finished))


def _keep(results: ProtocolResults) -> None:
    """Write page and figures beside the tables."""
    from prism.cli._calibrate import save_figure
    from prism.science._protocol_page import protocol_page

    write_durably(results.folder / _PAGE, protocol_page(results).encode())
    by = ["strategy", "comparison"]
    for (strategy, compared), table in results.divergence.group_by(by, maintain_order=True):
        name = _FIGURES.format(comparison=compared, strategy=strategy)
        save_figure(table, results.folder / name, [])
