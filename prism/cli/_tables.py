"""Tables: drawn on a terminal, or as CSV, JSON or Parquet for programs."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from prism.cli._screen import Screen, are_numbers, cell, note, print_table, say, write_bytes
from prism.errors import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from prism.analysis import Log

interrupts: list[int] = []
"""The signals by which the user stopped a query: DuckDB raises an error of its own for each."""

_MOST_ROWS = 40
_LEAST_TEXT = 16
_COPIES = {
    ".csv": "format csv, header true",
    ".json": "format json, array true",
    ".parquet": "format parquet",
}


def open_logs(runs: Sequence[Path], *, all_runs: bool = False) -> Log:
    """Open logs, and print the notes on them to standard error.

    Args:
        runs: The logs.
        all_runs: As for `prism.analysis.read_log`.

    Raises:
        InputError: If none of them has an event of prism.
    """
    from prism.analysis import read_log

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _notice)
    opened = read_log(*runs, all_runs=all_runs)
    notes = list(opened.notes)
    reason = None if opened.runs else notes.pop()
    for each in notes:
        note(str(each))
    if reason is not None:
        raise InputError(reason.message, path=reason.path, line=reason.line)
    return opened


def _notice(number: int, frame: Any) -> None:
    """Keep in `interrupts` that the user pressed Ctrl-C."""
    interrupts.append(number)
    signal.default_int_handler(number, frame)


def write_table(
    table: DuckDBPyRelation,
    out: Path | None,
    reads: Sequence[Path] = (),
    *,
    as_json: bool = False,
    columns: Sequence[str] | None = None,
    others: Mapping[str, Callable[[], bytes]] = {},
) -> None:
    """Draw the first rows of a table, or write all of them.

    Args:
        table: The table.
        out: File to write to, by its name CSV, JSON or Parquet; ``-`` is CSV on standard output.
        reads: The files that the table is made from.
        as_json: Whether to write JSON to standard output.
        columns: Columns to draw, if the table has many others.
        others: Other formats of the file, by the end of its name.

    Raises:
        InputError: If the table cannot be computed, or the file has another kind of name.
    """
    import duckdb

    try:
        if out is not None and str(out) != "-":
            writers = {kind: partial(_copied, table, kind, out) for kind in _COPIES} | dict(others)
            if out.suffix not in writers:
                raise InputError(f"must end with {', '.join(writers)}", path=out)
            write_bytes(writers[out.suffix](), out, reads)
        if as_json or str(out) == "-":
            write_bytes(_copied(table, ".json" if as_json else ".csv", None), None)
        elif out is None:
            draw(table.columns, table.limit(_MOST_ROWS + 1).fetchall(), columns)
    except duckdb.Error as error:
        raise InputError(str(error).partition("\n")[0], field="query") from None


def records_of(table: DuckDBPyRelation) -> list[dict[str, Any]]:
    """Return the rows of a table as plain data."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]


def draw(
    names: Sequence[str], rows: Sequence[Sequence[Any]], columns: Sequence[str] | None = None
) -> None:
    """Draw the first rows in as many columns as there is room for, and say what is left out."""
    if not rows:
        note("the table has no rows")
        return
    first = rows[:_MOST_ROWS]
    chosen = [name for name in names if columns is None or name in columns or name == "run"]
    drawn: list[str] = []
    room = Screen().width
    for name in chosen:
        values = [row[names.index(name)] for row in first]
        widest = max(len(cell(value)) for value in values)
        least = widest if are_numbers(values) else min(widest, _LEAST_TEXT)
        room -= max(least, *map(len, name.split("_"))) + 2
        if room < 0 and drawn:
            break
        drawn.append(name)

    cells = ([row[names.index(name)] for name in drawn] for row in first)
    print_table(cells, *(name.replace("_", " ") for name in drawn))
    parts = [f"the first {_MOST_ROWS} rows"] * (len(rows) > _MOST_ROWS)
    parts += [f"{len(drawn)} of {len(names)} columns"] * (len(drawn) < len(names))
    if parts:
        say(f"{' and '.join(parts)}; all with --json")


def draw_rows(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> None:
    """Draw rows of plain data, without columns that are empty."""
    every = names or dict.fromkeys(name for row in rows for name in row)
    kept = [name for name in every if any(row.get(name) not in (None, "") for row in rows)]
    draw(kept, [[row.get(name) for name in kept] for row in rows])


def _copied(table: DuckDBPyRelation, kind: str, out: Path | None) -> bytes:
    """Return all rows in a format for a file; lists become texts in CSV."""
    import duckdb

    names = [f'"{name}"' for name in table.columns]
    if kind == ".csv":
        names = [
            f"array_to_string({name}, ', ') as {name}" if str(each).endswith("[]") else name
            for name, each in zip(names, table.types, strict=True)
        ]
    # by way of a temporary file, since DuckDB writes only to names
    with TemporaryDirectory() as folder:
        whole = Path(folder) / "table"
        rows = f"select {', '.join(names)} from rows"
        try:
            table.query("rows", f"copy ({rows}) to '{whole}' ({_COPIES[kind]})")
        except duckdb.IOException as error:  # as when the disk is full
            raise OSError(errno.EIO, str(error), str(out or "output")) from error
        return whole.read_bytes()
