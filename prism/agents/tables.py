"""Tables of agents, one for each row: their columns, their names and what is kept of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from prism.agents.social_agent import plain_attributes
from prism.errors import InputError
from prism.files import Record, parse_json, read_json_array, read_json_lines
from prism.files._records import MOST_NUMBER, read_csv

_logger = logging.getLogger("prism.agents")


def read_table(path: Path, keep: Sequence[str]) -> list[Record]:
    """Read a table: CSV, JSON Lines, or a JSON array of objects, by the end of its name.

    Args:
        path: The file.
        keep: The columns to keep.

    Raises:
        InputError: If it cannot be read, has no rows, or lacks a column to keep.
    """
    readers: dict[str, Callable[[Path], Iterator[Record]]] = {
        ".jsonl": read_json_lines,
        ".json": read_json_array,
        ".csv": read_csv,
    }
    read = readers.get(path.suffix.lower())
    if read is None:
        problem = f"must end in one of {', '.join(readers)}, got {path.suffix!r}"
        raise InputError(problem, path=path)

    records = list(read(path))
    if not records:
        raise InputError("holds no agents", path=path)

    columns = columns_of(records)
    for name in keep:
        if name not in columns:
            listing = ", ".join(filter(None, columns))
            raise InputError(f"names {name!r}, but {path} has only {listing}", field="keep")

    return records


def columns_of(records: Sequence[Record]) -> list[str]:
    """Return the columns that records have, in the order in which they occur."""
    return list(dict.fromkeys(name for record in records for name in record.fields))


def attributes_of(records: Sequence[Record], keep: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is kept of each record.

    A column of a CSV file is read as numbers or truth values if all cells that are not empty are
    such; empty cells are then None. All its other columns hold texts.

    Raises:
        InputError: If a log could not hold a value of a JSON file.
    """
    is_csv = records[0].path.suffix.lower() == ".csv"
    rows: list[dict[str, Any]] = [{} for _ in records]
    for name in keep:
        having = [each for each in zip(records, rows, strict=True) if name in each[0].fields]
        values = [record.fields[name] for record, _ in having]
        for (record, row), value in zip(having, _column(values) if is_csv else values, strict=True):
            with record.at(name):
                row |= plain_attributes({name: value})

    return rows


def _column(cells: Sequence[str]) -> Sequence[Any]:
    values = [_value(cell.strip()) for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {float, int}:
        return [None if value is None else float(value) for value in values]

    return values if kinds in ({bool}, {int}, {float}) else cells


def _value(cell: str) -> Any:
    """Return a number or truth value in JSON's notation, so a code such as 007 is a text."""
    if not cell:
        return None
    try:
        value = parse_json(cell.lower() if cell.lower() in ("true", "false") else cell)
    except InputError:
        return cell

    return value if isinstance(value, (int, float)) and abs(value) <= MOST_NUMBER else cell


def unique_names(records: Sequence[Record], column: str) -> list[str]:
    """Return the name of each record.

    Raises:
        InputError: If it is missing, or an earlier record has the same name.
    """
    lines: dict[str, int] = {}
    for record in records:
        name = record.text(column)
        if name in lines:
            raise record.wrong(column, f"{name!r} is already used on line {lines[name]}")
        lines[name] = record.line

    return list(lines)


def told_apart(names: Sequence[str]) -> list[str]:
    """Make names unique: a repeated one gets its row, counted from 0, as in ``ann#7``.

    The first keeps its name.
    """
    taken, seen = set(names), set[str]()
    unique = []
    for row, name in enumerate(names):
        told = name
        if name in seen:
            while told in taken:
                told = f"{told}#{row}"
        seen.add(name)
        taken.add(told)
        unique.append(told)

    return unique


def ids_of(records: Sequence[Record]) -> list[str]:
    """Return the id of each agent: its ``agent_id``, or its ``username`` made unique by the row.

    Raises:
        InputError: If it has none, or two agents have one ``agent_id``.
    """
    if any("agent_id" in record.fields for record in records):
        return unique_names(records, "agent_id")

    names = [record.text("username") for record in records]
    ids = told_apart(names)
    if renamed := [told for told, name in zip(ids, names, strict=True) if told != name]:
        _note(records, "repeated user names are told apart by their row", renamed)

    return ids


def note_left_out(records: Sequence[Record], used: Collection[str]) -> None:
    """Note the columns that are not used, on the standard library's logger ``prism.agents``."""
    if others := [name for name in columns_of(records) if name and name not in used]:
        _note(records, "ignored columns (to keep them as attributes, use 'keep')", others)


def _note(records: Sequence[Record], message: str, names: Sequence[str]) -> None:
    _logger.warning("%s: %s: %s", records[0].path, message, brief(names))
