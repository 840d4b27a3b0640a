"""Reading tables of comma-separated values that somebody else wrote."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from prism.errors import InputError
from prism.files._records import Record, lines_of

_MAX_CELL_CHARACTERS = 16_000_000
_MAX_ROW_CHARACTERS = 64_000_000


def read_csv(path: Path, check_header: Callable[[list[str]], object]) -> Iterator[Record]:
    """Yield the rows of a table as records of texts; empty rows are skipped.

    Args:
        path: The file; its first row is the header.
        check_header: Called with the header; raises if the table cannot be used.

    Raises:
        InputError: If it is not valid CSV, or a row has more or fewer cells than the header.
    """
    # The limit is one for the whole process; a cell of tweets can be longer than the default.
    previous_limit = csv.field_size_limit(_MAX_CELL_CHARACTERS)
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(lines_of(file, path, _MAX_ROW_CHARACTERS), strict=True)
            header = next(rows, [])
            check_header(header)

            line = rows.line_num + 1
            for row in rows:
                if row:
                    yield _record(path, line, header, row)
                line = rows.line_num + 1
    except csv.Error as error:
        problem = f"the row from this line on is not valid CSV: {error}"
        raise InputError(problem, path=path, line=line) from None
    finally:
        csv.field_size_limit(previous_limit)


def _record(path: Path, line: int, header: Sequence[str], row: Sequence[str]) -> Record:
    if len(row) != len(header):
        problem = f"has {len(row)} cells, but the header has {len(header)}"
        raise InputError(problem, path=path, line=line)

    return Record(path, line, dict(zip(header, row, strict=True)))
