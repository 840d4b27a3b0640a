"""Printing for all commands, and the one command whose output goes to a file: safely.

Names of files, logs, servers and replies may contain any characters. Everything that a command
prints passes through `one_line`, so a terminal obeys none of it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from prism.errors import InputError

_BY_HAND = {".py", ".ipynb", ".toml", ".yaml", ".yml", ".md", ".txt"}


def one_line(text: str) -> str:
    """Return a text on one line, with blanks for all that a terminal would obey."""
    # help is printed by rich and needs neither room
    from prism.drawing import printable
    from prism.files.records import printable_path

    return printable(printable_path(text))


def say(text: str, *, err: bool = False) -> None:
    """Print a text as one line, without the characters that a terminal would obey."""
    typer.echo(one_line(text), err=err)


def note(text: str) -> None:
    """Print a line about the command itself on standard error."""
    say(f"prism: {text}", err=True)


def print_json(data: Any) -> None:
    """Print data as JSON, for programs."""
    # only a terminal obeys control characters
    text = json.dumps(data, indent=2, ensure_ascii=sys.stdout.isatty(), default=str)
    typer.echo(text)


class Screen(Console):
    """A console of rich that shows every text as `one_line` does."""

    def __init__(self, *, err: bool = False) -> None:
        super().__init__(stderr=err)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, without the characters that a terminal would obey."""
        for each in super().render(renderable, options):
            yield each if each.control else Segment(_lines(each.text), each.style)


def _lines(text: str) -> str:
    """Return a text as `one_line` does, but keep its line breaks, which rich needs."""
    return text if text.isprintable() else "\n".join(map(one_line, text.split("\n")))


def print_table(rows: Iterable[Iterable[Any]], *headings: str) -> None:
    """Print a plain table: numbers are justified on the right, and long texts are wrapped.

    Args:
        rows: Its rows; see `cell`.
        headings: The names of its columns.
    """
    table, kept = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)), [*map(list, rows)]
    for index, heading in enumerate(headings):
        is_number = are_numbers([row[index] for row in kept])
        justify, overflow = ("right", "ellipsis") if is_number else ("left", "fold")
        table.add_column(Text(one_line(heading)), justify=justify, overflow=overflow)  # type: ignore[arg-type]
    for row in kept:
        table.add_row(*(Text(cell(value)) for value in row))

    Screen().print(table)


def are_numbers(values: Sequence[Any]) -> bool:
    """Return whether all values are numbers, as far as there are any."""
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, (int, float)) for value in present)


def cell(value: Any) -> str:
    """Return a value as it stands in a table."""
    from prism.drawing import number_text

    if value is None:
        return "-"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return one_line(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def print_heading(text: str) -> None:
    """Print a line in bold."""
    Screen().print(Text(one_line(text)), style="bold", soft_wrap=True)


def print_facts(name: str, facts: Mapping[str, Any]) -> None:
    """Print a table of the facts about one thing, one per row."""
    print_table(facts.items(), "what", name)


def print_findings(lines: Sequence[str], listing: Any, *, as_json: bool) -> None:
    """Print problems, one per line, or all as JSON.

    Raises:
        typer.Exit: With status 1, if there are any.
    """
    if as_json:
        print_json(listing)
    else:
        for line in lines:
            say(line)
    if lines:
        raise typer.Exit(1)


def shortened(text: str, most: int) -> str:
    """Return a text on one line, cut after so many characters."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[:most]}..."


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, as in ``1 round`` and ``2,000 rounds``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def write_bytes(content: bytes, out: Path | None, reads: Iterable[Path] = ()) -> None:
    """Write a command's output to a file or, without a name, to standard output.

    Args:
        content: All of it.
        out: The file; once complete, it replaces an earlier one.
        reads: The files that the command reads.

    Raises:
        InputError: If it cannot be opened, is one that the command reads, belongs to a run, or
            exists and is written by hand, such as a program.
        OSError: If it cannot be written completely; an earlier file is left unchanged.
    """
    if out is not None:
        _write_file(content, out, reads)
    elif sys.stdout.isatty():
        for line in content.decode(errors="replace").splitlines():
            say(line)
    else:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _write_file(content: bytes, out: Path, reads: Iterable[Path]) -> None:
    # the rooms of runs know a run's own files; help does not need them
    from prism.files import replacing
    from prism.runs.folder import refuse_run_file

    refuse_run_file(out, reads)
    if out.is_file() and out.suffix.lower() in _BY_HAND:
        raise InputError("exists, and is written by hand: name another file", path=out)
    file = None
    try:
        with replacing(out) as file:
            file.write(content)
    except (OSError, ValueError) as error:  # a name that holds a NUL is a ValueError
        if file is not None:
            raise
        problem = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be written to: {problem}", path=out) from None
