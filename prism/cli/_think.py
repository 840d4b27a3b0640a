"""``prism think``: beginning a thinking agent; how one is shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._options import command_group
from prism.cli._screen import note, print_facts, print_place, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.programs.thinking import CognitiveResults

CONFIG_NAME = "config.json"
MEMORY_NAME = "memory.json"

thinking = command_group("Create a thinking agent. To run it, use prism run.")


@thinking.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")] = Path(),
    goal: Annotated[str | None, typer.Option(metavar="TEXT")] = None,
) -> None:
    """Write a first configuration and an empty memory, without overwriting anything.

    Options:
        folder: Folder to write them to; created if missing.
        goal: Goal of the agent.

    [bold]Examples[/bold]

    prism think init

    prism think init story --goal "Plan a story about a night train."
    """
    from prism.programs.thinking import Config, Memory

    config, memory = folder / CONFIG_NAME, folder / MEMORY_NAME
    for path in (config, memory):
        if path.exists() or path.is_symlink():
            raise InputError("already exists and would be overwritten", path=path)

    text = Config(goal=goal).to_json()
    folder.mkdir(parents=True, exist_ok=True)
    with Memory.open(memory) as empty:
        empty.commit()
    with config.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)

    say(f"{config}: the configuration, with all keys and their defaults")
    say(f"{memory}: an empty memory")
    say(f"next: prism run {config} --memory {memory} --model NAME")


def has_failed(results: CognitiveResults) -> bool:
    """Print a note and return True if a run was useless or stopped early."""
    without = sum(results.outcomes.get(name, 0) for name in ("unusable", "failed"))
    came_to_nothing = bool(results.cycles) and without == results.cycles
    if came_to_nothing:
        note("no cycle got a useful reply: check the model with prism doctor --model NAME")
    if results.stopped is not None:
        note(f"stopped after {results.cycles:,} cycles: {results.stopped}")

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
    }
    print_facts(results.agent_id, facts)
    print_place("Every cycle", folder)
