"""Files of agents: one record for each, their columns, their names and what is kept of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from prism.errors import InputError
from prism.files import Record, parse_json, read_json_lines
from prism.files.records import read_csv
from prism.files.source import Source

_CELLS = (".csv", ".tsv")


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
        raise InputError(f"must end in one of {', '.join(readers)}, got {path.suffix!r}", path=path)

    records = [*read(path)]
    if not records:
        raise InputError("holds no agents", path=path)
    return records


def _read_document(path: Path) -> list[Record]:
    """Return the agents of a list, or of a mapping of names, or the one of a character card."""
    source = Source.read(path)
    agents = source.value
    match agents:
        # one character card, or what is no agent
        case {"spec": str()} | {"first_mes": str()} | str() | int() | float() | None:
            agents = [agents]

    records, is_mapping = [], isinstance(agents, dict)
    for key, agent in agents.items() if is_mapping else enumerate(agents):
        fields = {"persona": agent} if isinstance(agent, str) else agent
        if isinstance(fields, dict) and isinstance(fields.get("spec"), str):
            fields = fields.get("data")
        if not isinstance(fields, dict):
            raise source.error("must be an object or a description of the agent", (key,))
        named = {"agent_id": key, **fields} if is_mapping else fields
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

    for column in columns:
        # as near as a typing mistake: two words that merely look alike are kept apart
        if column not in fields and (near := get_close_matches(column.casefold(), fields, 1, 0.8)):
            problem = f"is no field; did you mean {near[0]!r}? If not, give it another name"
            raise InputError(problem, path=path, field=column)


def attributes_of(records: Sequence[Record], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return some columns of each record.

    A column of a CSV file is read as numbers or truth values if all cells that are not empty are
    such; empty cells are then None. All its other columns hold texts.
    """
    rows = [{name: each.fields[name] for name in names if name in each.fields} for each in records]
    for name in names if records[0].path.suffix.lower() in _CELLS else ():
        values = _column([row[name] for row in rows])
        for row, value in zip(rows, values, strict=True):
            row[name] = value

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


def text_of(record: Record, column: str, default: str | None = None) -> str:
    """Return a text, such as an id, which may be a number.

    Raises:
        InputError: If it is something else, or missing and has no default.
    """
    value = record.fields.get(column)
    return str(value) if type(value) is int else record.text(column, default)


def ids_of(records: Sequence[Record], column: str) -> list[str]:
    """Return the id of each agent; user names, and display names, are made unique by the row.

    Raises:
        InputError: If an agent has none, or two agents have one ``agent_id`` or ``id``.
    """
    ids: dict[str, Record] = {}
    for row, record in enumerate(records):
        name = text_of(record, column)
        if name in ids and column in ("agent_id", "id"):
            where = f" on line {ids[name].line}" if ids[name].line else ""
            raise record.wrong(column, f"{name!r} is already used{where}")
        while name in ids:
            name = f"{name}#{row}"
        ids[name] = record
    return list(ids)
