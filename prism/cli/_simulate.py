"""``prism simulate``: a whole simulation from one command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from prism import runs
from prism.cli._feed_parameters import (
    ParameterFile,
    PresetName,
    TreatmentFile,
    feed_parameters,
    treatments_in_file,
)
from prism.cli._options import (
    AsJson,
    Cache,
    Deadline,
    Hosts,
    MaxCalls,
    MaxTokens,
    ModelName,
    Models,
    RecordPrompts,
    Resume,
    Temperature,
    Thinking,
    Timeout,
    WriterKind,
    WriterLanguage,
    WriterLength,
    WriterModel,
    keeping_option,
    model_option,
    prompt_in,
)
from prism.cli._results import RoundProgress, print_results
from prism.cli._running import (
    RunScreen,
    is_given,
    option_of,
    own_folder,
    refuse_other_runs,
    refuse_what_is_settled,
    run_screen,
)
from prism.cli._screen import note, pour
from prism.cli._simulate_world import (
    Parameters,
    Treatments,
    WorldName,
    kind_of_world,
    print_world_results,
    refuse_to_replay_a_world,
    world_run,
)
from prism.cli._who_answers import PolicyFile, WriterChoice, who_answers
from prism.errors import InputError
from prism.runs import (
    Outcome,
    RunOptions,
)
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN
from prism.runs._settings import Mode, Pick
from prism.social import Results, SocialRun
from prism.social._feed import DEFAULT_ROUNDS, DEFAULT_TICKS_PER_ROUND
from prism.social._run import DEFAULT_AGENTS

_COMMAND = "prism simulate"
_WITH_RESUME = ("resume", "checkpoint_every", "as_json", "host")


def simulate(
    context: typer.Context,
    world: WorldName = None,
    parameters: Parameters = None,
    treatments: Treatments = None,
    agents: Annotated[
        str,
        typer.Option(
            metavar="N|FILE",
            help="How many agents to make up, or a file of them. For the feed: prism's own JSON "
            "Lines (.jsonl), OASIS Reddit personas (.json) or an OASIS Twitter population (.csv). "
            "For a world: any table with a row an agent (.csv, .jsonl, .json).",
        ),
    ] = DEFAULT_AGENTS,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns of the file of agents, with commas between them, to keep as the agents' "
            "attributes, or as the fields that their class in a world declares: in the log, and "
            "for code of your own.",
        ),
    ] = None,
    posts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Posts to begin with, JSON Lines with author_id and text, and topics and post_id "
            "if there are any. "
            "Without it, made-up agents and agents of a file that has no posts begin with one "
            "post each.",
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="Number of rounds. A world may say another default.")
    ] = DEFAULT_ROUNDS,
    ticks: Annotated[
        int,
        typer.Option(
            min=1, help="Steps every agent takes in a round. A world may say another default."
        ),
    ] = DEFAULT_TICKS_PER_ROUND,
    seed: Annotated[
        int, typer.Option(help="Seed of every random number; the same seed gives the same run.")
    ] = 0,
    reasoner: Annotated[
        Literal["policy", "ollama", "openai"],
        typer.Option(
            help="Who decides: a seeded policy without any model, a model on Ollama, or one on a "
            "server that speaks OpenAI's API (vLLM, llama.cpp, LM Studio), with --host."
        ),
    ] = "policy",
    model: ModelName = None,
    host: Hosts = None,
    mode: Annotated[
        Mode | None,
        model_option(
            help="Ask a decision model for probabilities, or have a model write its choice; "
            "auto takes decisions where server and model offer them."
        ),
    ] = None,
    pick: Annotated[
        Pick | None, model_option(help="Draw from the probabilities, or take the likeliest.")
    ] = None,
    think: Thinking = None,
    temperature: Temperature = None,
    models: Models = None,
    concurrency: Annotated[
        int | None,
        model_option(min=1, help="Questions under way at once on each server. 4 by default."),
    ] = None,
    timeout: Timeout = None,
    patience: Annotated[
        float | None,
        model_option(
            min=0,
            help="Seconds to wait for a server that fails; 0, the default, to fall back at once "
            "meanwhile.",
        ),
    ] = None,
    hedge: Annotated[
        bool,
        model_option(
            "--hedge",
            help="Put a question a second time when it takes longer than 95 % of the latest did, "
            "and a slot is free. The first answer counts; both requests do for --max-calls.",
        ),
    ] = False,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    deadline: Deadline = None,
    cache: Cache = None,
    stop_at_fallbacks: Annotated[
        float | None,
        model_option(
            metavar="SHARE",
            help="End the run when this share (0 to 1) of the last 200 decisions fell back; it can "
            "be resumed.",
        ),
    ] = None,
    prompt: Annotated[
        Path | None,
        model_option(
            metavar="FILE",
            help="Template of what the model is told, with {fields} such as {name}, {agent.age} "
            "and {situation}.",
        ),
    ] = None,
    writer: WriterKind = None,
    writer_model: WriterModel = None,
    writer_length: WriterLength = None,
    writer_language: WriterLanguage = None,
    attributes: Annotated[
        list[str] | None,
        model_option(
            metavar="NAMES",
            help="Attributes of the agents, with commas between them, that the model is told.",
        ),
    ] = None,
    remember: Annotated[
        int | None,
        model_option(
            min=1, help="How many things an agent remembers when it decides. None by default."
        ),
    ] = None,
    remember_tokens: Annotated[
        int | None,
        model_option(min=1, help="Tokens that these may take; the oldest go. 400 by default."),
    ] = None,
    reasons: Annotated[
        bool,
        model_option(
            "--reasons",
            help="Ask for a reason beside the choice, and log it. Decision models give none.",
        ),
    ] = False,
    policy: PolicyFile = None,
    replay: Annotated[
        Path | None,
        model_option(
            metavar="RUN",
            help="Take the decisions from an earlier run (its folder or log) instead of a model; "
            "with the same agents, posts, rounds, ticks and seed this writes the same log.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        keeping_option(
            metavar="DIR",
            help="Folder for the run: events.jsonl (every transition, one JSON object a line) and "
            "run.json. "
            "Without it nothing is written. A folder that holds a run is refused.",
        ),
    ] = None,
    treatment_file: TreatmentFile = None,
    preset: PresetName = None,
    parameter_file: ParameterFile = None,
    record_prompts: RecordPrompts = False,
    resume: Resume = None,
    checkpoint_every: Annotated[
        float,
        keeping_option(
            min=0,
            metavar="SECONDS",
            help="A round that ends so long after the last checkpoint gets one; 0 for every round.",
        ),
    ] = DEFAULT_SECONDS_BETWEEN,
    as_json: AsJson = False,
) -> None:
    """Run agents through rounds of scrolling, weighing, writing and sharing.

    [bold]Examples[/bold]

    prism simulate --agents 100 --rounds 10 --out runs/first

    prism simulate --resume runs/first

    prism simulate --agents personas.json --seed 7 --json

    prism simulate --agents 50 --reasoner ollama --model llama3.2 --max-calls 1000 --out runs/model

    prism simulate --agents 50 --reasoner openai --host http://127.0.0.1:8000 --model llama3.2

    prism simulate --agents 50 --reasoner ollama --writer ollama --model llama3.2

    prism simulate --agents 50 --replay runs/model --out runs/again

    prism simulate --agents 50 --policy policy.json --out runs/calibrated

    prism simulate --world rumour --set friends=8 --treat warning@12 --out runs/rumour

    prism simulate --world mine.py:Mine --agents people.csv --keep age,trust
    """
    if resume is not None:
        refuse_what_is_settled(context, _WITH_RESUME)
        _resume(own_folder("--resume", resume), host or [], checkpoint_every, as_json=as_json)
        return

    if out is None and is_given(context, "checkpoint_every"):
        raise InputError("--checkpoint-every needs --out, the folder to keep checkpoints in")

    asked = {
        "model": model,
        "host": tuple(host) if host else None,
        "mode": mode,
        "pick": pick,
        "think": think,
        "temperature": temperature,
        "concurrency": concurrency,
        "timeout": timeout,
        "patience": patience,
        "hedge": hedge or None,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "deadline": deadline,
        "cache": cache,
        "stop_at_fallbacks": stop_at_fallbacks,
        "prompt": None if prompt is None else prompt_in(prompt),
        "attributes": columns(attributes) or None,
        "remember": remember,
        "remember_tokens": remember_tokens,
        "reasons": reasons or None,
        "record_prompts": record_prompts or None,
    }
    _refuse_what_is_of_others(context, world)
    if replay is not None and world is None:
        refuse_to_replay_a_world(replay)
    folder = None if out is None else own_folder("--out", out)
    with _screen(folder) as screen:
        choice = WriterChoice(writer, writer_model, writer_length, writer_language)
        given: Mapping[str, Any] = {}
        if preset or parameter_file or parameters:
            given = feed_parameters(world, preset, parameter_file, parameters)
        treated: tuple[Any, ...] = tuple(treatments or ())
        if treatment_file is not None:
            treated += treatments_in_file(world, treatment_file)
        decider, texts = who_answers(reasoner, replay, policy, models, asked, choice)
        run: RunOptions[Any] = (
            SocialRun(
                *(agents, posts, rounds, ticks, seed, decider, columns(keep), texts, treated),
                parameters=given,
                preset=preset,
            )
            if world is None
            else world_run(
                context, world, given, treated, agents, seed, decider, columns(keep), texts
            )
        )
        outcome = runs.begin(
            run,
            folder,
            on_round=screen.round_ended,
            checkpoint_every=checkpoint_every,
            observer=screen,
        )

    _print(outcome, as_json=as_json)


def _resume(folder: Path, hosts: list[str], checkpoint_every: float, *, as_json: bool) -> None:
    refuse_other_runs(folder, _COMMAND)

    with _screen(folder) as screen:
        kind: type[RunOptions[Any]] = kind_of_world(folder) or SocialRun
        outcome = runs.resume(
            folder,
            kind,
            hosts=hosts,
            on_round=screen.round_ended,
            checkpoint_every=checkpoint_every,
            observer=screen,
        )

    if outcome is None:
        note(f"{folder} is complete: there is nothing to resume")
    else:
        _print(outcome, as_json=as_json)


def _refuse_what_is_of_others(context: typer.Context, world: str | None) -> None:
    """Refuse options of the feed beside --world, and those of worlds without it."""
    others = ("treatments",) if world is None else ("posts",)
    needs = "needs --world" if world is None else "is of the social feed: leave it out with --world"
    for name in others:
        if is_given(context, name):
            raise InputError(f"{option_of(name)} {needs}")


def columns(keep: list[str] | None) -> tuple[str, ...]:
    """Return the names in ``--keep age,trust``, which may be repeated."""
    return tuple(name.strip() for given in keep or () for name in given.split(","))


def _print(outcome: Outcome[Any], *, as_json: bool) -> None:
    if as_json:
        pour(json.dumps(outcome.summary, indent=2) + "\n")
    elif isinstance(outcome.results, Results):
        print_results(outcome.results, outcome.folder)
    else:
        print_world_results(outcome.results, outcome.folder)


def _screen(folder: Path | None) -> AbstractContextManager[RunScreen]:
    return run_screen(
        folder, _COMMAND, lambda run: RoundProgress(run.rounds, done=len(run.finished))
    )
