"""``prism memory``: looking at the memory of an agent, and changing it by hand."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._options import AsJson, OutFile, command_group
from prism.cli._output import write_bytes
from prism.cli._screen import (
    damage_noted,
    note,
    pour_json,
    print_facts,
    print_table,
    say,
)
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.cognition._memory._memory import Memory

DEFAULT_MOST = 10
MOST_STORED = 20

_DEFAULT_EDITOR = "notepad" if os.name == "nt" else "vi"
_TERMINAL_EDITORS = ("vi", "vim", "nvim", "nano", "pico", "joe", "micro")

memories = command_group("View, search and edit the memory of an agent.")

File = Annotated[
    Path, typer.Argument(metavar="MEMORY", help="The memory: a JSON file or a SQLite database.")
]


@memories.command()
def show(
    file: File,
    tag: Annotated[str | None, typer.Argument(metavar="TAG")] = None,
    stored: Annotated[int, typer.Option(min=0)] = MOST_STORED,
    versions: Annotated[bool, typer.Option("--versions")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the state, the working memory with its tokens, the thoughts and the storage.

    With TAG, show the values under that tag; the exit status is 1 if there are none. An agent may
    be using the memory.

    Options:
        tag: Show only this memory or thought, in full.
        stored: Maximum number of stored memories to list.
        versions: Also show the old values of each memory.

    [bold]Examples[/bold]

    prism memory show memory.json

    prism memory show memory.json character_alice --versions
    """
    with _read(file) as memory:
        listing = _listing(memory, file, stored, versions=versions)
        found = [] if tag is None else list(_under(memory, tag, versions=versions))

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


@memories.command()
def export(
    file: File,
    out: OutFile = None,
    storage: Literal["json", "sqlite"] = "json",
) -> None:
    """Export a memory to JSON, or to a new SQLite database.

    Use it to convert a memory from one to the other, too. An agent may be using the memory.

    Options:
        storage: sqlite writes a new database, named by --out.

    [bold]Examples[/bold]

    prism memory export memory.db > memory.json

    prism memory export memory.json --storage sqlite --out memory.db
    """
    from prism.cognition._memory._memory import Memory
    from prism.cognition._memory._values import to_json

    reads = _files_of(file)
    with _read(file) as memory:
        document = memory.to_dict()

    if storage == "sqlite":
        if out is None:
            raise InputError("--storage sqlite needs --out with a new file for the database")
        Memory.create(out, document, storage="sqlite").close()
    else:
        write_bytes(to_json(document), out, reads)


@memories.command()
def edit(file: File) -> None:
    """Edit a memory as JSON in your editor, and save it if it is valid.

    VISUAL or EDITOR names the editor. Mistakes are reported with their line; you can then
    continue editing, or give up and leave the memory as it was. A damaged JSON memory is opened as
    it is, so that you can repair it. No agent may be using the memory meanwhile. Without a
    terminal, EDITOR must be a program that needs none.

    The exit status is 1 if nothing was changed.

    [bold]Example[/bold]

    EDITOR=nano prism memory edit memory.json
    """
    from prism.cognition._memory._memory import MemoryText

    _require(file)

    with damage_noted():
        opened = MemoryText(file)
    with closing(opened) as memory:
        if memory.damage:
            note(f"{memory.damage}: correct it here; the damaged file will be kept beside it")
        text = memory.text
        while True:
            text = _edited_text(text, f"{file.stem}.json")
            if text == memory.text and not memory.damage:
                note("nothing was changed")
                raise typer.Exit(1)
            try:
                memory.write(text)
            except InputError as error:
                note(f"your text{_place(error)}{error.problem}")
                if _goes_on():
                    continue
                note(f"nothing was changed; your text is kept in {_kept_text(text, file.stem)}")
                raise typer.Exit(1) from None
            return


