"""Rows: agents in columns, as hooks, measures and treatments see them.

A row is an object of the user's own class, whose state, fields and random numbers are those of its
place in the columns. Rows are made when they are asked for, and there is one of each while somebody
holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from prism.columns._columns import Columns, number_in
from prism.errors import SimulationError
from prism.randomness import RandomStream
from prism.randomness._stream import GOLDEN, STEPS_BACK, mixed
from prism.worlds import Agent, AgentSet
from prism.worlds._agent_set import StreamById
from prism.worlds._fields import Fields

_INSTEAD = "run this world without columns"


class Rows:
    """All rows of a run.

    Args:
        cls: The class of the agents.
        columns: The columns.
        host: The run.
        kind: The kind of the agents.
        ids: Ids that agents were given, by place; others are made by rule.

    Attributes:
        others: Values of fields without columns, by name.
    """

    def __init__(self, cls: Any, columns: Columns, host: Any, kind: Any) -> None:
        self.columns = columns
        self.ids: dict[int, str] = {}
        self.names: dict[int, str] = {}
        self.others: dict[str, list[Any]] = {}
        self._prefix = cls.__name__.lower()
        self._made: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self.cls: Any = _row_class(cls, self, host, kind)

    def id_of(self, place: int) -> str:
        """Return an agent's id."""
        own = self.ids.get(place) if self.ids else None
        return own or f"{self._prefix}_{place + 1}"

    def at(self, place: int) -> Any:
        """Return the row at a place."""
        row = self._made.get(place)
        if row is None:
            row = self.cls.__new__(self.cls)
            row._place = place
            row._begin_state = None
            self._made[place] = row
        return row


class RowSet(AgentSet[Any]):
    """A set of rows by their places: all, neighbours, or the agents in a state.

    Args:
        rows: The rows of the run.
        places: Their places; None for everybody.
        ranks: The ranks of all places, by which agents are drawn, if not by their places.
    """

    def __new__(cls, rows: Rows, places: Any = None, ranks: Any = None) -> RowSet:
        """Make a set that holds only places."""
        made = super().__new__(cls)
        made._rows, made._places, made._ranks = rows, places, ranks
        return made

    _rows: Rows
    _places: Any
    _ranks: Any

    @cached_property
    def _by_id(self) -> RowSet:
        places = self._numbers()
        return RowSet(self._rows, places[np.argsort(self._ranks[places])])

    def _drawn(self) -> RowSet:
        return self if self._ranks is None else self._by_id

    def __len__(self) -> int:
        """Return how many there are."""
        return self._rows.columns.size if self._places is None else len(self._places)

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows."""
        at = self._rows.at
        if self._places is None:
            return map(at, range(self._rows.columns.size))
        return map(at, self._places.tolist())

    def __getitem__(self, which: Any) -> Any:
        """Return a row, or a set of several."""
        if isinstance(which, slice):
            return RowSet(self._rows, self._numbers()[which])
        size = len(self)
        if not -size <= which < size:
            raise IndexError(f"there are only {size} agents, so none has the number {which}")
        which = which % size
        return self._rows.at(which if self._places is None else int(self._places[which]))

    def __contains__(self, item: object) -> bool:
        """Return whether the set contains an agent."""
        if type(item) is not self._rows.cls:
            return False
        place = item._place  # type: ignore[attr-defined]
        return self._places is None or bool((self._places == place).any())

    def __eq__(self, other: object) -> bool:
        """Compare with any other tuple of agents."""
        return isinstance(other, tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Hash as a tuple does."""
        return hash(tuple(self))

    __reversed__ = Sequence.__reversed__
    index = Sequence.index  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:
        """Return the rows of both as a plain tuple."""
        return tuple(self) + tuple(other)

    def __mul__(self, times: Any) -> Any:
        """Return the rows several times as a plain tuple."""
        return tuple(self) * times

    def values(self, of: Any) -> list[Any]:
        """Return a value of every row."""
        columns = self._rows.columns
        stored = columns.unit.layout.fields.get(of) if isinstance(of, str) else None
        if stored is None:
            return super().values(of)
        return columns.values(stored, self._places)

    def _listed(self) -> Iterator[Any]:
        return iter(self)

    def _some(self, agents: Iterable[Any]) -> RowSet:
        return self._at(np.array([row._place for row in agents], np.int32))

    def _at(self, places: Any) -> RowSet:
        """Return the agents at some of the places."""
        return RowSet(self._rows, places, self._ranks)

    def _numbers(self) -> Any:
        if self._places is None:
            return np.arange(len(self), dtype=np.int32)
        return self._places

    def _in_state(self, state: Any) -> RowSet:
        columns, known = self._rows.columns, self._known(state)
        wanted = [known] if isinstance(known, Enum) else known
        numbers = [columns.unit.layout.number_of(each) for each in wanted]
        there = np.zeros(columns.states + 1, np.bool_)
        for number in numbers:
            if number is not None:
                there[number] = True
        states = columns["state"]
        if self._places is None:
            return self._at(np.flatnonzero(there[states]).astype(np.int32))
        return self._at(self._places[there[states[self._places]]])


