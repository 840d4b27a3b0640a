"""Writing tables: to read in a terminal, and as CSV, JSON or Parquet for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from io import TextIOWrapper
from math import floor, isfinite, log10
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prism.cli._screen import plain_table
from prism.drawing import printable
from prism.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 40
"""Rows of a drawn table; the other formats have all of them."""

_WIDTH_IN_FILE = 160
_LEAST_TEXT = 16
_BETWEEN_COLUMNS = 2
_DIGITS = 3
_BETWEEN_ITEMS = ", "


class TableFormat(StrEnum):
    """The formats of a table."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def choose_format(given: TableFormat | None, out: Path | None) -> TableFormat:
    """Return the given format, else that of the file's name, else a drawn table.

    Raises:
        InputError: If Parquet would go to a terminal.
    """
    suffix = "" if out is None else out.suffix.removeprefix(".")
    by_name = TableFormat(suffix) if suffix in set(TableFormat) else TableFormat.TABLE
    chosen = given or by_name
    if chosen is TableFormat.PARQUET and out is None and sys.stdout.isatty():
        raise InputError(
            "--format parquet is not for a terminal: name a file with --out, or pipe it on"
        )

    return chosen


def write(
    table: pl.DataFrame | pl.LazyFrame,
    as_format: TableFormat,
    out: Path | None,
    shown: Sequence[str],
    hint: str | None = None,
    total: int | None = None,
) -> None:
    """Write a table.

    Args:
        table: The table; a query is written batch by batch.
        as_format: Format to write.
        out: File to write to; None means standard output.
        shown: Columns to draw, if the table has them.
        hint: Line below a drawn table; by default it says what is left out.
        total: Number of all rows, if the table has only the first of them.

    Raises:
        InputError: If the file cannot be written.
    """
    if as_format is TableFormat.TABLE:
        _draw(table, out, shown, hint, total)
        return

    with _opened(out) as file:
        if as_format is TableFormat.CSV:
            _write_csv(table, file)
        elif as_format is TableFormat.JSON:
            _write_json(table, file)
        else:
            _write_parquet(table, file)


@contextmanager
def _opened(out: Path | None) -> Iterator[IO[bytes]]:
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return

    try:
        file = out.open("wb")
    except OSError as error:
        raise InputError(f"cannot be written to: {error.strerror}", path=out) from None

    with file:
        yield file


def _batches(table: pl.DataFrame | pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Return a table in parts of bounded size, at least one, which may be empty."""
    import polars as pl

    if isinstance(table, pl.DataFrame):
        yield table
        return

    yield pl.DataFrame(schema=table.collect_schema())
    yield from table.collect_batches(maintain_order=True)


def _write_csv(table: pl.DataFrame | pl.LazyFrame, file: IO[bytes]) -> None:
    for number, batch in enumerate(_batches(table)):
        flat = batch.with_columns(_flattened(batch))
        file.write(flat.write_csv(include_header=number == 0).encode())


def _flattened(table: pl.DataFrame) -> list[pl.Expr]:
    """Turn lists into texts, since CSV has no lists."""
    import polars as pl

    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    return [pl.col(name).list.join(_BETWEEN_ITEMS) for name in lists]


def _write_json(table: pl.DataFrame | pl.LazyFrame, file: IO[bytes]) -> None:
    """Write an array of objects, one a line."""
    before = b"["
    for batch in _batches(table):
        if batch.height:
            rows = batch.write_ndjson().rstrip("\n").replace("\n", ",\n")
            file.write(before + b"\n" + rows.encode())
            before = b","

    file.write(b"[]\n" if before == b"[" else b"\n]\n")


def _write_parquet(table: pl.DataFrame | pl.LazyFrame, file: IO[bytes]) -> None:
    # By way of a temporary file: Parquet is written in several places, and polars' errors of
    # writing vary.
    with TemporaryFile() as whole:
        table.lazy().sink_parquet(whole, maintain_order=True)
        whole.seek(0)
        copyfileobj(whole, file)


def _draw(
    table: pl.DataFrame | pl.LazyFrame,
    out: Path | None,
    shown: Sequence[str],
    hint: str | None,
    total: int | None,
) -> None:
    """Draw the first rows on a terminal, or all rows in a file, in as many columns as fit."""
    frame = table.lazy().head(MOST_ROWS + 1).collect() if out is None else table.lazy().collect()
    rows = frame.head(MOST_ROWS) if out is None else frame
    named = [name for name in frame.columns if name in shown or name == "run"]
    with _console(out) as console:
        columns = _fitting([_Column(rows[name]) for name in named], console.width)
        console.print(_drawing(columns))
        total = total or getattr(table, "height", None)
        if left_out := hint or _left_out(frame, rows.height, len(columns), total):
            console.print(Text(left_out))


class _Column:
    """A column as it is drawn: numbers are never shortened, and headings break between words.

    Attributes:
        cells: Its cells.
        least: The width it needs.
        heading: Its heading, broken into lines.
        is_number: Whether it has numbers.
    """

    def __init__(self, values: pl.Series) -> None:
        heading = values.name.replace("_", " ")
        self.cells = [_cell(value) for value in values.to_list()]
        widest = max(map(len, self.cells), default=0)
        self.is_number = values.dtype.is_numeric()
        least = widest if self.is_number else min(widest, _LEAST_TEXT)
        self.least = max(least, *map(len, heading.split()))
        # Broken here: rich would widen the column before it breaks a heading.
        self.heading = "\n".join(wrap(heading, self.least))


def _fitting(columns: list[_Column], width: int) -> list[_Column]:
    """Leave out the last columns if there is no room for all."""
    fitting = list(columns)
    while len(fitting) > 1 and sum(column.least + _BETWEEN_COLUMNS for column in fitting) >= width:
        fitting.pop()

    return fitting


@contextmanager
def _console(out: Path | None) -> Iterator[Console]:
    if out is None:
        yield Console()
        return

    with _opened(out) as file, TextIOWrapper(file, encoding="utf-8") as text:
        yield Console(file=text, width=_WIDTH_IN_FILE)


def _left_out(frame: pl.DataFrame, rows: int, columns: int, total: int | None) -> str | None:
    """Return what is not drawn, and how to get it."""
    parts = []
    if rows < (total or frame.height):
        parts.append(f"the first {rows:,} rows" + (f" of {total:,}" if total else ""))
    if columns < frame.width:
        parts.append(f"{columns} of {frame.width} columns")

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

    return printable(text)


def _significant(value: float) -> str:
    """Return a number with three significant digits."""
    if not value or not isfinite(value):
        return f"{value:g}"
    places = _DIGITS - 1 - floor(log10(abs(value)))
    return f"{value:.{_DIGITS - 1}e}" if places > 2 * _DIGITS else f"{value:,.{max(places, 0)}f}"
