"""``prism run``, ``simulate``, ``resume`` and ``replay``: a whole run from one command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from prism.cli._options import (
    MODEL,
    Keeping,
    Parameters,
    Treatments,
    declared_panel,
    import_from_here,
    keeping_panel,
    listed,
    model_options,
    model_panel,
    named_values,
    option_of,
    settings_from,
    writer_options,
    writer_panel,
)
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.llm import Model
    from prism.runs import WriterOptions
    from prism.runs._options import DeciderOptions
    from prism.worlds import World

Reasoner = Literal["policy", "ollama", "openai"]
Given = Mapping[str, Any]

_YAML: dict[str, Any] = {"rich_help_panel": "An agent in YAML"}
_THINKING: dict[str, Any] = {"rich_help_panel": "A thinking agent"}


@dataclass
class _Asked:
    """The contents of a run, which both commands take.

    Options:
        agents: Number of agents to create, or a file of them; 100 by default. For the feed: prism's
            JSON Lines (.jsonl), OASIS Reddit personas (.json) or an OASIS Twitter population
            (.csv). For other worlds: any table with one row per agent (.csv, .jsonl, .json).
        keep: Columns of the agents' file to keep, separated by commas. They become fields that the
            agents' class declares, or else attributes, in the log and for your own code.
        rounds: Number of rounds; by default the world's own.
        ticks: Number of ticks in a round; by default the world's own.
        seed: Seed of every random number; the same seed gives the same run.
        columns: Compile the world's steps and hold its agents in arrays: the same run, for up to
            millions of agents. See prism world check WORLD --columns.
        log_agents: Number of agents to log, a sample drawn by the seed. By default all, or 1000 if
            there are more than 100000. Counts and measures always cover all agents.
        log: How to write the log: plain (the default), zstd for events.jsonl.zst, or rounds, which
            leaves out what single agents do (except posts and likes of a feed, which resuming
            needs).
        treatment_file: TOML file of treatments, with a table 'treatment' for each that has its kind
            and round.
        parameter_file: File of parameters in TOML (such as reshare_share = 0.2), JSON or YAML.
            --set overrides it.
        reasoner: Who decides: a seeded policy, which needs no model; a model on Ollama; or one on a
            server with OpenAI's API (vLLM, llama.cpp, LM Studio), named by --host.
        policy: Decide by a policy that 'prism calibrate' estimated, instead of a model.
        dry_run: Ask no model and write nothing. Estimate decisions, tokens and money from a few
            rounds that the policy plays, with the prompts that the model would get.
    """

    agents: Annotated[str | None, typer.Option(metavar="N|FILE")] = None
    keep: Annotated[list[str] | None, typer.Option(metavar="COLUMNS")] = None
    rounds: Annotated[int | None, typer.Option(min=1)] = None
    ticks: Annotated[int | None, typer.Option(min=1)] = None
    seed: int = 0
    columns: Annotated[bool, typer.Option("--columns")] = False
    log_agents: Annotated[int | None, typer.Option(min=1, metavar="N")] = None
    log: Literal["plain", "zstd", "rounds"] | None = None
    parameters: Parameters = None
    treatments: Treatments = None
    treatment_file: Annotated[Path | None, typer.Option("--treatments", metavar="FILE")] = None
    parameter_file: Annotated[Path | None, typer.Option("--parameters", metavar="FILE")] = None
    reasoner: Reasoner = "policy"
    policy: Annotated[Path | None, typer.Option(metavar="FILE", **MODEL)] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", **MODEL)] = False


@dataclass
class _Alone:
    """Options for an agent that is run alone, of either kind.

    Options:
        agent_id: Name of the agent in the log, and for an agent in YAML the variable {agent_id}.
    """

    agent_id: Annotated[str | None, typer.Option(metavar="NAME", **_YAML)] = None


@dataclass
class _InYaml:
    """Options for an agent in YAML.

    Options:
        context: Initial variables: a mapping in a YAML or JSON file. --set adds others, whose
            values are JSON, or else text.
        components: Folder of the components, instead of the one beside the workflow.
        action: Command that carries out each action that a step asks for. It reads the action as
            JSON, with agent_id, turn and step, and writes the result as JSON.
        echo_actions: Use each action as its own result.
        workers: Maximum number of concurrent code steps; 2 by default.
    """

    context: Annotated[Path | None, typer.Option(metavar="FILE", **_YAML)] = None
    components: Annotated[Path | None, typer.Option(metavar="DIR", **_YAML)] = None
    action: Annotated[str | None, typer.Option(metavar="COMMAND", **_YAML)] = None
    echo_actions: Annotated[bool, typer.Option("--echo-actions", **_YAML)] = False
    workers: Annotated[int | None, typer.Option(min=1, **_YAML)] = None


@dataclass
class _Thinking:
    """Options for a thinking agent.

    Options:
        memory: The agent's memory; a missing file is created.
        storage: Kind of a new memory; an existing one must be of this kind.
        goal: Goal of the agent, instead of the configuration's.
        count: How to count tokens for the limits: estimate (rarely too few), bytes (never too few),
            or package.module:function for your own tokenizer.
    """

    memory: Annotated[Path | None, typer.Option(metavar="FILE", **_THINKING)] = None
    storage: Annotated[Literal["json", "sqlite"] | None, typer.Option(**_THINKING)] = None
    goal: Annotated[str | None, typer.Option(metavar="TEXT", **_THINKING)] = None
    count: Annotated[str | None, typer.Option(metavar="COUNTER", **_THINKING)] = None


_RUN = declared_panel(
    _Asked,
    essential=("agents", "rounds", "seed", "parameters", "treatments", "reasoner", "dry_run"),
)
_ALONE = declared_panel(_Alone, _InYaml, _Thinking, essential=("action", "memory"))

_KEEPING = keeping_panel("resume")


def run(
    *,
    world: Annotated[str, typer.Argument(metavar="WORLD", show_default=False)],
    asked: Annotated[Given, _RUN],
    alone: Annotated[Given, _ALONE],
    model: Annotated[Given, model_panel(without=("server",))],
    writer: Annotated[Given, writer_panel()],
    keeping: Annotated[Keeping, _KEEPING],
    watch: Annotated[bool, typer.Option("--watch")] = False,
) -> None:
    """Run a world, an agent in YAML, or a thinking agent, through rounds and ticks.

    For a single agent, a round is a turn or a cycle of thinking. The exit status is 1 if such a run
    fails: a step whose policy is to stop failed, or the agent stopped thinking early.

    Options:
        world: A world: package.module:Name, file.py:Name, or a short name of prism world list; an
            agent in YAML (.yaml); or the configuration of a thinking agent (.json).
        watch: Also open the run in the browser, as prism watch does. Needs --out.

    [bold]Examples[/bold]

    prism run rumour --set friends=8 --treat warning@12 --out runs/rumour

    prism run mine.py:Mine --agents people.csv --keep age,trust

    prism run vaccination --model ollama:llama3.2 --max-calls 1000 --out runs/asked

    prism run agent.yaml --rounds 20 --model ollama:llama3.2 --set balance=100 --out runs/agent

    prism run council --agents 5 --writer ollama:llama3.2 --out runs/council

    prism run story/config.json --memory story/memory.json --model ollama:llama3.2 --rounds 30
    """
    carry_out_new(world, asked, model, writer, keeping, alone=alone, is_watched=watch)


def simulate(
    *,
    posts: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    preset: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    asked: Annotated[Given, _RUN],
    model: Annotated[Given, model_panel(without=("server",))],
    writer: Annotated[Given, writer_panel()],
    keeping: Annotated[Keeping, _KEEPING],
) -> None:
    """Run the social feed, where agents scroll, weigh, write and share. Short for prism run feed.

    Options:
        posts: Initial posts: JSON Lines with author_id and text, and optionally topics and post_id.
            By default, agents begin with one post each, unless their file has posts.
        preset: Parameters of the feed, calibrated to published figures: conversation (the default),
            participation, twitter, browsing or rumour; or classic.

    [bold]Examples[/bold]

    prism simulate --agents 100 --rounds 10 --out runs/first

    prism simulate --agents personas.json --seed 7 --json

    prism simulate --agents 50 --reasoner ollama --model llama3.2 --max-calls 1000 --out runs/model

    prism simulate --agents 50 --model ollama:llama3.2@gpu1,gpu2 --out runs/servers

    prism simulate --agents 50 --reasoner openai --host http://127.0.0.1:8000 --model llama3.2

    prism simulate --agents 50 --model ollama:llama3.2 --price-in 0.1 --price-out 0.4 --dry-run

    prism simulate --agents 50 --model ollama:llama3.2 --writer ollama

    prism simulate --agents 50 --policy policy.json --out runs/calibrated
    """
    from prism.social import Feed

    of_feed = {"preset": preset, "first_posts": None if posts is None else str(posts)}
    given = {name: value for name, value in of_feed.items() if value is not None}
    carry_out_new(Feed, asked, model, writer, keeping, given=given)


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    model: Annotated[Given, model_panel("host")],
    keeping: Annotated[Keeping, keeping_panel("out", "resume")],
) -> None:
    """Continue a stopped run from its last checkpoint, however it was stopped.

    Everything that the run depends on is in its folder.

    Options:
        run: Folder of the run.

    [bold]Example[/bold]

    prism resume runs/first
    """
    from prism import worlds
    from prism.cli._running import action_of, own_folder, run_screen, tell
    from prism.cli._screen import note

    folder = own_folder("RUN", run)
    import_from_here()
    if command := action_of(folder):
        note(f"actions are carried out by {command!r}, as recorded in the run's folder")
    with run_screen(folder) as screen:
        outcome = worlds.resume(
            folder,
            hosts=model.get("host", ()),
            checkpoint_every=keeping.checkpoint_every,
            on_round=screen.round_ended,
            observer=screen,
        )

    if outcome is None:
        note(f"{folder} is complete: there is nothing to resume")
    else:
        tell(outcome, as_json=keeping.as_json)


def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    keeping: Annotated[Keeping, _KEEPING],
) -> None:
    """Repeat an earlier run with the decisions and texts from its log, and write the same log.

    No model is asked.

    Options:
        run: Folder of the run.

    [bold]Example[/bold]

    prism replay runs/model --out runs/again
    """
    from prism import worlds
    from prism.cli._running import kept_in, run_screen, tell

    import_from_here()
    folder = kept_in(keeping)
    with run_screen(folder) as screen:
        outcome = worlds.replay(
            run,
            folder,
            checkpoint_every=keeping.checkpoint_every,
            on_round=screen.round_ended,
            observer=screen,
        )

    tell(outcome, as_json=keeping.as_json)


def carry_out_new(
    world: Any,
    asked: Given,
    model: Given,
    writer: Given,
    keeping: Keeping,
    *,
    given: Given = MappingProxyType({}),
    alone: Given = MappingProxyType({}),
    is_watched: bool = False,
) -> None:
    """Carry out a new run, and print its results.

    Args:
        world: The world.
        asked: What the run is made of.
        model: The options of a model.
        writer: The options of a writer.
        keeping: The folder to keep it in.
        given: Parameters that have options of their own.
        alone: The options for an agent that is run alone.
        is_watched: Whether to open it in the browser.
    """
    from prism.cli._running import kept_in, naming_options, run_screen, tell
    from prism.runs._folder import RunFolder
    from prism.runs._running import carry_out

    if isinstance(world, str):
        import_from_here()

    def make() -> Any:
        return _made(world, asked, model, writer, given, alone)

    if asked.get("dry_run"):
        from prism.cli._spent import print_estimate
        from prism.runs._dry_run import estimate

        with naming_options(_NAMES):
            found = estimate(make())
        print_estimate(found, as_json=keeping.as_json)
        return

    folder = kept_in(keeping)
    with ExitStack() as stack:
        begin: Callable[[], object] = dict
        if is_watched:
            from prism.cli._watch import opening_beside

            begin = stack.enter_context(opening_beside(folder))
        with run_screen(folder, _NAMES) as screen:
            screen.begins = begin
            outcome = carry_out(
                make(),
                None if folder is None else RunFolder.for_new(folder),
                on_round=screen.round_ended,
                checkpoint_every=keeping.checkpoint_every,
                observer=screen,
                told=folder is not None or keeping.as_json,
            )
        tell(outcome, as_json=keeping.as_json)


_NAMES = {"world": "WORLD"}


def _made(world: str, asked: Given, model: Given, writer: Given, given: Given, alone: Given) -> Any:
    """Return the run that a command line describes."""
    kind = Path(world).suffix.lower() if isinstance(world, str) else ""
    if kind in (".yaml", ".yml"):
        return _agent_in_yaml(Path(world), asked, model, writer, alone)
    if kind == ".json":
        return _thinking_agent(Path(world), asked, model, writer, alone)

    from prism.worlds import Run

    refuse(alone, "is for single agents, in YAML or thinking: leave it out")
    decides, writes = who_answers(asked["reasoner"], asked.get("policy"), model, writer)
    of_both = {name: asked[name] for name in ("agents", "rounds", "ticks") if name in asked}
    treatments = _treatments_in(asked.get("treatment_file"), world)

    return Run(
        world,
        **of_both,
        seed=asked.get("seed", 0),
        reasoner=decides,
        writer=writes,
        treatments=(*asked.get("treatments", ()), *treatments),
        parameters=_parameters(world, asked, given),
        keep=listed(asked["keep"]) if "keep" in asked else (),
        columns=asked.get("columns", False),
        log_agents=asked.get("log_agents"),
        log=asked.get("log", "plain"),
    )


def refuse(given: Given, why: str, *, without: Iterable[str] = ()) -> None:
    """Refuse options that have no effect.

    Raises:
        InputError: If one of them was given; the message names it.
    """
    for name in given:
        if name not in without:
            raise InputError(f"{option_of(name)} {why}")


def _agent_in_yaml(file: Path, asked: Given, model: Given, writer: Given, alone: Given) -> Any:
    """Return a run of an agent in YAML."""
    variables = named_values(asked.get("parameters"))
    given = {name: value for name, value in asked.items() if name != "parameters"}
    options = _of_one_agent("an agent in YAML", _InYaml, given, model, writer, alone)
    options["parameters"] = {name: _value(name, text) for name, text in variables.items()}

    from prism import Run

    return Run(file, **options)


def _thinking_agent(file: Path, asked: Given, model: Given, writer: Given, alone: Given) -> Any:
    """Return a run of a thinking agent."""
    options = _of_one_agent("a thinking agent", _Thinking, asked, model, writer, alone)
    if "memory" not in alone:
        raise InputError("no memory is named: add --memory FILE; a missing file is created")
    if options["reasoner"] is None:
        raise InputError("no model is named: add --model NAME")

    from prism import Run

    return Run(file, **options)


def _of_one_agent(
    what: str, own: type[Any], asked: Given, model: Given, writer: Given, alone: Given
) -> dict[str, Any]:
    """Return the options of a run of a single agent; refuse those of others."""
    why = f"is not for {what}: leave it out"
    refuse({**asked, **writer}, why, without=("seed", "rounds", "reasoner", "dry_run"))
    refuse(alone, why, without=[each.name for cls in (_Alone, own) for each in fields(cls)])
    server = {} if asked["reasoner"] == "policy" else {"server": asked["reasoner"]}
    numbers = {name: asked[name] for name in ("seed", "rounds") if name in asked}

    return {"reasoner": writer_options({**model, **server}), **numbers, **alone}


# a number in Python, and not in JSON
_BARE_POINT = re.compile(r"[+-]?(\d+\.|\.\d+)([eE][+-]?\d+)?")


def _value(name: str, text: str) -> Any:
    """Read the value of a variable: JSON, a number such as ``.5``, or else text."""
    if not name.isidentifier():
        raise InputError(
            f"--set must be NAME=VALUE with a name of letters, digits and underscores, got {name!r}"
        )

    from prism.files import parse_json

    if _BARE_POINT.fullmatch(text):
        return float(text)

    try:
        return parse_json(text)
    except InputError:
        return text


def _class_of(world: Any) -> type[World[Any]]:
    """Return the class of a world."""
    from prism.worlds._addresses import address_of, load_world

    return world if isinstance(world, type) else load_world(address_of(world))


def _parameters(world: Any, asked: Given, given: Given) -> Given:
    """Return the parameters that a command line sets."""
    of_file: Given = {}
    if "parameter_file" in asked:
        from prism.worlds._parameters import read_parameter_file

        of_file = read_parameter_file(asked["parameter_file"], _class_of(world))

    of_line = named_values(asked["parameters"]) if "parameters" in asked else {}
    return {**given, **of_file, **of_line}


def _treatments_in(file: Path | None, world: Any) -> Iterable[Any]:
    """Return the treatments of a file, if one is named."""
    if file is None:
        return ()

    from prism.worlds._treatment_tables import read_treatment_file

    return read_treatment_file(file, _class_of(world))


# who answers


def who_answers(
    reasoner: Reasoner, policy: Path | None, model: Given, writer: Given
) -> tuple[DeciderOptions, WriterOptions | None]:
    """Return who decides and who writes; refuse options of a model if there is none.

    Args:
        reasoner: Who decides.
        policy: A policy file, if one was named.
        model: The options of a model that were given.
        writer: The options of a writer that were given.

    Raises:
        InputError: If an option was given that has no effect.
    """
    if reasoner == "policy" and not any((model, writer, policy)):
        return None, None
    if writer and "writer" not in writer:
        raise InputError(f"{option_of(next(iter(writer)))} needs --writer MODEL")

    given = settings_from(model)
    decides = _decider(reasoner, policy, given)
    if "writer" in writer:
        return decides, _writer(writer, given, decides)
    if given and (decides is None or policy is not None):
        raise _lacks_server(next(iter(given)), given)

    return decides, None


def _decider(reasoner: Reasoner, policy: Path | None, given: dict[str, Any]) -> DeciderOptions:
    """Return who decides; None for the built-in policy."""
    if policy is not None:
        from prism.runs import PolicyOptions

        found = ["--models"] * (given.pop("models", None) is not None)
        if reasoner != "policy":
            found.append(f"--reasoner {reasoner}")
        if found:
            raise InputError(f"--policy already decides: leave out {', '.join(found)}")
        return PolicyOptions(policy)

    is_named = "models" in given or "model" in given
    if reasoner != "policy":
        if not is_named:
            raise _lacks_model("--reasoner", reasoner)
        return model_options({**given, "server": reasoner})
    if "models" in given or (is_named and len(_named(given["model"])) > 1):
        return model_options(given)
    return None


def _named(text: str) -> Given:
    """Return the parts of the text of a model; a kind of server may stand alone."""
    from prism.llm._model_text import model_in_text
    from prism.llm._settings import Server

    return {"server": text} if text in get_args(Server) else model_in_text(text)


def _writer(writer: Given, given: Given, decides: DeciderOptions) -> WriterOptions:
    """Return who writes: the deciding model, or another one."""
    from prism.llm import Model
    from prism.llm._model import ONLY_DECIDES

    text = writer["writer"]
    named = _named(text)
    if isinstance(decides, Model):
        server = named.get("server", decides.server)
        if "model" not in named and server != decides.server:
            raise InputError(
                f"--writer {server} and --reasoner {decides.server} are two kinds of servers: "
                f"name the model that writes, as in --writer {server}:NAME@HOST"
            )
        # a model without its own hosts uses those of the deciding model
        is_shared = "hosts" not in named and server == decides.server
        return _writes(named.get("model") if is_shared else text, writer)

    if "model" not in {**named, **given}:
        raise _lacks_model("--writer", named["server"])
    for name in (*ONLY_DECIDES, *named.keys() & {"model"}):
        if name in given:
            raise InputError(
                f"{option_of(name)} needs --reasoner ollama or openai, for a model that decides"
            )
    if "model" in named:
        return _writes(Model.of(text, **given), writer)
    return _writes(model_options({**given, **named}), writer)


def _lacks_server(name: str, given: Given) -> InputError:
    """Return the error about an option of a model without a server."""
    if name == "model":
        # who gave only the kind of server has yet to name the model
        is_kind = "model" not in _named(given["model"])
        named = f"{given['model']}:MODEL" if is_kind else f"ollama:{given['model']}"
        return InputError(f"--model must say who serves it: --model {named}, or --writer {named}")

    from prism.llm._model import ONLY_DECIDES

    others = "" if name in ONLY_DECIDES else ", or --writer"
    return InputError(f"{option_of(name)} needs --reasoner ollama or openai{others}")


def _writes(model: str | Model | None, writer: Given) -> WriterOptions:
    from prism.runs import WriterOptions

    own = {
        name.removeprefix("writer_"): value for name, value in writer.items() if name != "writer"
    }
    return WriterOptions(model, **settings_from(own))


def _lacks_model(name: str, server: str) -> InputError:
    shown = "'ollama list' shows them" if server == "ollama" else "the server lists them"
    return InputError(f"{name} {server} needs --model with the name of a model; {shown}")
