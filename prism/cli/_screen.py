"""Printing for all commands, and plain tables.

Names of files, logs, servers and replies may contain any characters. Everything that a command
prints passes through `shown`, so a terminal obeys none of it. No other module of the command line
prints: they take a console, or standard output, from here.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text


def shown(text: str) -> str:
    """Return a text on one line, with blanks for all that a terminal would obey."""
    # help is printed by rich and needs neither room
    from prism.drawing import printable
    from prism.files._records import shown_path

    return printable(shown_path(text))


def plain(text: str) -> Text:
    """Return a text to print as it is: no markup, no line breaks, no control characters."""
    return Text(shown(text))


def say(text: str, *, err: bool = False) -> None:
    """Print a text as one line, without the characters that a terminal would obey.

    Args:
        text: The text.
        err: Whether to print it on standard error.
    """
    typer.echo(shown(text), err=err)


def note(text: str) -> None:
    """Print a line about the command itself on standard error."""
    say(f"prism: {text}", err=True)


@contextmanager
def damage_noted() -> Iterator[None]:
    """Print warnings, for example of a damaged file that was restored, like a command's notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = lambda message, *_, **__: note(str(message))
        yield


def pour_json(data: Any, **options: Any) -> None:
    """Write data to standard output as `pour` does: as JSON, for programs."""
    pour(json.dumps(data, indent=2, **options) + "\n")


def pour(text: str) -> None:
    """Write a text for programs to standard output, unchanged unless that is a terminal."""
    if sys.stdout.isatty():
        text = "".join(f"{shown(line)}\n" for line in text.splitlines())

    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def standard_output() -> Iterator[IO[bytes]]:
    """Give standard output for bytes, unchanged unless that is a terminal."""
    if not sys.stdout.isatty():
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return

    with _ForTerminal() as file:
        yield file
        pour(file.getvalue().decode(errors="replace"))


class _ForTerminal(BytesIO):
    """Bytes that will be shown on a terminal."""

    def isatty(self) -> bool:
        return True


class Screen(Console):
    """A console that shows every text, also in tables and progress bars, as `shown` does.

    Args:
        err: Whether to write to standard error.
        file: Where to write instead.
        width: Characters of a line; by default those of the terminal.
    """

    def __init__(
        self, *, err: bool = False, file: IO[str] | None = None, width: int | None = None
    ) -> None:
        super().__init__(stderr=err, file=file, width=width)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does, without the characters that a terminal would obey."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(_lines(segment.text), segment.style)


def _lines(text: str) -> str:
    """Return a text as shown, but keep its line breaks, which rich needs."""
    return text if text.isprintable() else "\n".join(map(shown, text.split("\n")))


def plain_table() -> Table:
    """Return a table with a line below its headings and no other."""
    return Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def table_of(rows: Iterable[Iterable[str]], *headings: str, numbers: Iterable[str] = ()) -> Table:
    """Return a plain table with these rows.

    Args:
        rows: Its rows of texts.
        headings: The names of its columns; texts that are too long are wrapped.
        numbers: The columns that hold numbers.
    """
    table, of_numbers = plain_table(), {*numbers}
    for heading in headings:
        if heading in of_numbers:
            table.add_column(plain(heading), justify="right")
        else:
            table.add_column(plain(heading), overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))

    return table


def print_heading(text: str) -> None:
    """Print a line in bold."""
    Screen().print(plain(text), style="bold", soft_wrap=True)


def print_table(rows: Iterable[Iterable[str]], *headings: str, numbers: Iterable[str] = ()) -> None:
    """Print the table that `table_of` returns."""
    Screen().print(table_of(rows, *headings, numbers=numbers))


def print_facts(name: str, facts: Mapping[str, str | int]) -> None:
    """Print a table of the facts about one thing, one per row, numbers with commas."""
    rows = ((what, f"{fact:,}" if isinstance(fact, int) else fact) for what, fact in facts.items())
    print_table(rows, "what", name)


def print_findings(lines: Sequence[str], listing: Any, *, as_json: bool) -> None:
    """Print problems, one per line, or all as JSON.

    Raises:
        typer.Exit: With status 1, if there are any.
    """
    if as_json:
        pour_json(listing)
    else:
        for line in lines:
            say(line)
    if lines:
        raise typer.Exit(1)


def print_place(what: str, folder: Path | None) -> None:
    """Print where the events and the summary of a run are, if it is kept."""
    if folder is not None:
        from prism.runlog._reader import log_in

        say(f"{what} is in {log_in(folder)}, this summary in {folder / 'run.json'}.")


def shortened(text: str, most: int) -> str:
    """Return a text on one line, cut after so many characters."""
    line = shown(text)
    return line if len(line) <= most else f"{line[:most]}..."


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, as in ``1 round`` and ``2,000 rounds``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def evenly(count: int, most: int) -> list[int]:
    """Pick at most so many evenly spaced places, including the first and the last.

    Args:
        count: Number of places.
        most: Maximum number of places, at least 2.
    """
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]
