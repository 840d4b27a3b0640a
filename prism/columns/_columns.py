"""The columns of a run: numpy arrays, and the table that tells compiled code where they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from prism.columns import _table as T  # noqa: N812
from prism.columns._kernel import EVENT_WIDTH, WAIT_WIDTH
from prism.columns._types import BOOL, FLOAT, Stored
from prism.columns._unit import Unit

_EVENTS_BESIDES, _EVENTS_EACH = 65_536, 16
_PUT_OFF_EACH = 4
_MOST_BUCKETS = 2**20
_NO_EPOCH = 2**64 - 1

# `_kernel` was imported with the chart of its example, which has one state
_WAIT_WIDTH, _EVENT_WIDTH = WAIT_WIDTH - 1, EVENT_WIDTH - 1


class Columns:
    """The arrays of a run.

    Args:
        unit: The compiled class.
        size: Number of agents.
        has_turns: Whether agents are drawn for their turns, one by one.

    Attributes:
        unit: The compiled class.
        size: Number of agents.
        states: How many states there are.
        table: Numbers of the run, and addresses of the columns.
        event_width: Numbers in an event.
    """

    def __init__(self, unit: Unit, size: int) -> None:
        self.unit = unit
        self.size = size
        self.states = len(unit.layout.states)
        self.table: Any = np.zeros(unit.table_size, np.int64)
        self.unsigned: Any = self.table.view(np.uint64)
        self.floats: Any = self.table.view(np.float64)
        self.event_width: int = _EVENT_WIDTH + self.states
        self._arrays: dict[int, Any] = {}
        self._decision_keys: Any = None
        self.table[T.SIZE] = size
        self.set(T.STATE, np.zeros(size, np.uint8))
        self.set(T.LOGGED, np.zeros(size, np.uint8))
        self.set(T.LIFE, np.zeros(4 * size, np.int32))
        self.set(T.STREAMS, np.zeros(4 * size, np.uint64))
        self.of_life(T.DUE)[:] = T.NEVER
        self.of_life(T.QUEUED)[:] = -1
        self.of_streams(T.DRAWN_IN)[:] = _NO_EPOCH
        self.set(T.OFFSETS, np.zeros(1, np.int64))
        self.set(T.NEIGHBOURS, np.zeros(1, np.int32))
        self.set(T.COUNTS, np.zeros(self.states, np.int64))
        self.set(T.TIMED_OUT, np.zeros(self.states, np.int64))
        for each in unit.layout.fields.values():
            self.set(each.place, np.zeros(size, np.float64 if each.type is FLOAT else np.int64))

    def __getitem__(self, place: int) -> Any:
        """Return a column."""
        return self._arrays[place]

    def set(self, place: int, array: Any) -> None:
        """Set a column, and tell compiled code where it is."""
        self._arrays[place] = array
        self.table[place] = array.ctypes.data

    def of_life(self, which: int) -> Any:
        """Return one of the numbers that `T.LIFE` has of each agent."""
        return self[T.LIFE].reshape(-1, 4)[:, which]

    def of_streams(self, which: int) -> Any:
        """Return one of the numbers that `T.STREAMS` has of each agent."""
        return self[T.STREAMS].reshape(-1, 4)[:, which]

    @property
    def address(self) -> int:
        """Where the table is."""
        return int(self.table.ctypes.data)

    def prepare(self, logged: int) -> None:
        """Make what ticks work with.

        Args:
            logged: How many agents the log tells of.
        """
        unit, size = self.unit, self.size
        cls = unit.layout.cls
        most_events = _EVENTS_BESIDES + _EVENTS_EACH * logged
        self.table[T.MOST_EVENTS] = most_events
        self._empty(T.EVENT_ROWS, most_events * self.event_width, np.int64)
        most_sorted = 0 if unit.is_apart else size
        if cls.together:
            most = _PUT_OFF_EACH * size + 2 * len(self[T.NEIGHBOURS])
            self.table[T.MOST_MADE] = most
            self._empty(T.PUT_OFF, 4 * most, np.int32)
            self._empty(T.PUT_OFF_PLACES, most, np.uint64)
            self._empty(T.PUT_OFF_ORDER, most, np.int32)
            self.set(T.BEGAN, np.zeros(size, np.uint8))
            self.set(T.HAS_WRITTEN, np.zeros(size, np.uint8))
            self._empty(T.WRITERS, size, np.int32)
            most_sorted = most
            for stored, place in unit.shadows.values():
                self.set(place, np.zeros_like(self[stored.place]))
        self._empty(T.ACTS, most_sorted, np.int32)
        self._empty(T.PLACES, most_sorted, np.uint64)
        self._empty(T.SPARE_ITEMS, most_sorted, np.int32)
        self._empty(T.SPARE_KEYS, most_sorted, np.uint64)
        # newcomers come when everybody is sorted
        self.set(T.HEAP, self[T.SPARE_ITEMS])
        self.set(T.HEAP_PLACES, self[T.SPARE_KEYS])
        self._empty(T.BUCKETS, min(2 * most_sorted, _MOST_BUCKETS) + 64, np.int32)
        if unit.uses_waits:
            self._prepare_waiting(most_events)

    def _prepare_waiting(self, most_events: int) -> None:
        size, (wholes, numbers) = self.size, self.unit.widths
        self._empty(T.EVENT_CHANCES, most_events * self.states, np.float64)
        decisions = np.zeros((size, 4), np.uint64)
        decisions[:, T.KEY_DECISION] = self._decision_keys
        decisions[:, T.DECISION_DRAWN_IN] = _NO_EPOCH
        self.set(T.DECISIONS, decisions.reshape(-1))
        self._decision_keys = None
        self._empty(T.WAITS, size * (_WAIT_WIDTH + self.states), np.int32)
        self._empty(T.WAIT_NUMBERS, size * (2 * self.states + numbers), np.float64)
        self._empty(T.WAIT_WHOLE, size * max(wholes, 1), np.int64)
        self._empty(T.WAIT_LIST, size, np.int32)
        self._empty(T.WAIT_NEXT, size, np.int32)

    def take_keys(self, keys: Any) -> None:
        """Take 64 bits of each agent's own for each of: its places, its steps, its decisions."""
        self.of_streams(T.KEY_PLACE)[:] = keys[:, 0]
        self.of_streams(T.KEY_STEP)[:] = keys[:, 1]
        # only where there are decisions
        if self.unit.uses_waits:
            self._decision_keys = keys[:, 2].copy()

    def _empty(self, place: int, length: int, kind: Any) -> None:
        # memory that nobody writes to is not taken
        self.set(place, np.empty(max(length, 1), kind))

    # Values

    def value(self, stored: Stored, place: int) -> Any:
        """Return the value of an agent's field."""
        return self.shown(stored, self[stored.place][place].item())

    def shown(self, stored: Stored, number: Any) -> Any:
        """Return what a number in a column stands for."""
        if stored.type is BOOL:
            return bool(number)
        return stored.type.options[number] if stored.type.options else number

    def values(self, stored: Stored, places: Any) -> list[Any]:
        """Return the values of a field of several agents."""
        column = self[stored.place]
        numbers = (column if places is None else column[places]).tolist()
        if stored.type is BOOL or stored.type.options:
            return [self.shown(stored, each) for each in numbers]
        return list(numbers)

    @property
    def nbytes(self) -> int:
        """How many bytes the columns of agents take, but for the network."""
        besides = T.NEIGHBOURS, T.OFFSETS, T.EVENT_ROWS, T.EVENT_CHANCES
        return sum(each.nbytes for place, each in self._arrays.items() if place not in besides)


def number_in(stored: Stored, value: Any, what: str) -> Any:
    """Return the number that stands for a value in a column.

    Raises:
        FieldTypeError: If the column cannot hold it.
    """
    from prism.errors import FieldTypeError

    kind = stored.type
    if kind.options:
        for number, option in enumerate(kind.options):
            if type(option) is type(value) and option == value:
                return number
        listed = ", ".join(map(str, kind.options))
        raise FieldTypeError(f"{what} must be one of {listed} in columns, got {value!r}")

    wanted = float if kind is FLOAT else bool if kind is BOOL else int
    if type(value) is not wanted:
        mend = ": write 0.0 for 0, or float(...)" if wanted is float else ""
        name = {float: "a float", bool: "True or False", int: "a whole number"}[wanted]
        raise FieldTypeError(f"{what} must be {name} in columns, got {value!r}{mend}")
    if wanted is int and not -(2**63) <= value < 2**63:
        raise FieldTypeError(f"{what} must be a whole number of 64 bits in columns, got {value!r}")

    return value
