"""``prism think init``: the files of a thinking agent to begin from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prism.cli._options import command_group
from prism.cli._screen import say
from prism.errors import InputError

app = command_group("Create a thinking agent. To run it, use prism run.")


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Folder to write them to.")] = Path(),
    goal: Annotated[str | None, typer.Option(metavar="TEXT", help="Goal of the agent.")] = None,
) -> None:
    """Write a first configuration and an empty memory, without overwriting anything.

    **Examples**

    * `prism think init`

    * `prism think init story --goal "Plan a story about a night train."`
    """
    from prism.programs.thinking import Config, Memory

    config, memory = folder / "config.json", folder / "memory.json"
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