class RowStream(RandomStream):
    """The random stream of a row, whose position is kept in columns.

    Args:
        row: The record of the agent.
    """

    __slots__ = ("_row",)

    def __init__(self, row: Any) -> None:
        self._row = row
        self._put_back = None
        self._key = mixed(int(row["key_step"]) + int(row["drawn_in"]) * GOLDEN)

    @property
    def _at(self) -> int:
        return (self._key + int(self._row["drawn"]) * GOLDEN) % 2**64

    @_at.setter
    def _at(self, number: int) -> None:
        self._row["drawn"] = (number - self._key) * STEPS_BACK % 2**64


class RowStreamById(StreamById, RowStream):
    """The same, in a run in which agents are drawn by their ids."""

    __slots__ = ()


def _row_class(cls: Any, rows: Rows, host: Any, kind: Any) -> Any:
    """Return the class of the rows of a run: the user's own, whose values are in columns."""
    columns = rows.columns
    states = columns.unit.layout.states

    def read_state(self: Any) -> Any:
        return states[columns["state"][self._place]]

    def write_state(self: Any, state: Any) -> None:
        number = columns.unit.layout.number_of(state)
        columns["counts"][columns["state"][self._place]] -= 1
        columns["counts"][number] += 1
        columns["state"][self._place] = number

    def neighbours(self: Any) -> Any:
        return host.neighbours_of(self._place)

    def random(self: Any) -> RowStream:
        row = columns.agents[self._place]
        if row["drawn_in"] != host.epoch:
            host.require_drawing(f"agent {self.agent_id!r}")
            row["drawn_in"], row["drawn"] = host.epoch, 0
        return (RowStreamById if host.draws_by_id else RowStream)(row)

    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "_state": property(read_state, write_state),
        "state": property(read_state),
        "agent_id": property(lambda self: rows.id_of(self._place)),
        "name": property(lambda self: rows.names.get(self._place) or rows.id_of(self._place)),
        "neighbours": property(neighbours),
        "_keys": property(lambda self: host.keys_at(self._place)),
        "random": property(random),
        "__getattr__": cls._found,
        "_host": host,
        "_chart": kind.chart,
        "_kind": kind,
        "_attributes": MappingProxyType({}),
        "_given": MappingProxyType({}),
        "inbox": _refused("messages have no column"),
        "state_history": _refused("histories are not kept in columns"),
        "_state_history": None,
        "remember": _refused("notes have no column"),
        "decision_random": _refused("the numbers of decisions are drawn by compiled code"),
        "_notes": None,
    }
    for name, stored in columns.unit.layout.fields.items():
        body[name] = _field(columns, stored, host, f"{cls.__name__}.{name}")
    for name in columns.unit.layout.others:
        body[name] = _kept(rows, name)

    # a subclass must not be asked what its base has been asked: rows have no constructor
    return Fields(cls.__name__, (cls,), body)


def _field(columns: Columns, stored: Any, host: Any, what: str) -> property:
    def read(self: Any) -> Any:
        return columns.value(stored, self._place)

    def write(self: Any, value: Any) -> None:
        if host.refusing is not None:
            raise SimulationError(f"{what} of {self.agent_id!r} is changed: {host.refusing}")
        columns.agents[stored.name][self._place] = number_in(stored, value, what)

    return property(read, write)


def _kept(rows: Rows, name: str) -> property:
    def read(self: Any) -> Any:
        return rows.others[name][self._place]

    def write(self: Any, value: Any) -> None:
        rows.others[name][self._place] = value

    return property(read, write)


def _refused(why: str) -> property:
    def refuse(self: Any) -> Any:
        raise SimulationError(f"agent {self.agent_id!r}: {why}: {_INSTEAD}")

    return property(refuse)


def is_row(agent: Any, rows: Rows) -> bool:
    """Return whether an object is a row of the run."""
    return isinstance(agent, Agent) and type(agent) is rows.cls
