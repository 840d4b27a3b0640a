"""``prism memory``: looking at the memory of a thinking agent."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._options import AsJson, command_group
from prism.cli._screen import note, print_json, print_table, say

if TYPE_CHECKING:
    from prism.programs.thinking import Memory

app = command_group("View and search the memory of an agent, which may be using it.")

File = Annotated[Path, typer.Argument(metavar="MEMORY", help="The memory, a JSON file.")]


@app.command()
def show(
    file: File,
    tag: Annotated[
        str | None, typer.Argument(help="Show only this memory or thought, with old values.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the state, the working memory, the thoughts and the storage.

    The exit status is 1 if there is nothing under TAG.

    **Examples**

    * `prism memory show memory.json`

    * `prism memory show memory.json character_alice`
    """
    from prism.programs.thinking._memory import as_tag

    with _read(file) as memory:
        found = list(_entries(memory))
        if tag is not None:
            old = enumerate(memory.versions(as_tag(tag)), 1)
            found = [each for each in found if each["tag"] == as_tag(tag)]
            found += [{"where": f"version {n}", "tag": as_tag(tag), "value": v} for n, v in old]
        about = {"memory": str(file), "state": memory.state, "cycle": memory.cycle}
    if tag is None and not as_json:
        say(f"{file}: in {about['state']}, after {about['cycle']} cycles")
    _print(found, {**about, "entries": found} if tag is None else found, as_json=as_json)
    if tag is not None and not found:
        note(f"the memory has nothing under {tag!r}: search for it with prism memory search")
        raise typer.Exit(1)


@app.command()
def search(
    file: File,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="What to search for.")],
    most: Annotated[int, typer.Option(min=1, help="Most matches to list.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Search working memory, thoughts and storage for words, best matches first.

    The exit status is 1 if nothing is found.

    **Example**

    * `prism memory search memory.json who is alice`
    """
    from prism.programs.thinking import Memory

    with _read(file) as memory:
        # what an agent always sees is searched as if it were stored, each under a tag of its own
        entries = list(_entries(memory))
        stored = {f"{each['tag']}_{n}": each["value"] for n, each in enumerate(entries)}
        matches = Memory.in_memory({"storage": stored}).search(" ".join(words), most)
        numbers = [int(each.tag.rpartition("_")[2]) for each in matches]
        scores = [round(each.score, 6) for each in matches]
        found = [{**entries[n], "score": s} for n, s in zip(numbers, scores, strict=True)]
    _print(found, found, as_json=as_json)
    if not found:
        note("nothing in the memory contains any of these words")
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


def _entries(memory: Memory) -> Iterator[dict[str, Any]]:
    parts = {"working memory": memory.working, "thought": memory.thoughts}
    for where, values in {**parts, "storage": memory.to_dict()["storage"]}.items():
        for tag, value in values.items():
            yield {"where": where, "tag": tag, "value": value}


def _print(found: list[dict[str, Any]], data: Any, *, as_json: bool) -> None:
    from prism.programs.thinking._memory import to_text

    if as_json:
        print_json(data)
    elif found:
        names = [name for name in found[0] if name != "value"]
        rows = ([*(each[name] for name in names), to_text(each["value"])] for each in found)
        print_table(rows, *names, "value")
