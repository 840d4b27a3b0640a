"""Files of agents: one record for each, their columns, their names and what is kept of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from reprlib import repr as brief
from typing import Any

import orjson

from prism.errors import InputError
from prism.files import Record, parse_json, read_json_lines
from prism.files.records import read_csv
from prism.files.source import Source

_logger = logging.getLogger("prism.agents")

_CELLS = (".csv", ".tsv")
_OF_CARDS = ("spec", "first_mes")


def read_table(path: Path) -> list[Record]:
    """Read a file of agents, by the end of its name.

    Args:
        path: The file: CSV or TSV, JSON Lines, a JSON array of objects, or a mapping of names to
            agents or their descriptions, in JSON or YAML. A character card, or a list of them, is
            read too.

    Raises:
        InputError: If it cannot be read, or has no agents.
    """
    readers: dict[str, Callable[[Path], Iterable[Record]]] = {
        ".jsonl": read_json_lines,
        **dict.fromkeys((".json", ".yaml", ".yml"), _read_document),
        **dict.fromkeys(_CELLS, read_csv),
    }
    read = readers.get(path.suffix.lower())
    if read is None:
        problem = f"must end in one of {', '.join(readers)}, got {path.suffix!r}"
        raise InputError(problem, path=path)

    records = [*read(path)]
    if not records:
        raise InputError("holds no agents", path=path)
    return records


def _read_document(path: Path) -> list[Record]:
    """Return the agents of a list, or of a mapping of names, or the one of a character card."""
    source = Source.read(path)
    agents = source.value
    if isinstance(agents, dict) and any(isinstance(agents.get(key), str) for key in _OF_CARDS):
        agents = [agents]
    if not isinstance(agents, (dict, list)):
        raise source.error("must be a mapping of names to agents, or an array of objects")

    records = []
    for key, agent in agents.items() if isinstance(agents, dict) else enumerate(agents):
        fields = {"persona": agent} if isinstance(agent, str) else agent
        if isinstance(fields, dict) and isinstance(fields.get("spec"), str):
            fields = fields.get("data")
        if not isinstance(fields, dict):
            raise source.error("must be an object or a description of the agent", (key,))
        named = fields if isinstance(agents, list) else {"agent_id": key, **fields}
        records.append(Record(path, source.line_of((key,)) or None, named, (key,)))
    return records


def columns_of(records: Sequence[Record]) -> list[str]:
    """Return the columns that records have, in the order in which they occur.

    A column without a name, such as the rows' numbers that pandas writes, is none.
    """
    return list(dict.fromkeys(name for record in records for name in record.fields if name))


def refuse_misspelt(path: Path, columns: Iterable[str], fields: Collection[str]) -> None:
    """Refuse a column that is nearly a field, which would be drawn or have its default.

    Raises:
        InputError: If there is one.
    """
    # loaded only for a table: it costs as much as all of this room
    from difflib import get_close_matches

    folded = {field.casefold(): field for field in fields}
    for column in columns:
        if column in fields:
            continue
        # as near as a typing mistake: two words that merely look alike are kept apart
        for near in get_close_matches(column.casefold(), folded, n=1, cutoff=0.8):
            raise InputError(
                f"is no field; did you mean {folded[near]!r}? If not, give it another name",
                path=path,
                field=column,
            )


def attributes_of(records: Sequence[Record], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return some columns of each record.

    A column of a CSV file is read as numbers or truth values if all cells that are not empty are
    such; empty cells are then None. All its other columns hold texts.

    Raises:
        InputError: If a log could not hold a value of a JSON file.
    """
    rows = [{name: each.fields[name] for name in names if name in each.fields} for each in records]
    for name in names if records[0].path.suffix.lower() in _CELLS else ():
        values = _column([row[name] for row in rows])
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    for record, row in zip(records, rows, strict=True):
        for name, value in row.items():
            try:
                orjson.dumps(value)
            except TypeError as error:
                raise record.wrong(name, f"cannot be written to a log: {error}") from None

    return rows


def _column(cells: Sequence[str]) -> Sequence[Any]:
    """Return numbers or truth values if all cells are such in JSON, so a code as 007 is a text."""
    try:
        # JSON writes truth in small letters, other programs in any
        values = [parse_json(cell.lower()) if cell.strip() else None for cell in cells]
    except InputError:
        return cells
    kinds = {type(value) for value in values if value is not None}
    return values if kinds and (kinds <= {int, float} or kinds == {bool}) else cells


def id_column(columns: Iterable[str]) -> str | None:
    """Return the column of the agents' ids, if there is one; that of OASIS is ``username``."""
    return next((name for name in ("agent_id", "username", "id") if name in columns), None)


def ids_of(records: Sequence[Record], column: str) -> list[str]:
    """Return the id of each agent; user names, and display names, are made unique by the row.

    Raises:
        InputError: If an agent has none, or two agents have one ``agent_id`` or ``id``.
    """
    lines: dict[str, int | None] = {}
    renamed = []
    for row, record in enumerate(records):
        value = record.fields.get(column)
        name = str(value) if type(value) is int else record.text(column)
        if name in lines:
            if column in ("agent_id", "id"):
                where = f" on line {lines[name]}" if lines[name] else ""
                raise record.wrong(column, f"{name!r} is already used{where}")
            while name in lines:
                name = f"{name}#{row}"
            renamed.append(name)
        lines[name] = record.line
    if renamed:
        message = "%s: repeated user names are told apart by their row: %s"
        _logger.warning(message, records[0].path, brief(renamed))
    return list(lines)
