"""Writing tables: to read in a terminal, and as CSV, JSON or Parquet for programs."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from io import StringIO
from math import floor, isfinite, log10
from pathlib import Path
from shutil import copyfileobj
from tempfile import NamedTemporaryFile, TemporaryFile
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Any, Literal, cast

from rich.table import Table
from rich.text import Text

from prism.cli._output import opened_output, output_file, refuse_read_output
from prism.cli._screen import Screen, plain_table
from prism.cli._screen import shown as as_shown
from prism.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from duckdb import DuckDBPyRelation

    Drawable = pl.DataFrame | DuckDBPyRelation

MOST_ROWS = 40
"""Rows of a drawn table; the other formats have all of them."""

_WIDTH_IN_FILE = 160
_LEAST_TEXT = 16
_BETWEEN_COLUMNS = 2
_DIGITS = 3
_LEAST_WIDTH = 1e-9
_BETWEEN_ITEMS = ", "

_UNUSUAL = re.compile(r"[^\n\x20-\x7e]+")


class TableFormat(StrEnum):
    """The formats of a table."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def choose_format(given: str | None, out: Path | None) -> TableFormat:
    """Return the given format, else that of the file's name, else a drawn table.

    Raises:
        InputError: If Parquet would go to a terminal.
    """
    suffix = "" if out is None else out.suffix.removeprefix(".")
    by_name = TableFormat(suffix) if suffix in set(TableFormat) else TableFormat.TABLE
    chosen = TableFormat(given or by_name)
    if chosen is TableFormat.PARQUET and out is None and sys.stdout.isatty():
        raise InputError(
            "--format parquet cannot be shown on a terminal: name a file with --out, or pipe the "
            "output"
        )

    return chosen


def write(
    table: Drawable,
    as_format: TableFormat,
    out: Path | None,
    shown: Sequence[str],
    hint: str | None = None,
    total: int | None = None,
    *,
    below: str = "",
    reads: Sequence[Path] = (),
    repeated: Sequence[str] = (),
) -> None:
    """Write a table.

    Args:
        table: The table.
        as_format: Format to write.
        out: File to write to; None means standard output.
        shown: Columns to draw, if the table has them.
        hint: Line below a drawn table; by default it says what is left out.
        total: Number of all rows, if the table has only the first of them.
        below: How to read a drawn table, on lines of its own below all others.
        reads: The files that the table is made from.
        repeated: Columns that say what a row is about. If they are given, the columns for which a
            terminal has no room are drawn below, beside these, instead of being left out.

    Raises:
        InputError: If the file cannot be opened, is read, or belongs to a run.
        OSError: If it cannot be written to its end.
    """
    if as_format is TableFormat.TABLE:
        _draw(table, out, reads, shown, hint, total, below, repeated)
        return

    with opened_output(out, reads) as file:
        if not hasattr(table, "write_ndjson"):
            _copy(cast("DuckDBPyRelation", table), as_format, file)
            return
        frame = cast("pl.DataFrame", table)
        if as_format is TableFormat.CSV:
            _write_csv(frame, file)
        elif as_format is TableFormat.JSON:
            _write_json(frame, file)
        else:
            _write_parquet(frame, file)


