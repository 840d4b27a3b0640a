"""``prism memory``: looking at the memory of a thinking agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._options import AsJson, command_group
from prism.cli._screen import note, print_facts, print_json, print_table

if TYPE_CHECKING:
    from prism.programs.thinking import Memory

app = command_group("View and search the memory of an agent, which may be using it.")

File = Annotated[Path, typer.Argument(metavar="MEMORY", help="The memory, a JSON file.")]


@app.command()
def show(
    file: File,
    tag: Annotated[str | None, typer.Argument(help="Show this memory alone.")] = None,
    stored: Annotated[int, typer.Option(min=0, help="Most memories in storage to list.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the state, the working memory, the thoughts and the storage.

    The exit status is 1 if there is nothing under TAG.

    **Examples**

    * `prism memory show memory.json`

    * `prism memory show memory.json character_alice`
    """
    from prism.programs.thinking import Memory

    memory = Memory.read(file)
    entries = [*_entries(memory, None if tag else stored)]
    if tag is not None:
        entries = [each for each in entries if each["tag"] == tag.replace(" ", "_")]
        entries += _versions(memory, tag)

    facts = {
        "state": memory.state,
        "cycle": memory.cycle,
        "stored": len(memory.to_dict()["storage"]),
    }
    if as_json:
        print_json({**facts, "entries": entries})
    else:
        print_facts(str(file), facts)
    if entries or tag is not None:
        _print_entries(entries, f"the memory has nothing under {tag!r}", as_json=as_json)
    else:
        note("the memory is empty")


@app.command()
def search(
    file: File,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="What to search for.")],
    most: Annotated[int, typer.Option(min=1, help="Most matches to list.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Search the storage for words, best matches first.

    The exit status is 1 if nothing matches.

    **Example**

    * `prism memory search memory.json who is alice`
    """
    from prism.programs.thinking import Memory

    matches = Memory.read(file).search(" ".join(words), most)
    entries = [{"where": "storage", "tag": each.tag, "value": each.value} for each in matches]
    if as_json:
        print_json(entries)
    _print_entries(entries, "nothing in storage contains any of these words", as_json=as_json)


def _entries(memory: Memory, most_stored: int | None) -> Iterator[dict[str, Any]]:
    """Yield what a memory holds, and where."""
    stored = list(memory.to_dict()["storage"].items())[:most_stored]
    parts = {"working memory": memory.working, "thought": memory.thoughts, "storage": dict(stored)}
    for where, values in parts.items():
        for tag, value in values.items():
            yield {"where": where, "tag": tag, "value": value}


def _versions(memory: Memory, tag: str) -> Iterator[dict[str, Any]]:
    for number, value in enumerate(memory.versions(tag.replace(" ", "_")), 1):
        yield {"where": f"version {number}", "tag": tag, "value": value}


def _print_entries(entries: list[dict[str, Any]], none: str, *, as_json: bool) -> None:
    if not entries:
        note(none)
        raise typer.Exit(1)
    if not as_json:
        print_table(map(dict.values, entries), "where", "tag", "value")
