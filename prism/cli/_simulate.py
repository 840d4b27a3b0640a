"""``prism simulate``: a whole simulation from one command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._options import (
    MODEL_PANEL,
    Keeping,
    Parameters,
    Treatments,
    WorldName,
    import_from_here,
    keeping_panel,
    listed,
    model_options,
    model_panel,
    named_values,
    option_of,
    settings_from,
    writer_panel,
)
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.runs import DeciderOptions, ModelOptions, RunOptions, WriterOptions
    from prism.worlds import World

COMMAND = "prism simulate"

Reasoner = Literal["policy", "ollama", "openai"]
Given = Mapping[str, Any]

_LENGTH = ("rounds", "ticks")
"""What a world says itself, unless it is given."""


def simulate(
    context: typer.Context,
    *,
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
    ] = "100",
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
    ] = 10,
    ticks: Annotated[
        int,
        typer.Option(
            min=1, help="Steps every agent takes in a round. A world may say another default."
        ),
    ] = 12,
    seed: Annotated[
        int, typer.Option(help="Seed of every random number; the same seed gives the same run.")
    ] = 0,
    reasoner: Annotated[
        Reasoner,
        typer.Option(
            help="Who decides: a seeded policy without any model, a model on Ollama, or one on a "
            "server that speaks OpenAI's API (vLLM, llama.cpp, LM Studio), with --host."
        ),
    ] = "policy",
    model: Annotated[Given, model_panel(without=("server",))],
    writer: Annotated[Given, writer_panel()],
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Decide by a policy that 'prism calibrate' has estimated, instead of a model.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Take the decisions from an earlier run (its folder or log) instead of a model; "
            "with the same agents, posts, rounds, ticks and seed this writes the same log.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    treatment_file: Annotated[
        Path | None,
        typer.Option(
            "--treatments",
            metavar="FILE",
            help="A TOML file of treatments: a table 'treatment' for each, with its kind and "
            "round.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel="The feed",
            help="Parameters of the feed that resemble published figures: participation, which is "
            "the default, twitter, browsing, rumour, or classic, which resembles none.",
        ),
    ] = None,
    parameter_file: Annotated[
        Path | None,
        typer.Option(
            "--parameters",
            metavar="FILE",
            rich_help_panel="The feed",
            help="Parameters of the feed, TOML, a line each: reshare_share = 0.2; or JSON or YAML. "
            "What it leaves out is the preset's, and --set overrides it.",
        ),
    ] = None,
    keeping: Annotated[
        Keeping,
        keeping_panel(
            "Folder for the run: events.jsonl (every transition, one JSON object a line) and "
            "run.json. Without it nothing is written. A folder that holds a run is refused."
        ),
    ],
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
    from prism.cli._running import carry_out, is_given, print_outcome, round_screen

    def make() -> RunOptions[Any]:
        _refuse_what_is_of_others(world, treatments, posts)
        treated: tuple[Any, ...] = tuple(treatments or ())
        kept = listed(keep) if keep else ()
        given: Given = {}
        if replay is not None and world is None:
            _refuse_to_replay_a_world(replay)
        if preset or parameter_file or parameters:
            given = _parameters(world, preset, parameter_file, parameters)
        if treatment_file is not None:
            treated += _treatments_in(treatment_file, world)
        decider, texts = who_answers(reasoner, replay, policy, model, writer)
        if world is not None:
            from prism.worlds import WorldRun

            import_from_here()
            told = {each: context.params[each] for each in _LENGTH if is_given(context, each)}
            return WorldRun(
                world,
                agents,
                rounds=told.get("rounds"),
                ticks_per_round=told.get("ticks"),
                seed=seed,
                parameters=given,
                treatments=treated,
                reasoner=decider,
                keep=kept,
                writer=texts,
            )

        from prism.social import SocialRun

        return SocialRun(
            *(agents, posts, rounds, ticks, seed, decider, kept, texts, treated),
            parameters=given,
            preset=preset,
        )

    outcome = carry_out(
        context,
        COMMAND,
        keeping,
        make,
        _kind_of,
        round_screen(COMMAND),
        hosts=model.get("host", ()),
    )
    if outcome is not None:
        from prism.cli._results import print_results

        print_outcome(outcome, print_results, as_json=keeping.as_json)


def _kind_of(folder: Path) -> type[RunOptions[Any]]:
    """Return the kind of the options of the run in a folder."""
    from prism.social import SocialRun

    if _world_in(folder) is None:
        return SocialRun

    from prism.worlds import WorldRun

    import_from_here()
    return WorldRun


def _world_in(folder: Path) -> str | None:
    """Return the world of the run in a folder; None for the social feed."""
    from prism.runs._folder import SUMMARY_NAME, read_summary

    if not (folder / SUMMARY_NAME).exists():
        return None

    world = read_summary(folder)["config"].get("world")
    return None if world is None else str(world)


def _refuse_to_replay_a_world(run: Path) -> None:
    """Refuse to replay a run of a world as one of the feed."""
    world = _world_in(run)
    if world is not None:
        raise InputError(
            f"is a run of the world {world}: give --world {quote(world)}, and the --set, --treat, "
            "--agents and --seed that it was run with",
            path=run,
        )


def _refuse_what_is_of_others(
    world: str | None, treatments: list[str] | None, posts: Path | None
) -> None:
    """Refuse options of the feed beside --world, and those of worlds without it."""
    if world is None and treatments:
        raise InputError("--treat needs --world")
    if world is not None and posts is not None:
        raise InputError("--posts is of the social feed: leave it out with --world")


def _class_of(world: str | None) -> type[World[Any]]:
    """Return the class of a world, or that of the social feed."""
    if world is None:
        from prism.social import Feed

        return Feed

    from prism.worlds._addresses import address_of, load_world

    import_from_here()
    return load_world(address_of(world))


def _parameters(
    world: str | None, preset: str | None, file: Path | None, given: Iterable[str] | None
) -> Given:
    """Return the parameters that a command line asks for, of the feed or of another world."""
    of_file: Given = {}
    if file is not None:
        from prism.worlds._parameters import read_parameter_file

        of_file = read_parameter_file(file, _class_of(world))

    of_preset: Given = {}
    # a run of the feed itself takes its preset by name
    if preset is not None and world is not None:
        from prism.social import Parameters as FeedParameters

        of_preset = FeedParameters.preset(preset).to_dict()

    return {**of_preset, **of_file, **named_values(given)}


def _treatments_in(file: Path, world: str | None) -> tuple[Any, ...]:
    """Return the treatments of a file for a world, or for the social feed."""
    from prism.worlds._treatment_tables import read_treatment_file

    return tuple(read_treatment_file(file, _class_of(world)))


# who answers


def who_answers(
    reasoner: Reasoner, replay: Path | None, policy: Path | None, model: Given, writer: Given
) -> tuple[DeciderOptions, WriterOptions | None]:
    """Return who decides and who writes; refuse options of a model where none is asked.

    Args:
        reasoner: Who decides.
        replay: An earlier run to take decisions and texts from, if one was named.
        policy: A policy file, if one was named.
        model: The options of a model that were given.
        writer: The options of a writer that were given.

    Raises:
        InputError: If an option was given that applies to nothing.
    """
    if writer and "writer" not in writer and replay is None:
        raise InputError(f"{option_of(next(iter(writer)))} needs --writer ollama or openai")
    if policy is None and replay is None and reasoner == "policy" and not model and not writer:
        return None, None

    given = settings_from(model)
    if policy is not None:
        from prism.runs import PolicyOptions

        _refuse_beside_policy(reasoner, replay, given.pop("models", None))
        return PolicyOptions(policy), _only_writes(given, writer)
    if replay is not None:
        return _replayed(replay, given, writer)
    if "models" not in given and reasoner == "policy":
        return None, _only_writes(given, writer)

    if "models" not in given and "model" not in given:
        raise _lacks_model("--reasoner", reasoner)
    decides = model_options({**given, "server": None if reasoner == "policy" else reasoner})
    if "writer" not in writer:
        return decides, None
    if writer["writer"] != decides.server:
        raise InputError(
            f"--writer {writer['writer']} and --reasoner {decides.server} are servers of two "
            "kinds: take one of them for both, which may have another --writer-model"
        )

    return decides, _writes(writer.get("writer_model"), writer)


def _refuse_beside_policy(reasoner: str, replay: Path | None, models: Path | None) -> None:
    others = {"--replay": replay, "--models": models}
    found = [name for name, value in others.items() if value is not None]
    if reasoner != "policy":
        found.append(f"--reasoner {reasoner}")
    if found:
        raise InputError(f"--policy decides: leave out {', '.join(found)}")


def _replayed(
    replay: Path, given: Given, writer: Given
) -> tuple[DeciderOptions, WriterOptions | None]:
    from prism.runs import ReplayOptions
    from prism.runs._config import recorded_writer

    asked = [*given, *(name for name in writer if name == "writer_model")]
    if asked:
        raise InputError(f"{option_of(asked[0])} asks no model: leave it out with --replay")

    return ReplayOptions(replay), _writes(None, writer) if writer else recorded_writer(replay)


def _only_writes(given: Given, writer: Given) -> WriterOptions | None:
    from prism.runs import ModelOptions
    from prism.runs._options import ONLY_DECIDES

    if "writer" not in writer:
        if given:
            first = next(iter(given))
            others = "" if first in ONLY_DECIDES else ", or --writer"
            raise InputError(f"{option_of(first)} needs --reasoner ollama or openai{others}")
        return None

    model = writer.get("writer_model") or given.get("model")
    if model is None:
        raise _lacks_model("--writer", writer["writer"])

    for name in ONLY_DECIDES:
        if name in given:
            raise InputError(f"{option_of(name)} needs --reasoner ollama or openai: it decides")

    return _writes(ModelOptions(**{**given, "model": model}, server=writer["writer"]), writer)


def _writes(model: str | ModelOptions | None, writer: Given) -> WriterOptions:
    from prism.runs import WriterOptions

    own = ("max_length", "language")
    return WriterOptions(
        model, **{name: writer[f"writer_{name}"] for name in own if f"writer_{name}" in writer}
    )


def _lacks_model(name: str, server: str) -> InputError:
    shown = "'ollama list' shows" if server == "ollama" else "the server lists"
    return InputError(f"{name} {server} needs --model, the name of a model that {shown}")