def _copy(table: DuckDBPyRelation, as_format: TableFormat, file: IO[bytes]) -> None:
    """Write a relation of DuckDB, whose lists become texts in CSV."""
    columns = ", ".join(
        f"array_to_string({name}, '{_BETWEEN_ITEMS}') as {name}"
        if as_format is TableFormat.CSV and str(kind).endswith("[]")
        else name
        for name, kind in (
            (f'"{each}"', kind) for each, kind in zip(table.columns, table.types, strict=True)
        )
    )
    # by way of a temporary file, since DuckDB writes only to names
    with NamedTemporaryFile() as whole:
        options = {"csv": "format csv, header true", "json": "format json, array true"}
        query = (
            f"copy (select {columns} from rows) to '{whole.name}' "
            f"({options.get(as_format, 'format parquet')})"
        )
        with _as_os_errors():
            table.query("rows", query)
        with Path(whole.name).open("rb") as made:
            if as_format is TableFormat.JSON:
                rows = made.read().decode().replace("\n\t", "\n")
                text = _UNUSUAL.sub(_shown_as_json, rows)
                file.write(text.encode())
            else:
                copyfileobj(made, file)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raise what the system says where DuckDB cannot write, such as that the disk is full."""
    import duckdb

    try:
        yield
    except duckdb.IOException as error:
        number = re.search(r'"errno":"(\d+)"', str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def _write_csv(table: pl.DataFrame, file: IO[bytes]) -> None:
    import polars as pl

    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    flat = table.with_columns(pl.col(lists).list.join(_BETWEEN_ITEMS))
    if file.isatty():  # without what a terminal would obey
        blank = pl.col(pl.String).map_elements(as_shown, return_dtype=pl.String)
        flat = flat.with_columns(blank.name.keep())
    file.write(flat.write_csv().encode())


def _write_json(table: pl.DataFrame, file: IO[bytes]) -> None:
    """Write an array of objects, one a line."""
    rows = table.write_ndjson().rstrip("\n").replace("\n", ",\n") if table.height else ""
    # the same JSON, in characters that a terminal only shows
    rows = _UNUSUAL.sub(_shown_as_json, rows)
    file.write(f"[\n{rows}\n]\n".encode() if rows else b"[]\n")


def _shown_as_json(found: re.Match[str]) -> str:
    text = found[0]
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def _write_parquet(table: pl.DataFrame, file: IO[bytes]) -> None:
    from polars.exceptions import ComputeError

    # By way of a temporary file: Parquet is written in several places, and polars' errors of
    # writing vary.
    with TemporaryFile() as whole:
        try:
            table.lazy().sink_parquet(whole, maintain_order=True)
        except ComputeError as error:
            # polars keeps no more of a failed write than the number of its fault
            if number := re.search(r"\(os error (\d+)\)", str(error)):
                raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
            raise

        whole.seek(0)
        copyfileobj(whole, file)


def _draw(
    table: Drawable,
    out: Path | None,
    reads: Sequence[Path],
    shown: Sequence[str],
    hint: str | None,
    total: int | None,
    below: str,
    repeated: Sequence[str],
) -> None:
    """Draw the first rows on a terminal, or all rows in a file, in as many columns as fit."""
    names = list(table.columns)
    rows = table.fetchall() if hasattr(table, "fetchall") else table.rows()
    first = rows if out is not None else rows[:MOST_ROWS]
    with _screen(out, reads) as screen:
        parts = _parts(_columns_of(names, first, shown), screen.width, repeated)
        for part in parts:
            screen.print(_drawing(part))

        drawn = len(names) if repeated else len(parts[0])
        left = _left_out(len(rows), len(names), len(first), drawn, total)
        for line in (hint or left, below):
            if line:
                screen.print(Text(line))


class _Column:
    """A column as it is drawn: numbers are never shortened, and headings break between words.

    Attributes:
        name: Its name.
        cells: Its cells.
        least: The width it needs.
        heading: Its heading, broken into lines.
        is_number: Whether it has numbers.
    """

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self.name = name
        heading = name.replace("_", " ")
        self.cells = [_cell(value) for value in values]
        widest = max(map(len, self.cells), default=0)
        known = [value for value in values if value is not None]
        self.is_number = bool(known) and all(isinstance(value, (int, float)) for value in known)
        least = widest if self.is_number else min(widest, _LEAST_TEXT)
        self.least = max(least, *map(len, heading.split()))
        # Broken here: rich would widen the column before it breaks a heading.
        self.heading = "\n".join(wrap(heading, self.least))


def _columns_of(
    names: Sequence[str], rows: Sequence[Sequence[Any]], shown: Sequence[str]
) -> list[_Column]:
    """Return the columns to draw; that of the run is always one."""
    return [
        _Column(name, [row[place] for row in rows])
        for place, name in enumerate(names)
        if name in shown or name == "run"
    ]


def _parts(columns: list[_Column], width: int, repeated: Sequence[str]) -> list[list[_Column]]:
    """Return the columns that fit, then the others in as many parts as they take.

    Without columns to repeat in each part, there are no others.
    """
    parts = [_fitting(columns, width)]
    while repeated and (rest := columns[len(parts[-1]) :]):
        columns = [*(each for each in columns if each.name in repeated), *rest]
        parts.append(_fitting(columns, width, least=len(columns) - len(rest) + 1))

    return parts


def _fitting(columns: list[_Column], width: int, *, least: int = 1) -> list[_Column]:
    """Leave out the last columns if there is no room for all, but keep at least so many."""
    fitting = list(columns)
    while (
        len(fitting) > least and sum(column.least + _BETWEEN_COLUMNS for column in fitting) >= width
    ):
        fitting.pop()

    return fitting


@contextmanager
def _screen(out: Path | None, reads: Sequence[Path]) -> Iterator[Screen]:
    if out is None:
        refuse_read_output(reads)
        yield Screen()
        return

    with output_file(out, reads) as file:
        text = StringIO()
        yield Screen(file=text, width=_WIDTH_IN_FILE)
        file.write(text.getvalue().encode())


def _left_out(height: int, width: int, rows: int, columns: int, total: int | None) -> str | None:
    """Return what is not drawn, and how to get it."""
    if not height:
        return "no rows: nothing of this kind is in the log"

    parts = []
    total = total or height
    if rows < total:
        parts.append(f"the first {rows:,} rows" + f" of {total:,}")
    if columns < width:
        parts.append(f"{columns} of {width} columns")

    return f"{' and '.join(parts)}; all with --format csv" if parts else None


def _drawing(columns: Sequence[_Column]) -> Table:
    table = plain_table()
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(column.heading, justify=justify, min_width=column.least, overflow="fold")

    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))

    return table


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return _significant(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")

    text = _BETWEEN_ITEMS.join(map(str, value)) if isinstance(value, list) else str(value)

    return as_shown(text)


def _significant(value: float) -> str:
    """Return a number with three significant digits."""
    return _with_places(value, _places(value)) if value else f"{value:g}"


def interval_text(low: float, high: float, difference: float | None) -> str:
    """Return an interval beside what lies in it: no coarser than that, nor than its own width.

    Args:
        low: Its lower end.
        high: Its upper end.
        difference: What is drawn beside it, with three significant digits.
    """
    ends = (low, high)
    width = high - low
    # ends that only rounding tells apart are one number
    is_point = not width > max(map(abs, ends)) * _LEAST_WIDTH
    drawn = [difference or 0.0, *(ends if is_point else (width,))]
    places = max(map(_places, drawn))

    return " to ".join(_with_places(end, places) for end in ends)


def _places(value: float) -> int:
    """Return the decimal places of three significant digits; negative left of the point."""
    return _DIGITS - 1 - floor(log10(abs(value))) if value and isfinite(value) else 0


def _with_places(value: float, places: int) -> str:
    """Return a number with so many decimal places, and an exponent only if they are many."""
    if not isfinite(value) or (not value and places > 2 * _DIGITS):
        return f"{value:g}"
    if places > 2 * _DIGITS:
        return f"{value:.{max(places + floor(log10(abs(value))), 0)}e}"
    return f"{value:z,.{max(places, 0)}f}"
