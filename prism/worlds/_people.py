"""Agents from a table: each row is an agent, and its columns are fields or attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from prism.agents import tables
from prism.errors import InputError
from prism.files import Record, reading
from prism.worlds._agent import Agent
from prism.worlds.arguments import require_whole
from prism.worlds.fields import read_value

_KIND, _STATE = "kind", "state"
_NAMES = ("name", "realname")


def agents_in(path: Path, world: Any, kinds: Sequence[type[Agent]]) -> list[Any]:
    """Make the agents of a world from a table, one per row.

    The column ``agent_id`` (or ``username``, or ``id``) holds their ids, and ``name`` (or
    ``realname``) their names. ``kind`` names the class of each; if the world has several kinds of
    agents, they are made from the table alone, and otherwise `World.populate` makes them.
    ``state`` is the state in which the agent begins. A column with the name of a field sets the
    field, converted to its type, and an empty cell leaves the default. All others become
    ``Agent.attributes``.

    Args:
        path: The file, which ends in ``.csv``, ``.tsv``, ``.jsonl`` or ``.json``.
        world: The world.
        kinds: Its kinds of agents.

    Raises:
        InputError: If the file cannot be read, a kind is unknown, a cell cannot be converted, a
            column is nearly the name of a field, two agents have the same id, or the world makes a
            different number of agents; the message names file, line and column.
    """
    with reading(path):
        records = tables.read_table(path)

    columns, made = tables.columns_of(records), _made(path, records, world, kinds)
    fields = {name for agent in made for name in type(agent).fields}
    column = tables.id_column(columns)
    reserved = {*fields, column, *_NAMES, _KIND, _STATE}
    others = [name for name in columns if name not in reserved]
    tables.refuse_misspelt(path, others, [name for name in fields if name not in columns])
    ids = tables.ids_of(records, column) if column else [""] * len(made)
    rows = zip(made, records, ids, tables.attributes_of(records, others), strict=True)
    for agent, record, agent_id, attributes in rows:
        _begin(agent, record)
        row = {**_fields_of(record, type(agent)), **_called(record, agent_id)}
        agent._arguments = {**agent._arguments, **row}
        vars(agent).update(row)
        for name, value in attributes.items():
            # past the names that every agent has, and methods
            if not (hasattr(Agent, name) or callable(getattr(type(agent), name, None))):
                vars(agent)[name] = value
        if attributes:
            vars(agent)["attributes"] = attributes

    return made


def _made(
    path: Path, records: Sequence[Record], world: Any, kinds: Sequence[type[Agent]]
) -> list[Any]:
    is_a_field = any(_KIND in each.fields for each in kinds)
    if kinds and _KIND in tables.columns_of(records) and not is_a_field:
        named = [_kind_of(record, kinds) for record in records]
        if len(kinds) > 1:
            return [kind() for kind in named]

    made = list(world.populate(len(records)))
    if len(made) != len(records):
        problem = f"has {len(records):,} rows, but populate made {len(made):,} agents: make as many"
        raise InputError(problem, path=path)

    return made


DEFAULT_AGENTS = 100


def population_of(agents: Any) -> Any:
    """Return the agents of a run: their number, a table, or the agents themselves."""
    if isinstance(agents, str):
        agents = _number_or_file(agents)
    if isinstance(agents, (Path, Iterable)):
        return agents
    return DEFAULT_AGENTS if agents is None else require_whole("agents", agents, 1)


def _number_or_file(text: str) -> float | Path:
    """Return the number that a text is, even if agents cannot have it, or else a file."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    if not Path(text).suffix:
        raise InputError(f"must be a whole number or a file, got {text!r}", field="agents")
    return Path(text)


def _kind_of(record: Record, kinds: Sequence[type[Agent]]) -> type[Agent]:
    named, by_name = record.text(_KIND), {kind.__name__.lower(): kind for kind in kinds}
    if kind := by_name.get(named.strip().lower()):
        return kind
    listed = ", ".join(kind.__name__ for kind in kinds)
    raise record.wrong(_KIND, f"there is no kind {named!r}: the world has {listed}")


def _called(record: Record, agent_id: str) -> dict[str, str]:
    name = next(filter(None, (record.text(key, "") for key in _NAMES)), "")
    return {key: text for key, text in (("agent_id", agent_id), ("name", name)) if text}


def _fields_of(record: Record, cls: type[Agent]) -> dict[str, Any]:
    values = {}
    for name in cls.fields:
        cell = record.fields.get(name)
        if name not in Agent.fields and str("" if cell is None else cell).strip():
            with record.at(name):
                values[name] = read_value(cls, name, cell)

    return values


def _begin(agent: Agent, record: Record) -> None:
    if text := record.text(_STATE, "").strip():
        with record.at(_STATE):
            agent.begin_in(type(agent).chart.state_of(text))
