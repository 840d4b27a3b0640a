"""``prism simulate --world``: a world of a user's own, or one that ships."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from rich.table import Table

from prism.cli._chart_argument import import_from_here
from prism.cli._results import fallback_lines, print_measures, print_place, states_table
from prism.cli._running import is_given
from prism.cli._screen import Screen, plain, plain_table
from prism.errors import InputError
from prism.runs import DeciderOptions, WriterOptions
from prism.runs._folder import read_summary
from prism.worlds import Treatment, WorldResults, WorldRun

WorldName = Annotated[
    str | None,
    typer.Option(
        metavar="WORLD",
        rich_help_panel="A world",
        help="Run another world than the social feed: package.module:Name, file.py:Name, or the "
        "short name of one that 'prism world list' shows.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        rich_help_panel="A world",
        help="Set a parameter of the world, or of the feed. Repeat it for several. 'prism world "
        "show' has their names.",
    ),
]
Treatments = Annotated[
    list[str] | None,
    typer.Option(
        "--treat",
        metavar="NAME@ROUND",
        rich_help_panel="A world",
        help="Apply a treatment of the world when a round begins. Repeat it for several.",
    ),
]


def world_run(
    context: typer.Context,
    world: str,
    parameters: Mapping[str, Any],
    treatments: tuple[str | Treatment, ...],
    agents: str,
    seed: int,
    reasoner: DeciderOptions,
    keep: tuple[str, ...],
    writer: WriterOptions | None,
) -> WorldRun:
    """Return the run of a world that a command line asks for."""
    import_from_here()
    given = {name: context.params[name] for name in ("rounds", "ticks") if is_given(context, name)}

    return WorldRun(
        world,
        agents,
        rounds=given.get("rounds"),
        ticks_per_round=given.get("ticks"),
        seed=seed,
        parameters=parameters,
        treatments=treatments,
        reasoner=reasoner,
        keep=keep,
        writer=writer,
    )


def settings(given: Iterable[str] | None) -> dict[str, str]:
    """Return names and values of ``--set name=value``.

    Raises:
        InputError: If one is something else, or a name is given twice.
    """
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"--set must be NAME=VALUE, got {text!r}")
        if name in found:
            raise InputError(f"--set has {name!r} twice: {found[name]!r} and {value!r}")
        found[name] = value

    return found


def kind_of_world(folder: Path) -> type[WorldRun] | None:
    """Return the kind of options of a kept run if it is of a world."""
    if not (folder / "run.json").exists() or "world" not in read_summary(folder)["config"]:
        return None

    import_from_here()
    return WorldRun


def refuse_to_replay_a_world(run: Path) -> None:
    """Refuse to replay a run of a world as one of the feed.

    Raises:
        InputError: If the run is one of a world.
    """
    if kind_of_world(run) is not None:
        world = read_summary(run)["config"]["world"]
        raise InputError(
            f"is a run of the world {world}: give --world {quote(world)}, and the --set, --treat, "
            "--agents and --seed that it was run with",
            path=run,
        )


def print_world_results(results: WorldResults, folder: Path | None) -> None:
    """Print states and measures of the rounds, and what happened in all."""
    screen = Screen()
    screen.print(f"[bold]Agents in each state when a round ends[/bold] ({results.agents:,} agents)")
    screen.print(states_table(results, screen.width))
    print_measures(screen, results)
    screen.print("[bold]What happened[/bold]")
    screen.print(_counts_table(results))
    totals = results.totals()
    for line in fallback_lines(totals.get("fallbacks", {}), totals.get("fallback_examples", {})):
        screen.print(plain(line), soft_wrap=True)

    print_place(screen, folder)


def _counts_table(results: WorldResults) -> Table:
    totals: dict[str, Any] = results.totals()
    table = plain_table()
    table.add_column("what")
    table.add_column("count", justify="right")

    asked, answered = totals["decisions_asked"], totals["decisions_answered"]
    for what, count in (
        ("transitions", totals["transitions"]),
        ("decisions asked", asked),
        ("decisions answered", answered),
        ("decisions that fell back", asked - answered),
        *((f"texts, {source}", count) for source, count in totals.get("texts", {}).items()),
        *((f"time-outs from {state}", count) for state, count in totals["timeouts"].items()),
    ):
        table.add_row(plain(what), f"{count:,}")

    return table
