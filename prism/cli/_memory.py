"""``prism memory``: looking at the memory of a thinking agent."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._options import AsJson, command_group
from prism.cli._screen import note, print_facts, print_json, print_table, say

if TYPE_CHECKING:
    from prism.programs.thinking import Memory

app = command_group("View and search the memory of an agent, which may be using it.")

File = Annotated[Path, typer.Argument(metavar="MEMORY", help="The memory, a JSON file.")]
_PLACES = {"working memory": "working", "thought": "thoughts", "storage": "storage"}


@app.command()
def show(
    file: File,
    tag: Annotated[
        str | None, typer.Argument(help="Show only this memory or thought, with old values.")
    ] = None,
    stored: Annotated[int, typer.Option(min=0, help="Most memories in storage to list.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the state, the working memory with its tokens, the thoughts and the storage.

    The exit status is 1 if there is nothing under TAG.

    **Examples**

    * `prism memory show memory.json`

    * `prism memory show memory.json character_alice`
    """
    with _read(file) as memory:
        listing = _listing(memory, file, stored)
        found = [] if tag is None else list(_under(memory, tag))

    if as_json:
        print_json(listing if tag is None else found)
    elif tag is None:
        _print_listing(listing)
    elif found:
        print_facts(tag, {each["where"]: _text(each["value"]) for each in found})
    else:
        note(f"the memory has nothing under {tag!r}: search for it with prism memory search")
    if tag is not None and not found:
        raise typer.Exit(1)


@app.command()
def search(
    file: File,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="What to search for.")],
    most: Annotated[int, typer.Option(min=1, help="Most matches to list.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Search working memory, thoughts and storage for words, best matches first in each.

    The exit status is 1 if nothing is found.

    **Example**

    * `prism memory search memory.json who is alice`
    """
    with _read(file) as memory:
        found = list(_matches(memory, " ".join(words), most))

    if as_json:
        print_json(found)
    elif found:
        rows = ((each["where"], each["tag"], each["score"], _text(each["value"])) for each in found)
        print_table(rows, "where", "tag", "score", "value", numbers=["score"])
    else:
        note("nothing in the memory contains any of these words")
    if not found:
        raise typer.Exit(1)


@contextmanager
def _read(file: Path) -> Iterator[Memory]:
    from prism.programs.thinking import Memory

    with warnings.catch_warnings():
        # as of a damaged file that was restored
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        memory = Memory.read(file)
    with closing(memory):
        yield memory


def _parts(memory: Memory) -> dict[str, Mapping[str, Any]]:
    stored = memory.to_dict()["storage"]
    return dict(zip(_PLACES, (memory.working, memory.thoughts, stored), strict=True))


def _under(memory: Memory, tag: str) -> Iterator[dict[str, Any]]:
    """Yield the entries under a tag, and where they are."""
    from prism.programs.thinking._memory import as_tag

    tag = as_tag(tag)
    for where, values in _parts(memory).items():
        if tag in values:
            yield {"where": where, "tag": tag, "value": values[tag]}
    for number, value in enumerate(memory.versions(tag), 1):
        yield {"where": f"version {number}", "tag": tag, "value": value}


def _listing(memory: Memory, file: Path, most_stored: int) -> dict[str, Any]:
    """Return the shown parts of a memory as plain data."""
    from prism.reasoner._words import count_tokens

    parts = {_PLACES[name]: list(values.items()) for name, values in _parts(memory).items()}
    stored = len(parts["storage"])
    parts["storage"] = parts["storage"][:most_stored]
    return {
        "memory": str(file),
        "state": memory.state,
        "cycle": memory.cycle,
        "stored": stored,
        **{
            name: [
                {"tag": tag, "tokens": count_tokens(_text(value)), "value": value}
                for tag, value in entries
            ]
            for name, entries in parts.items()
        },
    }


def _print_listing(listing: Mapping[str, Any]) -> None:
    facts = {
        "state": listing["state"],
        "cycles": listing["cycle"],
        "tokens in working memory": sum(each["tokens"] for each in listing["working"]),
        "storage": listing["stored"],
    }
    print_facts(listing["memory"], facts)
    for heading, key in _PLACES.items():
        rows = [(each["tag"], each["tokens"], _text(each["value"])) for each in listing[key]]
        if rows:
            print_table(rows, heading, "tokens", "value", numbers=["tokens"])
    if left := listing["stored"] - len(listing["storage"]):
        say(f"and {left:,} more in storage: see prism memory search, or --stored")


def _text(value: Any) -> str:
    from prism.programs.thinking._memory import to_text

    return to_text(value)


def _matches(memory: Memory, text: str, most: int) -> Iterator[dict[str, Any]]:
    """Search what an agent always sees, and then storage."""
    from prism.programs.thinking import Memory

    for where, values in _parts(memory).items():
        held = memory if where == "storage" else Memory.in_memory({"storage": dict(values)})
        for found in held.search(text, most):
            score = round(found.score, 6)
            yield {"where": where, "tag": found.tag, "value": found.value, "score": score}
