"""``prism simulate``: a whole simulation from one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prism.cli._running import carry_out
from prism.errors import InputError
from prism.llm import DEFAULT_HOST
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN
from prism.runs._folder import SUMMARY_NAME, RunFolder
from prism.runs._plan import RunPlan
from prism.runs._reasoners import ModelOptions, ModeName, PickName, ReasonerKind, ThinkName
from prism.simulation._loop import DEFAULT_ROUNDS, DEFAULT_TICKS_PER_ROUND

DEFAULT_AGENTS = "100"
_MODEL = "Asking a model"
_KEEPING = "Keeping the run"
_WITH_RESUME = ("resume", "checkpoint_every", "as_json")


def simulate(
    context: typer.Context,
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
    ticks: Annotated[
        int, typer.Option(min=1, help="Steps every agent takes in a round.")
    ] = DEFAULT_TICKS_PER_ROUND,
    seed: Annotated[
        int, typer.Option(help="Seed of every random number; the same seed gives the same run.")
    ] = 0,
    reasoner: Annotated[
        ReasonerKind,
        typer.Option(help="Who decides: a seeded policy without any model, or a model on Ollama."),
    ] = ReasonerKind.POLICY,
    model: Annotated[
        str | None,
        typer.Option(help="Model to ask, with --reasoner ollama.", rich_help_panel=_MODEL),
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
        typer.Option(
            help="Draw from the probabilities, or take the likeliest.", rich_help_panel=_MODEL
        ),
    ] = None,
    think: Annotated[
        ThinkName | None,
        typer.Option(
            help="Whether the model may think before it answers; some take only low, medium or high. false by default.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Questions under way at once on each server. 4 by default.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="Seconds to wait for one reply. 60 by default.", rich_help_panel=_MODEL
        ),
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds to wait for a server that fails; 0, the default, to fall back at once meanwhile.",
            rich_help_panel=_MODEL,
        ),
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(min=1, help="Requests the run may make.", rich_help_panel=_MODEL)
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens the run may use.", rich_help_panel=_MODEL)
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(min=0.01, help="Seconds for which the run may ask.", rich_help_panel=_MODEL),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep answers in this file, and use those in it.",
            rich_help_panel=_MODEL,
        ),
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
            rich_help_panel=_KEEPING,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Go on with the run in this folder, which was stopped in any way; "
            "everything it depends on is taken from there.",
            rich_help_panel=_KEEPING,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="A round that ends so long after the last checkpoint gets one; 0 for every round.",
            rich_help_panel=_KEEPING,
        ),
    ] = DEFAULT_SECONDS_BETWEEN,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as JSON instead of tables.")
    ] = False,
) -> None:
    """Run agents through rounds of scrolling, weighing, writing and sharing.

    [bold]Examples[/bold]

    prism simulate --agents 100 --rounds 10 --out runs/first

    prism simulate --resume runs/first

    prism simulate --agents personas.json --seed 7 --json

    prism simulate --agents 50 --reasoner ollama --model llama3.2 --max-calls 1000 --out runs/model

    prism simulate --agents 50 --replay runs/model --out runs/again
    """
    if resume is not None:
        _refuse_what_is_settled(context)
        _resume(resume, checkpoint_every, as_json=as_json)
        return

    if out is None and _is_given(context, "checkpoint_every"):
        raise InputError("--checkpoint-every needs --out, the folder to keep checkpoints in")

    options = ModelOptions(
        model=model,
        host=tuple(host) if host else None,
        mode=mode,
        pick=pick,
        think=think,
        concurrency=concurrency,
        timeout=timeout,
        patience=patience,
        max_calls=max_calls,
        max_tokens=max_tokens,
        deadline=deadline,
        cache=cache,
    )
    plan = RunPlan(agents, posts, rounds, ticks, seed, reasoner, replay, options)
    folder = None if out is None else RunFolder.for_new(_named("--out", out))
    carry_out(plan, folder, checkpoint_every=checkpoint_every, as_json=as_json)


def _resume(path: Path, checkpoint_every: float, *, as_json: bool) -> None:
    folder, config = RunFolder.to_resume(_named("--resume", path))
    if config is None:
        folder.tidy()
        typer.echo(f"prism: {path} is complete: there is nothing to resume", err=True)
        return

    plan = RunPlan.from_config(config, path / SUMMARY_NAME)
    carry_out(plan, folder, checkpoint_every=checkpoint_every, as_json=as_json)


def _refuse_what_is_settled(context: typer.Context) -> None:
    """Refuse options beside --resume that would make the run another one."""
    given = sorted(
        name for name in context.params if name not in _WITH_RESUME and _is_given(context, name)
    )
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InputError(f"--resume takes everything from the run's folder: leave out {options}")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _named(option: str, path: Path) -> Path:
    """Refuse an empty path, which a forgotten variable of the shell leaves; it would mean the current folder."""
    if str(path) in ("", "."):
        raise InputError(f"{option} must name a folder of its own, got {str(path)!r}")
    return path
