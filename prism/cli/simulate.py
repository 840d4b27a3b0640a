"""``prism simulate``: a whole simulation from one command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from prism import __version__
from prism.agents import Population, SeedPost, load_population, load_posts, opening_posts, synthetic_population
from prism.cli.output import RoundProgress, print_results
from prism.cli.reasoners import ModelOptions, ModeName, PickName, ReasonerKind, make_reasoner
from prism.errors import InputError, ModelMissingError, OverloadedError, PrismError, TimedOutError, UnreachableError
from prism.llm import DEFAULT_HOST, OllamaPool
from prism.runlog import SimulatedClock
from prism.runlog.events import SCHEMA_VERSION
from prism.simulation import Results, Simulation
from prism.simulation.run_folder import RunFolder
from prism.simulation.simulation import DEFAULT_ROUNDS, DEFAULT_TICKS_PER_ROUND
from prism.statechart import BaseReasoner, Reasoner

DEFAULT_AGENTS = "100"
_MODEL = "Asking a model"
_WILL_FALL_BACK = (ModelMissingError, OverloadedError, TimedOutError, UnreachableError)

_MOST_SEED = 2**53  # the largest whole number that every reader of JSON reads as it is


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
            help="Posts to begin with, JSON Lines with author_id and text, and topics and post_id if there are any. "
            "Without it, made-up agents and agents of a file that has no posts begin with one post each.",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = DEFAULT_ROUNDS,
    ticks: Annotated[int, typer.Option(min=1, help="Steps every agent takes in a round.")] = DEFAULT_TICKS_PER_ROUND,
    seed: Annotated[int, typer.Option(help="Seed of every random number; the same seed gives the same run.")] = 0,
    reasoner: Annotated[
        ReasonerKind, typer.Option(help="Who decides: a seeded policy without any model, or a model on Ollama.")
    ] = ReasonerKind.POLICY,
    model: Annotated[
        str | None, typer.Option(help="Model to ask, with --reasoner ollama.", rich_help_panel=_MODEL)
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help=f"Ollama server, by default {DEFAULT_HOST}. Say it several times for several servers.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    mode: Annotated[
        ModeName | None,
        typer.Option(
            help="Ask a decision model for probabilities, or have a model write its choice; "
            "auto takes decisions where server and model offer them.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    pick: Annotated[
        PickName | None,
        typer.Option(help="Draw from the probabilities, or take the likeliest.", rich_help_panel=_MODEL),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Questions under way at once on each server. 4 by default.", rich_help_panel=_MODEL),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.01, help="Seconds to wait for one reply. 60 by default.", rich_help_panel=_MODEL),
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(min=1, help="Requests the run may make.", rich_help_panel=_MODEL)
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens the run may use.", rich_help_panel=_MODEL)
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(min=0.01, help="Seconds for which the run may ask.", rich_help_panel=_MODEL)
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep answers in this file, and use those in it.", rich_help_panel=_MODEL),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Take the decisions from an earlier run (its folder or log) instead of a model; "
            "with the same agents, posts, rounds, ticks and seed this writes the same log.",
            rich_help_panel=_MODEL,
        ),
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

    prism simulate --agents 50 --reasoner ollama --model llama3.2 --max-calls 1000 --out runs/model

    prism simulate --agents 50 --replay runs/model --out runs/again
    """
    if abs(seed) > _MOST_SEED:
        raise InputError(f"--seed must lie between -2^53 and 2^53, got {seed}")
    population = _population(agents, seed)
    seeds = _posts(posts, population, seed)
    options = ModelOptions(
        model,
        tuple(host) if host else None,
        mode,
        pick,
        concurrency,
        timeout,
        max_calls,
        max_tokens,
        deadline,
        cache,
    )
    decider = make_reasoner(reasoner, options, replay, seed)
    folder = None if out is None else RunFolder(_named("--out", out))
    results = _run(population, seeds, folder, decider, rounds=rounds, ticks=ticks, seed=seed)
    config = {
        "agents": agents,
        "posts": None if posts is None else str(posts),
        "rounds": rounds,
        "ticks_per_round": ticks,
        "seed": seed,
        "reasoner": reasoner.value if replay is None else f"replay of {replay}",
        **options.given(),
    }
    _report(_summary(config, results, decider), results, folder, as_json=as_json)


def _run(
    population: Population,
    posts: Sequence[SeedPost],
    folder: RunFolder | None,
    decider: BaseReasoner,
    *,
    rounds: int,
    ticks: int,
    seed: int,
) -> Results:
    """Run the simulation; one that turns out to be impossible leaves no folder behind."""
    clock = SimulatedClock()
    with ExitStack() as stack:
        log = None if folder is None else stack.enter_context(folder.open_log(clock))
        if folder is not None:
            stack.push(lambda kind, *_: folder.discard() if kind and issubclass(kind, PrismError) else None)
        simulation = Simulation(
            population.agents,
            posts,
            rounds=rounds,
            ticks_per_round=ticks,
            seed=seed,
            reasoner=decider,
            logger=None if log is None else log.logger,
            clock=clock,
        )
        _warn_of_trouble(decider)
        progress = stack.enter_context(RoundProgress(rounds, flush=None if log is None else log.flush))
        return simulation.run(progress.round_ended)


def _named(option: str, path: Path) -> Path:
    """Refuse an empty path, which a forgotten variable of the shell leaves; it would mean the current folder."""
    if str(path) in ("", "."):
        raise InputError(f"{option} must name a folder of its own, got {str(path)!r}")
    return path


def _population(agents: str, seed: int) -> Population:
    try:
        size = float(agents)
    except ValueError:
        if not agents.strip():
            raise InputError("--agents must be a number or a file, got nothing") from None
        return load_population(Path(agents), seed=seed)
    if not size.is_integer():
        raise InputError(f"--agents must be a whole number or a file, got {agents}")
    if size < 1:
        raise InputError(f"--agents must be 1 or more, got {agents}")
    return synthetic_population(int(size), seed=seed)


def _posts(path: Path | None, population: Population, seed: int) -> Sequence[SeedPost]:
    if path is not None:
        return load_posts(path, population.agents)
    return population.posts or opening_posts(population.agents, seed=seed)


def _warn_of_trouble(reasoner: BaseReasoner) -> None:
    """Load the model on every server, and say at once what would make decisions fall back."""
    pool = reasoner.client if isinstance(reasoner, Reasoner) else None
    if not isinstance(pool, OllamaPool):
        return

    async def warm_up() -> list[str]:
        async with pool:
            return [str(trouble) for trouble in (await pool.warm_up()).values() if isinstance(trouble, _WILL_FALL_BACK)]

    for trouble in asyncio.run(warm_up()):
        typer.echo(f"prism: {' '.join(trouble.split())}; its decisions will fall back (see: prism doctor)", err=True)


def _summary(config: dict[str, Any], results: Results, reasoner: BaseReasoner) -> dict[str, Any]:
    summary = {"prism": __version__, "schema": SCHEMA_VERSION, "config": config, "results": results.to_dict()}
    if isinstance(reasoner, Reasoner):
        summary["spent"] = {"calls": reasoner.budget.calls, "tokens": reasoner.budget.tokens}
    return summary


def _report(summary: dict[str, Any], results: Results, folder: RunFolder | None, *, as_json: bool) -> None:
    if folder is not None:
        folder.write_summary(summary)
    if as_json:
        typer.echo(json.dumps(summary, indent=2))
    else:
        print_results(results, None if folder is None else folder.path)
