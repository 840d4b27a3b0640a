"""``prism think``: beginning a thinking agent, and checking it; how one is shown."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from prism.cli._options import AsJson, command_group
from prism.cli._screen import counted, note, print_facts, print_findings, print_place, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.cognition import CognitiveResults

CONFIG_NAME = "config.json"
MEMORY_NAMES = {"json": "memory.json", "sqlite": "memory.db"}

thinking = command_group("Create and check a thinking agent. To run it, use prism run.")


@thinking.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")] = Path(),
    goal: Annotated[str | None, typer.Option(metavar="TEXT")] = None,
    storage: Literal["json", "sqlite"] = "json",
) -> None:
    """Write a first configuration and an empty memory, without overwriting anything.

    Options:
        folder: Folder to write them to; created if missing.
        goal: Goal of the agent.
        storage: Where to keep the memory: in memory.json, or in the database memory.db.

    [bold]Examples[/bold]

    prism think init

    prism think init story --goal "Plan a story about a night train."
    """
    from prism.cognition import Config, Memory

    config, memory = folder / CONFIG_NAME, folder / MEMORY_NAMES[storage]
    for path in (config, memory):
        if path.exists() or path.is_symlink():
            raise InputError("already exists and would be overwritten", path=path)

    text = Config(goal=goal).to_json()
    folder.mkdir(parents=True, exist_ok=True)
    Memory.create(memory, {}, storage=storage).close()
    with config.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)

    say(f"{config}: the configuration, with all keys and their defaults")
    say(f"{memory}: an empty memory")
    say(f"next: prism run {config} --memory {memory} --model NAME")


@thinking.command()
def check(
    config: Annotated[Path, typer.Argument(metavar="FILE")],
    goal: Annotated[str | None, typer.Option(metavar="TEXT")] = None,
    as_json: AsJson = False,
) -> None:
    """List mistakes in a configuration, one on each line.

    The exit status is 0 if there are none, 1 if there are some, and 2 if the file cannot be read.

    Options:
        config: The configuration, a JSON file.
        goal: Goal of the agent, instead of the configuration's.

    [bold]Example[/bold]

    prism think check config.json
    """
    from prism.cognition import Config
    from prism.cognition._config import ConfigProblem, crowded_limits

    problems = Config.check(config)
    if goal is not None and not any(problem.severity == "error" for problem in problems):
        problems += [
            ConfigProblem(str(config), 0, 0, f"agent.{limit}", message, "no_room")
            for limit, message in crowded_limits(replace(Config.load(config), goal=goal))
        ]

    listing = {"config": str(config), "problems": list(map(asdict, problems))}
    print_findings(list(map(str, problems)), listing, as_json=as_json)


def has_failed(results: CognitiveResults) -> bool:
    """Print a note and return True if a run was useless or stopped early."""
    without = sum(results.outcomes.get(name, 0) for name in ("unusable", "failed"))
    came_to_nothing = bool(results.cycles) and without == results.cycles
    if came_to_nothing:
        note("no cycle got a useful reply: check the model with prism doctor --model NAME")
    if results.stopped is not None:
        lost = counted(results.lost_calls, "call")
        told = f"; {lost} brought no usable reply" if results.lost_calls else ""
        note(f"stopped after {results.cycles:,} cycles: {results.stopped}{told}")

    return came_to_nothing or results.stopped is not None


def print_results(results: CognitiveResults, folder: Path | None) -> None:
    """Print the results of a run of cycles."""
    counts = {"cycles": results.outcomes, "actions": results.actions}
    facts: dict[str, str | int] = {
        "cycles": f"{results.cycles:,}, {results.cycle:,} in the memory's life",
        "state": results.state,
        "transitions": results.transitions,
        **{f"{kind} {name}": n for kind, found in counts.items() for name, n in found.items()},
        "pagings": results.pagings,
        "working memory": results.memories,
        "thoughts": results.thoughts,
        "storage": results.stored,
        "tokens": results.tokens,
        **({"calls lost": results.lost_calls} if results.lost_calls else {}),
    }
    print_facts(results.agent_id, facts)
    print_place("Every cycle", folder)
