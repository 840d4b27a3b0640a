"""Files of agents: one record for each, their columns, their names and what is kept of them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from prism.agents.social_agent import plain_attributes
from prism.errors import InputError
from prism.files import Record, parse_json, read_json_array, read_json_lines
from prism.files._records import MOST_NUMBER, read_csv
from prism.files._source import Source

_logger = logging.getLogger("prism.agents")


def read_table(path: Path, keep: Sequence[str]) -> list[Record]:
    """Read a file of agents, by the end of its name.

    Args:
        path: The file: CSV, JSON Lines, a JSON array of objects, or a mapping of names to agents or
            their descriptions, in JSON or YAML. A character card, or a list of them, is read too.
        keep: The columns to keep.

    Raises:
        InputError: If it cannot be read, has no agents, or lacks a column to keep.
    """
    readers: dict[str, Callable[[Path], Iterable[Record]]] = {
        ".jsonl": read_json_lines,
        ".json": _read_json,
        ".csv": read_csv,
        ".yaml": _read_mapping,
        ".yml": _read_mapping,
    }
    read = readers.get(path.suffix.lower())
    if read is None:
        problem = f"must end in one of {', '.join(readers)}, got {path.suffix!r}"
        raise InputError(problem, path=path)

    records = [_card(record) for record in read(path)]
    if not records:
        raise InputError("holds no agents", path=path)

    columns = columns_of(records)
    for name in keep:
        if name not in columns:
            listing = ", ".join(filter(None, columns))
            raise InputError(f"names {name!r}, but {path} has only {listing}", field="keep")

    return records


def _read_json(path: Path) -> Iterable[Record]:
    with path.open(encoding="utf-8-sig") as file:
        first = next(filter(None, map(str.strip, file)), "")

    return _read_mapping(path) if first.startswith("{") else read_json_array(path)


def _read_mapping(path: Path) -> list[Record]:
    """Return the agents of a mapping of names, or the one of a character card."""
    source = Source.read(path)
    agents = source.value
    if not isinstance(agents, dict):
        raise source.error("must be a mapping of names to agents, or a JSON array of objects")
    if any(isinstance(agents.get(key), str) for key in ("spec", "first_mes")):
        return [Record(path, 1, agents)]

    records = []
    for name, agent in agents.items():
        fields = {"persona": agent} if isinstance(agent, str) else agent
        if not isinstance(fields, dict):
            raise source.error("must be an object or a description of the agent", (name,))
        records.append(Record(path, source.line_of((name,)) or None, {"agent_id": name, **fields}))

    return records


def _card(record: Record) -> Record:
    """Return a character card as a record of its fields, with names in place of its macros."""
    fields = record.fields
    if "spec" in fields and isinstance(fields.get("data"), dict):
        fields = fields["data"]
    elif "first_mes" not in fields:
        return record

    names = {"char": Record(record.path, record.line, fields).text("name"), "user": "the user"}
    filled = {
        key: _MACRO.sub(lambda macro: names[macro[1].lower()], value)
        if isinstance(value, str)
        else value
        for key, value in fields.items()
    }
    return Record(record.path, record.line, filled)


_MACRO = re.compile(r"\{\{(char|user)\}\}", re.IGNORECASE)


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
    lines: dict[str, int | None] = {}
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
    """Return the id of each agent: its ``agent_id``, or its user name, made unique by the row.

    Agents without a ``username`` have their ``name``.

    Raises:
        InputError: If it has none, or two agents have one ``agent_id``.
    """
    if any("agent_id" in record.fields for record in records):
        return unique_names(records, "agent_id")

    names = [record.text(_name_column(record)) for record in records]
    ids = told_apart(names)
    if renamed := [told for told, name in zip(ids, names, strict=True) if told != name]:
        _note(records, "repeated user names are told apart by their row", renamed)

    return ids


def _name_column(record: Record) -> str:
    return "name" if "name" in record.fields and "username" not in record.fields else "username"


def note_left_out(records: Sequence[Record], used: Collection[str]) -> None:
    """Note the columns that are not used, on the standard library's logger ``prism.agents``."""
    if others := [name for name in columns_of(records) if name and name not in used]:
        _note(records, "ignored columns (to keep them as attributes, use 'keep')", others)


def _note(records: Sequence[Record], message: str, names: Sequence[str]) -> None:
    _logger.warning("%s: %s: %s", records[0].path, message, brief(names))
