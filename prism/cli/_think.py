"""``prism think``: an agent that thinks, executes and pages, with a memory of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._options import (
    KEEPING_PANEL,
    Keeping,
    keeping_panel,
    model_panel,
    writer_options,
)
from prism.cli._screen import Screen, damage_noted, note, plain, plain_table, pour, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.cli._running import RunScreen
    from prism.cli._think_view import ThinkView
    from prism.cognition import CognitiveResults, CognitiveRun
    from prism.runs import Outcome

CONFIG_NAME = "config.json"
MEMORY_NAMES = {"json": "memory.json", "sqlite": "memory.db"}
DEFAULT_AGENT_ID = "agent"

# a single agent asks one question at a time
_MODEL = model_panel(without=("concurrency", "hedge"), decides=False)

_COMMAND = "prism think"
_WITH_CHECK = ("check", "config", "goal", "as_json")

thinking: typer.Typer = typer.Typer(rich_markup_mode="rich")


@thinking.callback(invoke_without_command=True, no_args_is_help=True)
def think(
    context: typer.Context,
    *,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The configuration, JSON; 'prism think init' makes one."),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The memory; a missing one is made."),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What to achieve, instead of the configuration's goal."),
    ] = None,
    cycles: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of cycles; by default, and at most, iterate.max_iterations of the "
            "configuration.",
        ),
    ] = None,
    storage: Annotated[
        Literal["json", "sqlite"] | None,
        typer.Option(help="How a new memory is kept, and what an old one must be."),
    ] = None,
    agent_id: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the agent, in the log.")
    ] = DEFAULT_AGENT_ID,
    seed: Annotated[int, typer.Option(help="Seed of the model's sampling.")] = 0,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Run nothing: list what is wrong with the configuration, one a line. Exit status "
            "0 if there is nothing, 1 if there is something, 2 if the file cannot be read.",
        ),
    ] = False,
    model: Annotated[Mapping[str, Any], _MODEL],
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            rich_help_panel=KEEPING_PANEL,
            help="Take the texts and the memory it began with from an earlier run (its folder or "
            "log) instead of a model, and all else that is not given; its own memory stays as it "
            "is. This writes the same log, and with --out a memory of the same bytes.",
        ),
    ] = None,
    keeping: Annotated[
        Keeping,
        keeping_panel(
            "Folder for the run: events.jsonl (every cycle, text, action and transition, one JSON "
            "object a line) and run.json. Without it only the memory is written. A folder that "
            "holds a run is refused.",
            unit=None,
        ),
    ],
) -> None:
    """Let an agent think, execute and page, a cycle after the other, with a memory that stays.

    The memory is written after each cycle: Ctrl-C loses the one under way.

    Exit status 1 if not one cycle got a usable reply.

    [bold]Examples[/bold]

    prism think init story

    prism think --config story/config.json --memory story/memory.json --model llama3.2 --cycles 30

    prism think --config config.json --memory memory.json --model llama3.2 --out runs/story

    prism think --resume runs/story

    prism think --check --config config.json
    """
    from prism.cli._running import carry_out, is_given, refuse_given

    if context.invoked_subcommand is not None:
        own = f"'prism think {context.invoked_subcommand}' takes its own options, after the word"
        refuse_given(context, (), own)
        return

    if check:
        refuse_given(context, _WITH_CHECK, "--check reads the configuration alone")
        _check(_named(config), goal, as_json=keeping.as_json)
        return

    from prism.cognition import CognitiveRun

    def make() -> CognitiveRun:
        of_the_run = {
            "config": config,
            "memory": memory,
            "storage": storage,
            "cycles": cycles,
            "goal": goal,
            "agent_id": agent_id,
            "seed": seed,
        }
        given = {name: value for name, value in of_the_run.items() if is_given(context, name)}
        writer = writer_options(model, replay)
        return _new_run(given, writer) if replay is None else _recorded(replay, given)

    outcome = carry_out(
        *(context, _COMMAND, keeping, make, lambda _: CognitiveRun, _screen),
        hosts=model.get("host", ()),
    )
    if outcome is not None:
        _finish(outcome, as_json=keeping.as_json)


@thinking.command()
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to write them; made if missing.")
    ] = Path(),
    goal: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the agent is to achieve.")
    ] = None,
    storage: Annotated[
        Literal["json", "sqlite"],
        typer.Option(help="How the memory is kept: in memory.json, or in the database memory.db."),
    ] = "json",
) -> None:
    """Write a configuration to begin with, and an empty memory; nothing is overwritten.

    [bold]Examples[/bold]

    prism think init

    prism think init story --goal "Plan a story about a night train."
    """
    from prism.cognition import Config, Memory

    config, memory = folder / CONFIG_NAME, folder / MEMORY_NAMES[storage]
    for path in (config, memory):
        if path.exists() or path.is_symlink():
            raise InputError("is there already, and nothing is overwritten", path=path)

    text = Config(goal=goal).to_json()
    folder.mkdir(parents=True, exist_ok=True)
    Memory.create(memory, {}, storage=storage).close()
    with config.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)

    say(f"{config}: the configuration, all keys with their defaults")
    say(f"{memory}: the memory, empty")
    say(f"next: prism think --config {config} --memory {memory} --model NAME")


def _named(config: Path | None) -> Path:
    if config is None:
        raise InputError("name the configuration: --config FILE ('prism think init' makes one)")

    return config


def _new_run(given: dict[str, Any], writer: Any) -> CognitiveRun:
    from prism.cognition import CognitiveRun

    _named(given.get("config"))
    if "memory" not in given:
        raise InputError("name the memory: --memory FILE; a missing one is made")
    if writer is None:
        raise InputError("name the model: --model NAME; or an earlier run: --replay RUN")

    return CognitiveRun(**given, reasoner=writer)


def _recorded(recorded: Path, given: dict[str, Any]) -> CognitiveRun:
    """Return an earlier run with the options that are given, to be repeated."""
    from prism.cognition import CognitiveRun
    from prism.runlog._reader import locate_log
    from prism.runs._folder import SUMMARY_NAME, read_summary

    folder = locate_log(recorded).parent
    summary = read_summary(folder)
    options = CognitiveRun.from_config(summary["config"], folder / SUMMARY_NAME)

    return replace(options.replaying(recorded), **given)


@contextmanager
def _screen(folder: Path | None) -> Iterator[RunScreen]:
    """Show a run, and after an interruption what it has left."""
    from prism.cli._running import run_screen
    from prism.cli._think_view import ThinkView

    views: list[ThinkView] = []

    def view(run: Any) -> ThinkView:
        views.append(ThinkView(run))
        return views[-1]

    def kept() -> str:
        return "".join(f"{made.kept()}; " for made in views if made.kept())

    try:
        with damage_noted(), run_screen(folder, _COMMAND, view, kept) as screen:
            yield screen
    except KeyboardInterrupt:
        if folder is None and (told := kept()):
            note(f"{told}the same command goes on from there")
        raise


def _check(config: Path, goal: str | None, *, as_json: bool) -> None:
    from prism.cognition import Config
    from prism.cognition._config._config import ConfigProblem, crowded_limits

    problems = Config.check(config)
    if goal is not None and not any(problem.severity == "error" for problem in problems):
        problems += [
            ConfigProblem(str(config), 0, 0, f"agent.{limit}", message, "no_room")
            for limit, message in crowded_limits(Config.load(config), goal=goal)
        ]

    if any(problem.kind == "json" for problem in problems):
        raise InputError(str(problems[0]))

    if as_json:
        listing = {"config": str(config), "problems": list(map(asdict, problems))}
        pour(json.dumps(listing, indent=2) + "\n")
    else:
        for problem in problems:
            say(str(problem))

    if problems:
        raise typer.Exit(1)


def _finish(outcome: Outcome[CognitiveResults], *, as_json: bool) -> None:
    from prism.cli._running import print_outcome

    print_outcome(outcome, _print_results, as_json=as_json)
    results = outcome.results
    without = sum(results.outcomes.get(name, 0) for name in ("unusable", "failed"))
    if results.cycles and without == results.cycles:
        note("no cycle got a reply of use: see the model with prism doctor --model NAME")
        raise typer.Exit(1)


def _print_results(results: CognitiveResults, folder: Path | None) -> None:
    screen = Screen()
    table = plain_table()
    table.add_column("what")
    table.add_column(plain(results.agent_id), overflow="fold")
    table.add_row("cycles", f"{results.cycles:,}, {results.cycle:,} in the memory's life")
    table.add_row("state", plain(results.state))
    table.add_row("transitions", f"{results.transitions:,}")
    for kind, counts in (("cycles", results.outcomes), ("actions", results.actions)):
        for outcome, count in counts.items():
            table.add_row(f"{kind} {outcome}", f"{count:,}")
    table.add_row("pagings", f"{results.pagings:,}")
    table.add_row("working memory", f"{results.memories:,}")
    table.add_row("thoughts", f"{results.thoughts:,}")
    table.add_row("storage", f"{results.stored:,}")
    table.add_row("tokens", f"{results.tokens:,}")
    screen.print(table)

    if folder is not None:
        text = f"Every cycle is in {folder / 'events.jsonl'}, this in {folder / 'run.json'}."
        screen.print(plain(text), soft_wrap=True)
