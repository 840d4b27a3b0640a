"""``prism simulate``: a whole simulation from one command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from prism import __version__
from prism.agents import Population, SeedPost, load_population, load_posts, opening_posts, synthetic_population
from prism.cli.output import RoundProgress, print_results
from prism.errors import InputError
from prism.llm import DEFAULT_HOST, OllamaChatClient
from prism.runlog import SimulatedClock
from prism.runlog.events import SCHEMA_VERSION
from prism.simulation import Results, Simulation
from prism.simulation.run_folder import RunFolder
from prism.simulation.simulation import DEFAULT_ROUNDS, DEFAULT_TICKS_PER_ROUND
from prism.statechart import AgentState, BaseReasoner, PolicyReasoner, Reasoner

DEFAULT_AGENTS = "100"

_MOST_SEED = 2**53  # the largest whole number that every reader of JSON reads as it is


class ReasonerKind(StrEnum):
    """Who decides where several moves are open."""

    POLICY = "policy"
    OLLAMA = "ollama"


def simulate(
    agents: Annotated[
        str,
        typer.Option(
            metavar="N|FILE",
            help="How many agents to make up, or a file of them: prism's own JSON Lines (.jsonl), "
            "OASIS Reddit personas (.json) or an OASIS Twitter population (.csv).",
        ),
    ] = DEFAULT_AGENTS,
    posts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Posts to begin with, JSON Lines with author_id, text and topics. Without it, made-up agents "
            "and agents of a file that has no posts begin with one post each.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = DEFAULT_ROUNDS,
    ticks: Annotated[int, typer.Option(min=1, help="Steps every agent takes in a round.")] = DEFAULT_TICKS_PER_ROUND,
    seed: Annotated[int, typer.Option(help="Seed of every random number; the same seed gives the same run.")] = 0,
    reasoner: Annotated[
        ReasonerKind, typer.Option(help="Who decides: a seeded policy without any model, or a model on Ollama.")
    ] = ReasonerKind.POLICY,
    model: Annotated[str | None, typer.Option(help="Model to ask, with --reasoner ollama.")] = None,
    host: Annotated[
        str | None, typer.Option(metavar="URL", help="Ollama server, by default http://127.0.0.1:11434.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for the run: events.jsonl (every move, one JSON object a line) and run.json. "
            "Without it nothing is written. A folder that holds a run is refused.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of tables.")] = False,
) -> None:
    """Run agents through rounds of scrolling, weighing, writing and sharing.

    [bold]Examples[/bold]

    prism simulate --agents 100 --rounds 10 --out runs/first

    prism simulate --agents personas.json --seed 7 --json

    prism simulate --agents 50 --reasoner ollama --model llama3.2
    """
    if abs(seed) > _MOST_SEED:
        raise InputError(f"--seed must lie between -2^53 and 2^53, got {seed}")
    population = _population(agents, seed)
    seeds = _posts(posts, population, seed)
    decider = _reasoner(reasoner, model, host, seed)
    folder = None if out is None else RunFolder(out)
    clock = SimulatedClock()
    with ExitStack() as stack:
        log = None if folder is None else stack.enter_context(folder.open_log(clock))
        simulation = Simulation(
            population.agents,
            seeds,
            rounds=rounds,
            ticks_per_round=ticks,
            seed=seed,
            reasoner=decider,
            logger=None if log is None else log.logger,
            clock=clock,
        )
        progress = stack.enter_context(RoundProgress(rounds, flush=None if log is None else log.flush))
        results = simulation.run(progress.round_ended)
    config = {
        "agents": agents,
        "posts": None if posts is None else str(posts),
        "rounds": rounds,
        "ticks_per_round": ticks,
        "seed": seed,
        "reasoner": reasoner.value,
        "model": model,
        "host": host,
    }
    _report(_summary(config, results), results, folder, as_json=as_json)


def _population(agents: str, seed: int) -> Population:
    try:
        size = int(agents)
    except ValueError:
        return load_population(Path(agents), seed=seed)
    if size < 1:
        raise InputError(f"--agents must be 1 or more, got {size}")
    return synthetic_population(size, seed=seed)


def _posts(path: Path | None, population: Population, seed: int) -> Sequence[SeedPost]:
    if path is not None:
        return load_posts(path, population.agents)
    return population.posts or opening_posts(population.agents, seed=seed)


def _reasoner(kind: ReasonerKind, model: str | None, host: str | None, seed: int) -> BaseReasoner:
    if kind is ReasonerKind.POLICY:
        for option, value in (("--model", model), ("--host", host)):
            if value is not None:
                raise InputError(f"{option} needs --reasoner ollama; the policy asks no model")
        return PolicyReasoner(seed)
    if model is None:
        raise InputError("--reasoner ollama needs --model, the name of a model that 'ollama list' shows")
    client = OllamaChatClient(host or DEFAULT_HOST, model, seed=seed)
    return Reasoner(client, fallback=AgentState.SCROLLING)


def _summary(config: dict[str, Any], results: Results) -> dict[str, Any]:
    return {"prism": __version__, "schema": SCHEMA_VERSION, "config": config, "results": results.to_dict()}


def _report(summary: dict[str, Any], results: Results, folder: RunFolder | None, *, as_json: bool) -> None:
    if folder is not None:
        folder.write_summary(summary)
    if as_json:
        typer.echo(json.dumps(summary, indent=2))
    else:
        print_results(results, None if folder is None else folder.path)
