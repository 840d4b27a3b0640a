"""``prism memory``: looking at the memory of an agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._options import AsJson, command_group
from prism.cli._screen import (
    damage_noted,
    note,
    pour_json,
    print_facts,
    print_table,
    say,
)

if TYPE_CHECKING:
    from prism.programs.thinking import Memory

DEFAULT_MOST = 10
MOST_STORED = 20

memories = command_group("View and search the memory of an agent.")

File = Annotated[Path, typer.Argument(metavar="MEMORY", help="The memory, a JSON file.")]


@memories.command()
def show(
    file: File,
    tag: Annotated[str | None, typer.Argument(metavar="TAG")] = None,
    stored: Annotated[int, typer.Option(min=0)] = MOST_STORED,
    as_json: AsJson = False,
) -> None:
    """Show the state, the working memory with its tokens, the thoughts and the storage.

    With TAG, show the values under that tag; the exit status is 1 if there are none. An agent may
    be using the memory.

    Options:
        tag: Show only this memory or thought, in full.
        stored: Maximum number of stored memories to list.

    [bold]Examples[/bold]

    prism memory show memory.json

    prism memory show memory.json character_alice
    """
    with _read(file) as memory:
        listing = _listing(memory, file, stored)
        found = [] if tag is None else list(_under(memory, tag))

    if tag is not None:
        _print_values(found, tag, as_json=as_json)
    elif as_json:
        pour_json(listing, ensure_ascii=False)
    else:
        _print_listing(listing)


@memories.command()
def search(
    file: File,
    words: Annotated[list[str], typer.Argument(metavar="WORD")],
    most: Annotated[int, typer.Option(min=1)] = DEFAULT_MOST,
    as_json: AsJson = False,
) -> None:
    """Search the working memory, the thoughts and the storage for words, best matches first.

    The exit status is 1 if nothing is found. An agent may be using the memory.

    Options:
        words: What to search for.
        most: Maximum number of matches to list.

    [bold]Example[/bold]

    prism memory search memory.json who is alice
    """
    text = " ".join(words)
    with _read(file) as memory:
        found = list(_matches(memory, text, most))

    if as_json:
        pour_json(found, ensure_ascii=False)
    elif found:
        _print_matches(found)
    else:
        note("nothing in the memory contains any of these words")

    if not found:
        raise typer.Exit(1)


@contextmanager
def _read(file: Path) -> Iterator[Memory]:
    from prism.programs.thinking import Memory

    with damage_noted():
        memory = Memory.read(file)
    with closing(memory):
        yield memory


def _under(memory: Memory, tag: str) -> Iterator[dict[str, Any]]:
    """Yield the entries under a tag, and where they are."""
    from prism.programs.thinking._memory import as_tag

    tag = as_tag(tag)
    stored = memory.to_dict()["storage"]
    places = {"working memory": memory.working, "thoughts": memory.thoughts, "storage": stored}
    for where, values in places.items():
        if tag in values:
            yield {"where": where, "tag": tag, "value": values[tag]}
    for number, value in enumerate(memory.versions(tag), 1):
        yield {"where": f"version {number}", "tag": tag, "value": value}


def _print_values(found: list[dict[str, Any]], tag: str, *, as_json: bool) -> None:
    if as_json:
        pour_json(found, ensure_ascii=False)
    elif not found:
        note(f"the memory has nothing under {tag!r}: search for it with prism memory search")
    else:
        print_facts(tag, {each["where"]: _text(each["value"]) for each in found})
    if not found:
        raise typer.Exit(1)


def _listing(memory: Memory, file: Path, most_stored: int) -> dict[str, Any]:
    """Return the shown parts of a memory as plain data."""
    shown = memory.to_dict()
    old = shown["prism"].get("versions", {}).keys()
    used = shown["prism"].get("used", {})
    stored = list(shown["storage"].items())

    return {
        "memory": str(file),
        "bytes": 0 if memory.path is None else memory.path.stat().st_size,
        "state": memory.state,
        "cycle": memory.cycle,
        "working_memory": [
            {**_sized(tag, value), "used": used.get(tag)} for tag, value in memory.working.items()
        ],
        "thoughts": [_sized(key, entry) for key, entry in memory.thoughts.items()],
        "stored": len(stored),
        "storage": [_sized(tag, value) for tag, value in stored[:most_stored]],
        "unknown": list(memory.unknown),
        "versions": sum(len(memory.versions(tag)) for tag in old),
    }


def _sized(tag: str, value: Any) -> dict[str, Any]:
    from prism.reasoner._tokens import count_tokens

    text = _text(value)
    return {"tag": tag, "tokens": count_tokens(text), "bytes": len(text.encode()), "value": value}


_PLACES = {"working memory": "working_memory", "thought": "thoughts", "storage": "storage"}


def _print_listing(listing: Mapping[str, Any]) -> None:
    def size_of(entries: list[dict[str, Any]]) -> str:
        return f"{len(entries):,}, {sum(each['tokens'] for each in entries):,} tokens"

    facts = {
        "bytes": listing["bytes"],
        "state": listing["state"],
        "cycles": listing["cycle"],
        "working memory": size_of(listing["working_memory"]),
        "thoughts": size_of(listing["thoughts"]),
        "storage": listing["stored"],
        "old values": listing["versions"],
        **({"other keys": ", ".join(listing["unknown"])} if listing["unknown"] else {}),
    }
    print_facts(listing["memory"], facts)
    for heading, key in _PLACES.items():
        _print_entries(heading, listing[key])

    if left := listing["stored"] - len(listing["storage"]):
        say(f"and {left:,} more in storage: see prism memory search, or --stored")


def _print_entries(heading: str, entries: list[dict[str, Any]]) -> None:
    numbers = {"tokens": "tokens", "bytes": "bytes"}
    numbers |= {"used": "used in cycle"} if heading == "working memory" else {}
    rows = [
        (each["tag"], *(_number(each[name]) for name in numbers), _text(each["value"]))
        for each in entries
    ]
    if rows:
        names = [*numbers.values()]
        print_table(rows, heading, *names, "value", numbers=names)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _text(value: Any) -> str:
    from prism.programs.thinking._memory import to_text

    return to_text(value)


def _matches(memory: Memory, text: str, most: int) -> Iterator[dict[str, Any]]:
    """Search the part that an agent always sees, and then storage."""
    from prism.programs.thinking import Memory

    seen = (("working memory", memory.working), ("thoughts", memory.thoughts))
    searched = [(where, Memory.in_memory({"storage": dict(values)})) for where, values in seen]
    for where, held in [*searched, ("storage", memory)]:
        for found in held.search(text, most):
            score = round(found.score, 6)
            yield {"where": where, "tag": found.tag, "value": found.value, "score": score}


def _print_matches(found: list[dict[str, Any]]) -> None:
    rows = (
        (each["where"], each["tag"], f"{each['score']:.3g}", _text(each["value"])) for each in found
    )
    print_table(rows, "where", "tag", "score", "value", numbers=["score"])
