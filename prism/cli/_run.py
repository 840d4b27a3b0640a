"""``prism run``, ``simulate``, ``resume`` and ``replay``: a whole run from one command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._options import (
    MODEL,
    Keeping,
    Parameters,
    Treatments,
    declared_panel,
    import_from_here,
    keeping_panel,
    model_panel,
    named_values,
    option_of,
    writer_panel,
)
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.worlds import World

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
        rounds: Number of rounds; by default the world's own.
        ticks: Number of ticks in a round; by default the world's own.
        seed: Seed of every random number; the same seed gives the same run.
        log_agents: Number of agents to log, a sample drawn by the seed; 0 for the totals of rounds
            alone. By default all, or 1000 if there are more than 100000. Counts and measures always
            cover all agents.
        parameter_file: File of parameters in TOML (such as reshare_share = 0.2), JSON or YAML.
            --set overrides it.
        reasoner: Who decides: a seeded policy, which needs no model; a model on Ollama; or one on a
            server with OpenAI's API (vLLM, llama.cpp, LM Studio), named by --host.
        policy: Decide by a policy that 'prism calibrate' estimated, instead of a model.
        dry_run: Ask no model and write nothing. Estimate decisions, tokens and money from a few
            rounds that the policy plays, with the prompts that the model would get.
    """

    agents: Annotated[str | None, typer.Option(metavar="N|FILE")] = None
    rounds: Annotated[int | None, typer.Option(min=1)] = None
    ticks: Annotated[int | None, typer.Option(min=1)] = None
    seed: int = 0
    log_agents: Annotated[int | None, typer.Option(min=0, metavar="N")] = None
    parameters: Parameters = None
    treatments: Treatments = None
    parameter_file: Annotated[Path | None, typer.Option("--parameters", metavar="FILE")] = None
    reasoner: Literal["policy", "ollama", "openai"] = "policy"
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
        goal: Goal of the agent, instead of the configuration's.
        count: How to count tokens for the limits: estimate (one for four bytes), bytes (never
            too few), or package.module:function for your own tokenizer.
    """

    memory: Annotated[Path | None, typer.Option(metavar="FILE", **_THINKING)] = None
    goal: Annotated[str | None, typer.Option(metavar="TEXT", **_THINKING)] = None
    count: Annotated[str | None, typer.Option(metavar="COUNTER", **_THINKING)] = None


_RUN = declared_panel(
    _Asked,
    essential=("agents", "rounds", "seed", "parameters", "treatments", "reasoner", "dry_run"),
)
_ALONE = declared_panel(_Alone, _InYaml, _Thinking, essential=("action", "memory"))
_NAMES = {"world": "WORLD"}


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """The options of a new run: its contents, who answers in it, and where it is kept."""

    asked: Annotated[Given, _RUN]
    alone: Annotated[Given, _ALONE] = field(default_factory=dict)
    model: Annotated[Given, model_panel(without=("server",))]
    writer: Annotated[Given, writer_panel()]
    keeping: Annotated[Keeping, keeping_panel("resume")]

    def carry_out(
        self, world: Any, given: Given = MappingProxyType({}), *, is_watched: bool = False
    ) -> None:
        """Carry out the run, and print its results.

        Args:
            world: The world: a class or its name, or the file of a single agent.
            given: Parameters that have options of their own.
            is_watched: Whether to open it in the browser.
        """
        from prism.cli._running import kept_in, naming_options, run_screen, tell
        from prism.runs._folder import RunFolder
        from prism.runs._running import carry_out

        if isinstance(world, str):
            import_from_here()
        as_json = self.keeping.as_json
        if self.asked.get("dry_run"):
            from prism.cli._spent import print_estimate
            from prism.runs._dry_run import estimate

            with naming_options(_NAMES):
                found = estimate(_made(self, world, given))
            print_estimate(found, as_json=as_json)
            return

        folder = kept_in(self.keeping)
        with ExitStack() as stack:
            begin: Callable[[], object] = dict
            if is_watched:
                from prism.cli._watch import opening_beside

                begin = stack.enter_context(opening_beside(folder))
            with run_screen(folder, _NAMES) as screen:
                screen.begins = begin
                outcome = carry_out(
                    _made(self, world, given),
                    None if folder is None else RunFolder.for_new(folder),
                    on_round=screen.round_ended,
                    observer=screen,
                    told=folder is not None or as_json,
                )
            tell(outcome, as_json=as_json)


def run(
    *,
    world: Annotated[str, typer.Argument(metavar="WORLD", show_default=False)],
    new: Annotated[NewRun, declared_panel(NewRun, gather=NewRun)],
    watch: Annotated[bool, typer.Option("--watch")] = False,
) -> None:
    """Run a world, an agent in YAML, or a thinking agent, through rounds and ticks.

    For a single agent, a round is a turn or a cycle of thinking. The exit status is 1 if such a run
    fails: a step whose policy is to stop failed, or the agent stopped thinking early.

    Options:
        world: A world: package.module:Name, file.py:Name, or a short name of prism world list; an
            agent in YAML (.yaml); or a thinking agent: its configuration (.json) or file.py:Class.
        watch: Also open the run in the browser, as prism watch does. Needs --out.

    [bold]Examples[/bold]

    prism run rumour --set friends=8 --treat warning@12 --out runs/rumour

    prism run mine.py:Mine --agents people.csv

    prism run vaccination --model ollama:llama3.2 --max-calls 1000 --out runs/asked

    prism run agent.yaml --rounds 20 --model ollama:llama3.2 --set balance=100 --out runs/agent

    prism run council --agents 5 --writer ollama:llama3.2 --out runs/council

    prism run story/config.json --memory story/memory.json --model ollama:llama3.2 --rounds 30
    """
    new.carry_out(world, is_watched=watch)


def simulate(
    *,
    posts: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    preset: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    new: Annotated[NewRun, declared_panel(NewRun, gather=NewRun, without=("alone",))],
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
    new.carry_out(Feed, {name: value for name, value in of_feed.items() if value is not None})


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN")],
    *,
    model: Annotated[Given, model_panel("hosts")],
    keeping: Annotated[Keeping, keeping_panel("out", "resume")],
) -> None:
    """Continue a stopped run, however it was stopped: its journal has the answers so far.

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
            hosts=model.get("hosts", ()),
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
    keeping: Annotated[Keeping, keeping_panel("resume")],
) -> None:
    """Repeat an earlier run with the decisions and texts from its journal, and write the same log.

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
            on_round=screen.round_ended,
            observer=screen,
        )

    tell(outcome, as_json=keeping.as_json)


# a new run


def _who_answers(new: NewRun) -> tuple[Any, Any]:
    """Return who decides and who writes, None for those of a run that says nothing of them."""
    asked = new.asked
    if not (new.model or new.writer or "policy" in asked or asked["reasoner"] != "policy"):
        return None, None

    from prism.cli._answers import who_answers

    return who_answers(asked["reasoner"], asked.get("policy"), new.model, new.writer)


def _made(new: NewRun, world: Any, given: Given) -> Any:
    """Return the run that a command line describes."""
    from prism.worlds import Run
    from prism.worlds._run import key_of

    key = key_of(world)
    if key is not None:
        return Run(world, **(_of_yaml(new) if key == "workflow" else _of_thinking(new)))

    asked = new.asked
    _refuse(new.alone, "is for single agents, in YAML or thinking: leave it out")
    decides, writes = _who_answers(new)
    plain = ("agents", "rounds", "ticks", "seed", "log_agents")

    return Run(
        world,
        **{name: asked[name] for name in plain if name in asked},
        reasoner=decides,
        writer=writes,
        treatments=asked.get("treatments", ()),
        parameters=_parameters(world, asked, given),
    )


def _refuse(given: Given, why: str, *, without: Iterable[str] = ()) -> None:
    """Refuse options that have no effect."""
    for name in given:
        if name not in without:
            raise InputError(f"{option_of(name)} {why}")


def _of_yaml(new: NewRun) -> dict[str, Any]:
    """Return the options of an agent in YAML."""
    asked = dict(new.asked)
    variables = named_values(asked.pop("parameters", None))
    options = _of_one_agent("an agent in YAML", _InYaml, asked, new)

    return {**options, "parameters": {name: _value(name, text) for name, text in variables.items()}}


def _of_thinking(new: NewRun) -> dict[str, Any]:
    """Return the options of a thinking agent."""
    options = _of_one_agent("a thinking agent", _Thinking, new.asked, new)
    if "memory" not in new.alone:
        raise InputError("no memory is named: add --memory FILE; a missing file is created")
    if options["reasoner"] is None:
        raise InputError("no model is named: add --model NAME")

    return options


def _of_one_agent(what: str, own: type[Any], asked: Given, new: NewRun) -> dict[str, Any]:
    """Return the options of a run of a single agent; refuse those of others."""
    from prism.cli._answers import writer_options

    why = f"is not for {what}: leave it out"
    _refuse({**asked, **new.writer}, why, without=("seed", "rounds", "reasoner", "dry_run"))
    _refuse(new.alone, why, without=[each.name for cls in (_Alone, own) for each in fields(cls)])
    server = {} if asked["reasoner"] == "policy" else {"server": asked["reasoner"]}
    numbers = {name: asked[name] for name in ("seed", "rounds") if name in asked}

    return {"reasoner": writer_options({**new.model, **server}), **numbers, **new.alone}


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
        from prism.worlds._fields import read_parameter_file

        of_file = read_parameter_file(asked["parameter_file"], _class_of(world))

    of_line = named_values(asked["parameters"]) if "parameters" in asked else {}
    return {**given, **of_file, **of_line}