@memories.command()
def forget(
    file: File,
    tags: Annotated[list[str], typer.Argument(metavar="TAG")],
) -> None:
    """Remove memories by tag from working memory and storage, along with their old values.

    Backups beside the file and folders of runs still hold the memories; prism memory compact
    --backups 0 removes the backups. No agent may be using the memory meanwhile. If one of the tags
    does not exist, nothing is removed and the exit status is 1.

    Options:
        tags: Tags of the memories to forget.

    [bold]Example[/bold]

    prism memory forget memory.json character_alice
    """
    from prism.cognition._memory._memory import Memory

    _require(file)

    with damage_noted(), closing(Memory.open(file)) as memory:
        missing = [tag for tag in tags if not memory.forget(tag)]
        if missing:
            note(f"there is no memory {', '.join(map(repr, missing))}: nothing was removed")
            raise typer.Exit(1)
        memory.commit()


@memories.command()
def compact(
    file: File,
    backups: Annotated[int | None, typer.Option(min=0, metavar="N")] = None,
    versions: Annotated[int | None, typer.Option(min=0, metavar="N")] = None,
) -> None:
    """Make the file of a memory as small as possible, without losing any current value.

    A database is reindexed and vacuumed. Unfinished files of a killed process are removed. No agent
    may be using the memory meanwhile.

    Options:
        backups: Keep only the newest N backups.
        versions: Keep only the newest N old values of each memory.

    [bold]Example[/bold]

    prism memory compact memory.db --backups 1
    """
    from prism.cognition._memory._memory import compact_memory

    _require(file)

    with damage_noted():
        before, after, removed = compact_memory(file, backups, versions)
    say(f"{before:,} bytes before, {after:,} bytes now")
    for path in removed:
        say(f"removed {path}")


def _require(file: Path) -> None:
    if not file.exists():
        raise InputError("this memory does not exist", path=file)


@contextmanager
def _read(file: Path) -> Iterator[Memory]:
    from prism.cognition._memory._memory import Memory

    with damage_noted():
        memory = Memory.read(file)
    with closing(memory):
        yield memory


def _under(memory: Memory, tag: str, *, versions: bool) -> Iterator[dict[str, Any]]:
    """Yield the entries under a tag, and where they are."""
    from prism.cognition._memory._values import as_tag

    tag = as_tag(tag)
    stored = memory.to_dict()["storage"]
    places = {"working memory": memory.working, "thoughts": memory.thoughts, "storage": stored}
    for where, values in places.items():
        if tag in values:
            yield {"where": where, "tag": tag, "value": values[tag]}
    old = zip(memory.versions(tag), memory.version_cycles(tag), strict=True) if versions else ()
    for number, (value, cycle) in enumerate(old, 1):
        where = f"version {number}"
        yield {"where": where, "tag": tag, "value": value, "replaced_in_cycle": cycle}


def _print_values(found: list[dict[str, Any]], tag: str, *, as_json: bool) -> None:
    if as_json:
        pour_json(found, ensure_ascii=False)
    elif not found:
        note(f"the memory has nothing under {tag!r}: search for it with prism memory search")
    else:
        print_facts(tag, {_where(each): _text(each["value"]) for each in found})
    if not found:
        raise typer.Exit(1)


def _where(entry: Mapping[str, Any]) -> str:
    cycle = entry.get("replaced_in_cycle")
    return entry["where"] if cycle is None else f"{entry['where']}, until cycle {cycle:,}"


def _listing(
    memory: Memory, file: Path, most_stored: int, *, versions: bool = False
) -> dict[str, Any]:
    """Return the shown parts of a memory as plain data."""
    shown = memory.to_dict()
    old = shown["prism"].get("versions", {}).keys()
    values = {tag: memory.versions(tag) for tag in old}
    cycles = {tag: memory.version_cycles(tag) for tag in old}
    used = shown["prism"]["used"]
    stored = list(shown["storage"].items())

    return {
        "memory": str(file),
        "kept_as": memory.kind,
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
        "versions": sum(map(len, values.values())),
        **({"old_values": values, "replaced_in_cycle": cycles} if versions else {}),
    }


def _sized(tag: str, value: Any) -> dict[str, Any]:
    from prism.statechart.reasoner._tokens import count_tokens

    text = _text(value)
    return {"tag": tag, "tokens": count_tokens(text), "bytes": len(text.encode()), "value": value}


