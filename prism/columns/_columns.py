"""The columns of a run: numpy arrays, and the record that tells compiled code where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from prism.columns import _table as T  # noqa: N812
from prism.columns._types import BOOL, FLOAT, Stored, Unit, is_word
from prism.errors import FieldTypeError

_EVENTS_BESIDES, _EVENTS_EACH = 65_536, 16
_DEEDS_EACH = 4
_MOST_BUCKETS = 2**20
_LINE = 64


class Columns:
    """The arrays of a run.

    Args:
        unit: The compiled class.
        size: Number of agents.

    Attributes:
        unit: The compiled class.
        size: Number of agents.
        states: How many states there are.
        run: The record of the run: its numbers, and addresses of the columns.
        address: Where that record is.
        agents: The records of agents.
    """

    def __init__(self, unit: Unit, size: int) -> None:
        self.unit = unit
        self.size = size
        self.states = len(unit.layout.states)
        self._kinds = {name: np.dtype(each, align=True) for name, each in unit.records.items()}
        self._run: Any = np.zeros(1, self._kinds["run"])
        self.run: Any = self._run[0]
        self.address: int = self._run.ctypes.data
        self._arrays: dict[str, Any] = {}
        self.run["size"] = size
        self._kinds |= {name: np.dtype(kind) for name, kind in T.COLUMNS.items() if kind}
        self.agents: Any = self.make("agents", size)
        self.agents["queued"] = self.agents["drawn_in"] = -1
        if unit.uses_waits:
            self.agents["decided_in"] = -1
        for name, length in (
            # without a network, nobody has neighbours
            *(("state", size), ("logged", size), ("offsets", size + 1), ("neighbours", 1)),
            ("interrupted", 1),
            *(("counts", self.states), ("timed_out", self.states)),
            ("due", size if unit.has_limits else 0),
        ):
            self.make(name, length)

    def __getitem__(self, name: str) -> Any:
        """Return a column."""
        return self._arrays[name]

    def set(self, name: str, array: Any) -> None:
        """Set a column, and pass its address to compiled code."""
        self._arrays[name] = array
        self.run[name] = array.ctypes.data

    def make(self, name: str, length: int) -> Any:
        """Make a column of zeros, aligned to cache lines."""
        kind = self._kinds[name]
        # memory is not allocated until it is written to
        whole: Any = np.zeros(max(length, 1) * kind.itemsize + _LINE, np.uint8)
        first = -whole.ctypes.data % _LINE
        self.set(name, whole[first : first + max(length, 1) * kind.itemsize].view(kind))
        return self._arrays[name]

    def prepare(self, logged: int) -> None:
        """Allocate the columns that ticks use.

        Args:
            logged: How many agents the log covers.
        """
        unit, size, cls = self.unit, self.size, self.unit.layout.cls
        most_told = _EVENTS_BESIDES + _EVENTS_EACH * logged
        self.run["most_told"] = most_told
        most_sorted = 0 if unit.is_apart else size
        lengths = {"events": most_told, "options": most_told * self.states}
        if unit.uses_waits:
            lengths["chances"] = most_told * self.states
            lengths |= dict.fromkeys(("slots", "wait_list", "wait_next"), size)
            lengths |= dict.fromkeys(("choices", "weights"), size * self.states)
        if cls.together:
            most_sorted = _DEEDS_EACH * size + 2 * len(self["neighbours"])
            self.run["most_made"] = most_sorted
            lengths |= dict.fromkeys(("deeds", "deed_places", "deed_order"), most_sorted)
            lengths["writers"] = size
        lengths |= dict.fromkeys(("acts", "places", "spare_items", "spare_keys"), most_sorted)
        lengths["buckets"] = min(2 * most_sorted, _MOST_BUCKETS) + 64
        for name, length in lengths.items():
            self.make(name, length)
        # newcomers come when everybody is sorted
        self.set("heap", self["spare_items"])
        self.set("heap_places", self["spare_keys"])

    def take_keys(self, keys: Any) -> None:
        """Store each agent's 64-bit keys for its places, its steps and its decisions."""
        for number, name in enumerate(("key_place", "key_step", "key_decision")):
            if name in self.agents.dtype.names:
                self.agents[name] = keys[:, number]

    # Values

    def value(self, stored: Stored, place: int) -> Any:
        """Return the value of an agent's field."""
        number = self.agents[stored.name][place].item()
        return stored.type.options[number] if stored.type.options else number

    def values(self, stored: Stored, places: Any = None) -> list[Any]:
        """Return the values of a field of several agents."""
        column, options = self.agents[stored.name], stored.type.options
        numbers: list[Any] = (column if places is None else column[places]).tolist()
        return [options[each] for each in numbers] if options else numbers


def number_in(stored: Stored, value: Any, what: str) -> Any:
    """Return the number that represents a value in a column.

    Raises:
        FieldTypeError: If the column cannot hold it.
    """
    kind = stored.type
    if kind.options:
        for number, option in enumerate(kind.options):
            if type(option) is type(value) and option == value:
                return number
        listed = ", ".join(map(str, kind.options))
        raise FieldTypeError(f"{what} must be one of {listed} in columns, got {value!r}")

    wanted, needed = _PLAIN.get(kind, (int, "a whole number"))
    if type(value) is not wanted:
        mend = ": write 0.0 for 0, or float(...)" if wanted is float else ""
        raise FieldTypeError(f"{what} must be {needed} in columns, got {value!r}{mend}")
    if wanted is int and not is_word(value):
        raise FieldTypeError(f"{what} must be a whole number of 64 bits in columns, got {value!r}")

    return value


_PLAIN: dict[Any, tuple[type, str]] = {FLOAT: (float, "a float"), BOOL: (bool, "True or False")}
