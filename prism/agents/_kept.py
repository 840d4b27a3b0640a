"""Kept fields of a population file, and names that must be unique in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from prism.agents.social_agent import plain_attributes
from prism.errors import InputError
from prism.files import Record

# in JSON's notation of numbers, so a code such as 007 is a text
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,14})", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,40})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_TRUTH = re.compile(r"true|false", re.IGNORECASE)

_KINDS: Sequence[tuple[re.Pattern[str], Callable[[str], Any]]] = (
    (_WHOLE, int),
    (_NUMBER, float),
    (_TRUTH, lambda cell: cell.lower() == "true"),
)


def require_fields(path: Path, keep: Iterable[str], known: Iterable[str]) -> None:
    """Refuse to keep a field that a file lacks.

    Raises:
        InputError: If there is such a field; the field of the error is ``keep``.
    """
    fields = list(dict.fromkeys(known))
    for name in keep:
        if name not in fields:
            listing = ", ".join(field for field in fields if field)
            raise InputError(f"names {name!r}, but {path} has only {listing}", field="keep")


def kept_values(record: Record, keep: Iterable[str]) -> dict[str, Any]:
    """Return the fields to keep that a JSON record has.

    Raises:
        InputError: If a log could not hold one of them.
    """
    kept = {name: record.fields[name] for name in keep if name in record.fields}
    for name, value in kept.items():
        record.require_writable(name, _texts_in(value))
        with record.at(name):
            plain_attributes({name: value})

    return kept


def kept_cells(records: Sequence[Record], keep: Iterable[str]) -> list[dict[str, Any]]:
    """Return the cells of some columns of a table, as a dict for each row.

    A column is read as numbers or truth values if all cells that are not empty are such; empty
    cells are then None. All other columns hold texts.
    """
    rows: list[dict[str, Any]] = [{} for _ in records]
    for name in keep:
        cells = [record.text(name, "") for record in records]
        for row, value in zip(rows, _column(cells), strict=True):
            row[name] = value

    return rows


def _column(cells: Sequence[str]) -> list[Any]:
    filled = [cell.strip() for cell in cells if cell.strip()]
    for pattern, read in _KINDS:
        if filled and all(pattern.fullmatch(cell) for cell in filled):
            return [read(cell.strip()) if cell.strip() else None for cell in cells]

    return list(cells)


def _texts_in(value: Any) -> list[str]:
    """Return the texts in a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in _texts_in(part)]

    return [text for part in value for text in _texts_in(part)] if isinstance(value, list) else []


class UniqueNames:
    """The names in a file so far, each with its line.

    Args:
        field: The field that holds the name.
    """

    def __init__(self, field: str) -> None:
        self._field = field
        self._lines: dict[str, int] = {}

    def take(self, record: Record) -> str:
        """Return the name of a record.

        Raises:
            InputError: If it is missing, or an earlier record has the same name.
        """
        name = record.text(self._field)
        if name in self._lines:
            problem = f"{name!r} is already used on line {self._lines[name]}"
            raise record.wrong(self._field, problem)

        self._lines[name] = record.line

        return name

    def __contains__(self, name: object) -> bool:
        """Return True if a record had this name."""
        return name in self._lines


def told_apart(names: Sequence[str]) -> list[str]:
    """Make names unique: a repeated one gets its row, counted from 0, as in ``ann#7``.

    The first keeps its name.
    """
    taken, seen = frozenset(names), set[str]()
    unique: list[str] = []

    for row, name in enumerate(names):
        told = name
        while told in (seen if told == name else taken):
            told = f"{told}#{row}"

        seen.add(name)
        unique.append(told)

    return unique