_PLACES = {"working memory": "working_memory", "thought": "thoughts", "storage": "storage"}


def _print_listing(listing: Mapping[str, Any]) -> None:
    def size_of(entries: list[dict[str, Any]]) -> str:
        return f"{len(entries):,}, {sum(each['tokens'] for each in entries):,} tokens"

    facts = {
        "kept as": f"{listing['kept_as']}, {listing['bytes']:,} bytes",
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

    rows = [
        (tag, _number(cycle), _text(value))
        for tag, old in listing.get("old_values", {}).items()
        for value, cycle in zip(old, listing["replaced_in_cycle"][tag], strict=True)
    ]
    if rows:
        print_table(rows, "old value of", "until cycle", "value", numbers=["until cycle"])
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
    from prism.cognition._memory._values import to_text

    return to_text(value)


def _matches(memory: Memory, text: str, most: int) -> Iterator[dict[str, Any]]:
    """Search the part that an agent always sees, and then storage."""
    from prism.cognition._memory._memory import Memory

    seen = (("working memory", memory.working), ("thoughts", memory.thoughts))
    searched = [(where, Memory.in_memory({"storage": values})) for where, values in seen]
    for where, held in [*searched, ("storage", memory)]:
        for found in held.search(text, most):
            score = round(found.score, 6)
            yield {"where": where, "tag": found.tag, "value": found.value, "score": score}


def _print_matches(found: list[dict[str, Any]]) -> None:
    rows = (
        (each["where"], each["tag"], f"{each['score']:.3g}", _text(each["value"])) for each in found
    )
    print_table(rows, "where", "tag", "score", "value", numbers=["score"])


def _files_of(file: Path) -> list[Path]:
    """Return the files that belong to a memory, which no export may overwrite."""
    from glob import escape

    place = file.resolve()
    return [place, *place.parent.glob(f"{escape(place.name)}[.-]*")]


def _place(error: InputError) -> str:
    """Return where in the text the mistake is."""
    line = "" if error.line is None else f", line {error.line},"
    field = "" if error.field is None else f", key {error.field!r},"
    return f"{line}{field} " if line or field else " "


def _goes_on() -> bool:
    try:
        return typer.confirm("Continue editing?", default=True, err=True)
    except typer.Abort:
        return False


# the user's own editor, in which a text is changed


def _editor() -> str:
    """Return the command of the user's editor.

    Raises:
        InputError: If it works in a terminal, and there is none.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    has_terminal = all(each is not None and each.isatty() for each in (sys.stdin, sys.stdout))
    if has_terminal or os.name == "nt":
        return editor or _DEFAULT_EDITOR

    # a script needs no terminal; an editor for terminals would wait for what nobody can type
    program = Path(editor.partition(" ")[0]).name if editor else _DEFAULT_EDITOR
    if not editor or program in _TERMINAL_EDITORS:
        raise InputError(
            f"the editor {program} needs a terminal: run this in one, or set EDITOR to a program "
            "that needs none"
        )

    return editor


def _edited_text(text: str, name: str) -> str:
    """Open a text in the editor of VISUAL or EDITOR, and return the edited text.

    Args:
        text: The text.
        name: Name of the file; editors tell the format by its ending.

    Raises:
        InputError: If there is no such editor, it fails, or it needs a terminal and there is none.
    """
    editor = _editor()
    with TemporaryDirectory(prefix="prism-") as folder:
        file = Path(folder) / name
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            status = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            problem = f"cannot start the editor {editor!r} ({reason}): set EDITOR"
            raise InputError(problem) from None
        if status != 0:
            raise InputError(f"the editor ended with status {status}: nothing was changed")

        return file.read_bytes().decode("utf-8", "surrogateescape")


def _kept_text(text: str, name: str) -> Path:
    """Write a text to a file of its own for the user."""
    descriptor, path = mkstemp(prefix=f"{name}-", suffix=".json")
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))

    return Path(path)
