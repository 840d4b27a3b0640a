"""Agents from a table: each row is an agent, and its columns are fields or attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from prism.agents._kept import UniqueNames, kept_cells, kept_values, require_fields, told_apart
from prism.agents._oasis import note_left_out
from prism.errors import InputError, UnknownStateError
from prism.files import Record, read_json_array, read_json_lines, reading
from prism.files._records import read_csv
from prism.statechart.states import state_text
from prism.worlds._agent import Agent
from prism.worlds._fields import check_value, hints_of, read_field
from prism.worlds._world import World, kinds_of

_KIND, _STATE = "kind", "state"
_IDS = ("agent_id", "username")
_NAMES = ("name", "realname")


class AgentTable:
    """A table of agents, one per row: CSV, JSON Lines, or a JSON array of objects.

    The column ``agent_id`` (or ``username``) holds their ids, and ``name`` (or ``realname``) their
    names. If the world has several kinds of agents, ``kind`` names the class of each.

    Args:
        path: The file, which ends in ``.csv``, ``.jsonl`` or ``.json``.
        keep: Columns to keep. A column with the name of a field sets the field, converted to its
            type, and an empty cell leaves the default. ``state`` is the state in which the agent
            begins. All other columns become `Agent.attributes`.

    Attributes:
        path: The file.
        keep: Columns that are kept.

    Raises:
        InputError: If the file cannot be read, a column is missing, or two agents have the same id;
            the message names file, line and column.
    """

    def __init__(self, path: Path | str, keep: Iterable[str] = ()) -> None:
        self.path: Path = Path(path)
        self.keep: tuple[str, ...] = tuple(dict.fromkeys(keep))
        with reading(self.path):
            self._records = _records(self.path, self.keep)

        if not self._records:
            raise InputError("holds no agents", path=self.path)

        self._ids = _ids(self._records)
        self._columns = list(dict.fromkeys(name for row in self._records for name in row.fields))
        others = [name for name in self._columns if name not in (*_IDS, *_NAMES, _KIND, *self.keep)]
        note_left_out(self.path, others)

    def __len__(self) -> int:
        """Return the number of agents."""
        return len(self._records)

    def agents_of(self, world: World[Any]) -> list[Any]:
        """Make the agents of a world.

        With a column ``kind``, they are made from the table alone. Otherwise, the world's
        `World.populate` makes one agent per row, and each takes the values of its row.

        Raises:
            InputError: If a kind is unknown, a cell cannot be converted to its field's type, or the
                world makes a different number of agents.
        """
        made = self._made(world)
        known = {name for agent in made for name in type(agent).fields}
        beyond = self._attributes([name for name in self.keep if name not in known])
        for agent, record, agent_id, attributes in zip(
            made, self._records, self._ids, beyond, strict=True
        ):
            if _STATE in self.keep:
                attributes.pop(_STATE, None)
                _begin(agent, record)
            given = _fields_of(record, type(agent), self.keep)
            agent._take({**given, **_called(record, agent_id)}, attributes)

        return made

    def _made(self, world: World[Any]) -> list[Any]:
        kinds = kinds_of(type(world))
        if len(kinds) > 1 and _KIND in self._columns:
            return [_kind_of(record, kinds)() for record in self._records]

        made = list(world._prism_populated(len(self)))
        if others := [agent for agent in made if not isinstance(agent, Agent)]:
            raise InputError(
                f"is for the agents of a world; {type(others[0]).__name__} cannot use it",
                path=self.path,
            )
        if len(made) != len(self):
            raise InputError(
                f"has {len(self):,} rows, but {type(world).__name__}.populate made {len(made):,} "
                "agents: make it return as many as it is asked for",
                path=self.path,
            )

        return made

    def _attributes(self, names: Sequence[str]) -> list[dict[str, Any]]:
        if self.path.suffix.lower() == ".csv":
            return kept_cells(self._records, names)

        return [kept_values(record, names) for record in self._records]


def _records(path: Path, keep: Sequence[str]) -> list[Record]:
    readers: Mapping[str, Callable[[Path], Iterator[Record]]] = {
        ".csv": lambda path: read_csv(path, lambda header: _check_header(path, header, keep)),
        ".jsonl": read_json_lines,
        ".json": read_json_array,
    }
    read = readers.get(path.suffix.lower())
    if read is None:
        problem = f"must end in one of {', '.join(readers)}, got {path.suffix!r}"
        raise InputError(problem, path=path)

    found = list(read(path))
    if found and path.suffix.lower() != ".csv":
        require_fields(path, keep, (name for record in found for name in record.fields))

    return found


def _check_header(path: Path, header: Sequence[str], keep: Sequence[str]) -> None:
    require_fields(path, keep, header)
    for name in (*_IDS, *_NAMES, _KIND, *keep):
        if header.count(name) > 1:
            raise InputError("this column appears twice", path=path, line=1, field=name)


def _ids(records: Sequence[Record]) -> list[str]:
    """Return the id of each record, empty if it has none."""
    if any("agent_id" in record.fields for record in records):
        ids = UniqueNames("agent_id")
        return [ids.take(record) for record in records]
    if any("username" in record.fields for record in records):
        return told_apart([record.text("username") for record in records])

    return [""] * len(records)


def _kind_of(record: Record, kinds: Sequence[type[Agent]]) -> type[Agent]:
    named = record.text(_KIND)
    for kind in kinds:
        if named.strip().lower() == kind.__name__.lower():
            return kind

    listed = ", ".join(kind.__name__ for kind in kinds)
    raise record.wrong(_KIND, f"there is no kind {named!r}: the world has {listed}")


def _called(record: Record, agent_id: str) -> dict[str, str]:
    names = (name for key in _NAMES if (name := record.text(key, "")))
    called = {"agent_id": agent_id, "name": next(names, "")}
    return {key: text for key, text in called.items() if text}


def _fields_of(record: Record, cls: type[Agent], keep: Iterable[str]) -> dict[str, Any]:
    hints = hints_of(cls)
    found = {}
    for name in keep:
        cell = record.fields.get(name)
        if name not in cls.fields or name in Agent.fields or cell is None:
            continue
        if isinstance(cell, str) and not cell.strip():
            continue

        field = cls.fields[name]
        hint = hints.get(name, Any)
        with record.at(name):
            found[name] = read_field(cls.__name__, field, hint, cell)
            check_value(field, hint, found[name])

    return found


def _begin(agent: Agent, record: Record) -> None:
    text = record.text(_STATE, "").strip()
    if not text:
        return

    chart = type(agent).chart
    try:
        agent.begin_in(chart.state_of(text))
    except UnknownStateError:
        states = ", ".join(map(state_text, chart.definition.states))
        problem = f"{type(agent).__name__} has no state {text!r}: it has {states}"
        raise record.wrong(_STATE, problem) from None
