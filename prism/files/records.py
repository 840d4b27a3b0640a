"""Reading untrusted files: records and tables.

Every error names file, line and field.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from itertools import chain
from os import PathLike
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from prism.errors import InputError, PrismError
from prism.files._json import parse_json
from prism.files.durable import is_stream

MAX_FILE_BYTES: int = 1 << 30
"""The largest file that is read."""

Where = tuple[str | int, ...]
"""The place of a value in a document: keys and indices of lists, from the top."""

_LONGEST_PART = 60
_MAX_CELL_CHARACTERS = 1_000_000
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


def key_of(where: Where) -> str:
    """Return a place in a document as messages name it, such as ``cells[0].counts``."""
    key = ""
    for part in where:
        if isinstance(part, int):
            key += f"[{part}]"
        else:
            name = part if len(part) <= _LONGEST_PART else f"{part[:_LONGEST_PART]}..."
            key += f".{name}" if key else name

    return key


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file.

    Args:
        path: The file.
        line: Line on which the record starts, counted from 1; None if its language has no lines.
        fields: The fields and their unchecked values.
        where: The record's place in a document; empty if each line or row is a record.
    """

    path: Path
    line: int | None
    fields: Mapping[str, Any]
    where: Where = ()

    def wrong(self, field: str, problem: str) -> InputError:
        """Return the error for one of the record's fields."""
        name = key_of((*self.where, field))
        return InputError(problem, path=self.path, line=self.line, field=name)

    def text(self, field: str, default: str | None = None) -> str:
        """Return a text; without a default, the field must be present and not blank.

        Raises:
            InputError: If it is missing, blank or not a text.
        """
        value = self.fields.get(field)
        if value is None and default is not None:
            return default
        if value is None:
            raise self.wrong(field, "is missing")
        if not isinstance(value, str):
            raise self.wrong(field, f"must be text, got {brief(value)}")

        self.require_writable(field, [value])
        if default is None and not value.strip():
            raise self.wrong(field, "must not be empty")

        return value

    def require_writable(self, field: str, texts: Iterable[str]) -> None:
        """Refuse texts that a log cannot hold, although escape sequences can produce them.

        Raises:
            InputError: If a text holds a NUL or a lone surrogate.
        """
        for text in texts:
            if _UNWRITABLE.search(text):
                raise self.wrong(field, f"contains a NUL or half a surrogate pair: {brief(text)}")

    @contextmanager
    def at(self, field: str) -> Iterator[None]:
        """Convert any prism error inside the block into one that names this field."""
        try:
            yield
        except PrismError as error:
            raise self.wrong(field, str(error)) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Check a file before it is read, and convert any failure of reading into one error.

    Raises:
        InputError: If the file is missing, empty, too large, a folder, unreadable or not UTF-8.
    """
    try:
        if path.is_dir():
            raise InputError("is a folder, not a file", path=path)

        if is_stream(path):
            raise InputError("is a pipe or device, but must be read twice: give a file", path=path)

        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise InputError(f"is larger than {MAX_FILE_BYTES >> 20} MiB: split it", path=path)
        if size == 0:
            raise InputError("is empty", path=path)

        yield
    except FileNotFoundError:
        raise InputError("there is no such file", path=path) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 text ({error.reason}): save it as UTF-8", path=path
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=path) from None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        InputError: If it cannot be read.
    """
    with reading(path), path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read_json_lines(path: Path) -> Iterator[Record]:
    """Yield the records of a JSON Lines file, one object per line; blank lines are skipped.

    Raises:
        InputError: If a line is not valid JSON or not an object.
    """
    with path.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue

            value = parse_json(line, path=path, line=number)
            if not isinstance(value, dict):
                raise InputError("must be a JSON object", path=path, line=number)
            yield Record(path, number, value)


# a name of words; a separator that is none of the three makes one column of all
_ONE_COLUMN = re.compile(r"[\w .-]*")


def read_csv(path: Path) -> Iterator[Record]:
    """Yield the rows of a table as records of texts; empty rows are skipped.

    Args:
        path: The file; its first row is the header, in which commas, semicolons or tabs separate.

    Raises:
        InputError: If it is not valid CSV, a column's name appears twice, or a row has more or
            fewer cells than the header.
    """
    # The limit applies to the whole process; a cell of tweets can exceed the default.
    previous_limit = csv.field_size_limit(_MAX_CELL_CHARACTERS)
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            first = next(lines, "")
            separator = max(",;\t", key=first.count)
            rows = csv.reader(chain([first], lines), delimiter=separator, strict=True)
            header = next(rows, [])
            for name, times in Counter(filter(None, header)).items():
                if times > 1:
                    raise InputError("appears twice in the header", path=path, line=1, field=name)
            if len(header) == 1 and not _ONE_COLUMN.fullmatch(header[0]):
                problem = f"separate columns by commas, semicolons or tabs, got {first.strip()!r}"
                raise InputError(problem, path=path, line=1)
            line = rows.line_num + 1
            for row in rows:
                if any(map(str.strip, row)):
                    yield _row(path, line, header, row)
                line = rows.line_num + 1
    except csv.Error as error:
        problem = f"the row from this line on is not valid CSV: {error}"
        raise InputError(problem, path=path, line=line) from None
    finally:
        csv.field_size_limit(previous_limit)


def _row(path: Path, line: int, header: Sequence[str], row: Sequence[str]) -> Record:
    if len(row) != len(header):
        problem = f"has {len(row)} cells, but the header has {len(header)}"
        raise InputError(problem, path=path, line=line)

    return Record(path, line, dict(zip(header, row, strict=True)))


# Python's representation of bytes that are not UTF-8 (PEP 383)
_UNDECODED = re.compile("[\udc80-\udcff]")


def printable_path(path: PathLike[str] | str) -> str:
    r"""Return a path, or a text with one, with ``\xe9`` for bytes that are not UTF-8."""
    return _UNDECODED.sub(lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", str(path))


def distinct_ends(paths: Sequence[Path]) -> list[str]:
    """Return the shortest distinct ends of paths, for headings and messages."""
    whole = [path.absolute().parts for path in paths]
    for length in range(1, max(map(len, whole)) + 1):
        ends = [printable_path(Path(*parts[-length:])) for parts in whole]
        if len(set(ends)) == len(ends):
            return ends

    return [f"{printable_path(path)} #{number}" for number, path in enumerate(paths, start=1)]
