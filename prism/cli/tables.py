"""Writing tables: for people in a terminal, and as CSV, JSON or Parquet for programs."""

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
from typing import IO, TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prism.errors import InputError

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 40
"""Rows of a table that are drawn; a program gets all of them."""

_WIDTH_IN_FILE = 160
_LEAST_TEXT = 16
_DIGITS = 3
_BETWEEN_ITEMS = ", "


class TableFormat(StrEnum):
    """What a table can be written as."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def choose_format(given: TableFormat | None, out: Path | None) -> TableFormat:
    """Find the format that is meant: the given one, else that of the file's name, else a drawn table.

    Raises:
        InputError: If Parquet would go to a terminal.
    """
    suffix = "" if out is None else out.suffix.removeprefix(".")
    chosen = given or (TableFormat(suffix) if suffix in set(TableFormat) else TableFormat.TABLE)
    if chosen is TableFormat.PARQUET and out is None and sys.stdout.isatty():
        raise InputError("--format parquet is not for a terminal: name a file with --out, or pipe it on")
    return chosen


def write(
    table: pl.DataFrame | pl.LazyFrame,
    as_format: TableFormat,
    out: Path | None,
    shown: Sequence[str],
    hint: str | None = None,
) -> None:
    """Write a table.

    Args:
        table: The table; a query is written batch by batch.
        as_format: What to write it as.
        out: File to write to; None means standard output.
        shown: Columns to draw, of those that there are.
        hint: What to say below a drawn table; by default what it leaves out.

    Raises:
        InputError: If the file cannot be written.
    """
    if as_format is TableFormat.TABLE:
        _draw(table, out, shown, hint)
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
    """Give a table in parts of bounded size; the first may be empty, but there is one."""
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
    """Make lists text, for which CSV has no room."""
    import polars as pl

    lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
    return [pl.col(name).list.join(_BETWEEN_ITEMS) for name in lists]


def _write_json(table: pl.DataFrame | pl.LazyFrame, file: IO[bytes]) -> None:
    """Write one array of objects, one a line."""
    before = b"["
    for batch in _batches(table):
        if batch.height:
            rows = batch.write_ndjson().rstrip("\n").replace("\n", ",\n")
            file.write(before + b"\n" + rows.encode())
            before = b","
    file.write(b"[]\n" if before == b"[" else b"\n]\n")


def _write_parquet(table: pl.DataFrame | pl.LazyFrame, file: IO[bytes]) -> None:
    """Write by way of a temporary file, since Parquet is finished at its end, and polars' faults of writing vary."""
    with TemporaryFile() as whole:
        table.lazy().sink_parquet(whole, maintain_order=True)
        whole.seek(0)
        copyfileobj(whole, file)


def _draw(table: pl.DataFrame | pl.LazyFrame, out: Path | None, shown: Sequence[str], hint: str | None) -> None:
    """Draw the first rows on a terminal, or all of them in a file."""
    frame = table.lazy().head(MOST_ROWS + 1).collect() if out is None else table.lazy().collect()
    rows = frame.head(MOST_ROWS) if out is None else frame
    columns = [name for name in frame.columns if name in shown or name == "run"]
    left_out = hint or _left_out(table, frame, rows.height, len(columns))
    with _console(out) as console:
        console.print(_drawing(rows.select(columns)))
        if left_out:
            console.print(Text(left_out))


@contextmanager
def _console(out: Path | None) -> Iterator[Console]:
    if out is None:
        yield Console()
        return
    with _opened(out) as file, TextIOWrapper(file, encoding="utf-8") as text:
        yield Console(file=text, width=_WIDTH_IN_FILE)


def _left_out(table: pl.DataFrame | pl.LazyFrame, frame: pl.DataFrame, rows: int, columns: int) -> str | None:
    """Say what is not drawn, and how to get it."""
    parts = []
    if rows < frame.height:
        height = getattr(table, "height", None)
        parts.append(f"the first {rows} rows" + (f" of {height:,}" if height else ""))
    if columns < frame.width:
        parts.append(f"{columns} of {frame.width} columns")
    return f"{' and '.join(parts)}; all with --format csv" if parts else None


def _drawing(frame: pl.DataFrame) -> Table:
    """Draw all rows; numbers are never shortened, and headings break between words."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    rows = [[_cell(value) for value in row] for row in frame.iter_rows()]
    for place, (name, kind) in enumerate(frame.schema.items()):
        heading = name.replace("_", " ")
        widest = max([len(row[place]) for row in rows], default=0)
        least = max(widest if kind.is_numeric() else min(widest, _LEAST_TEXT), *map(len, heading.split()))
        lines = "\n".join(wrap(heading, least))  # by hand: rich would widen the column before it breaks the heading
        table.add_column(lines, justify="right" if kind.is_numeric() else "left", min_width=least, overflow="fold")
    for row in rows:
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
    return "".join(character if character.isprintable() else " " for character in text)


def _significant(value: float) -> str:
    """Give a number with three significant digits."""
    if not value or not isfinite(value):
        return f"{value:g}"
    places = _DIGITS - 1 - floor(log10(abs(value)))
    return f"{value:.{_DIGITS - 1}e}" if places > 2 * _DIGITS else f"{value:,.{max(places, 0)}f}"
