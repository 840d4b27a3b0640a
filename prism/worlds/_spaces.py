"""Spaces: cells in rows, and a plane with arbitrary positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import ceil, hypot, inf
from operator import attrgetter
from sys import float_info
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from prism.errors import FieldValueError
from prism.worlds._agent import Thing
from prism.worlds._agent_set import AgentSet
from prism.worlds._fields import state

AgentT = TypeVar("AgentT")

Cell = tuple[int, int]

_PLACE = attrgetter("_place")
_ROUNDING = 1e-9
_DIGITS = 4


class Space(Thing, Generic[AgentT]):
    """Cells in rows, numbered from 0, each with room for one agent.

    Make it in `World.setup`, and keep it in a field: ``town: Space[Resident] = state(Space)``.

    Args:
        width: Cells in a row.
        height: Rows.
        wraps: Whether the first row and column are beside the last.

    Attributes:
        width: Cells in a row.
        height: Rows.
        wraps: Whether the first row and column are beside the last.
        taken: The agent in each occupied cell.
        cells: The cell of each agent.
    """

    width: int = 0
    height: int = 0
    wraps: bool = False
    taken: dict[int, AgentT] = state(dict)
    cells: dict[AgentT, int] = state(dict)

    def free(self) -> list[int]:
        """Return the empty cells."""
        return [cell for cell in range(self.width * self.height) if cell not in self.taken]

    def put(self, agent: AgentT, cell: int) -> None:
        """Put an agent into a free cell. It leaves its previous cell.

        Raises:
            FieldValueError: If the cell does not exist, or is occupied.
        """
        if not 0 <= cell < self.width * self.height:
            raise FieldValueError(
                f"there is no cell {cell}: use 0 to {self.width * self.height - 1}"
            )
        if self.taken.get(cell, agent) is not agent:
            raise FieldValueError(f"cell {cell} is taken by {self.taken[cell]!r}")

        self.remove(agent)
        self.taken[cell], self.cells[agent] = agent, cell

    def remove(self, agent: AgentT) -> None:
        """Remove an agent from its cell, if it is in one."""
        if agent in self.cells:
            del self.taken[self.cells.pop(agent)]

    def beside(self, agent: AgentT) -> AgentSet[AgentT]:
        """Return the agents in the cells around an agent, including corners, row by row.

        Raises:
            FieldValueError: If the agent is in no cell.
        """
        if agent not in self.cells:
            raise FieldValueError(f"{agent!r} is in no cell: put it into one first")

        row, column = divmod(self.cells[agent], self.width)
        around = [(row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
        found: list[Any] = [self._at(*place) for place in around]

        # in a small space that wraps, some of these cells are the same
        return AgentSet(other for other in dict.fromkeys(found) if other not in (None, agent))

    def pictured(self, agents: Sequence[AgentT], *, first: bool) -> dict[str, Any]:
        """Return where some agents are, for the log; ``first`` is for networks."""
        del first
        size = {"width": self.width, "height": self.height}
        return {"space": "grid", **size, "places": [*map(self.cells.get, agents)]}

    def _at(self, row: int, column: int) -> AgentT | None:
        if self.wraps:
            row, column = row % self.height, column % self.width
        elif not (0 <= row < self.height and 0 <= column < self.width):
            return None

        return self.taken.get(row * self.width + column)


_MOST = {"width": float_info.max, "height": float_info.max, "reach": inf}
"""Sizes of a plane, and how large each may be."""


class Plane(Thing, Generic[AgentT]):
    """A flat space with arbitrary positions, and neighbours within a distance.

    Make it in `World.setup`, and keep it in a field: ``sky: Plane[Bird] = state(Plane)``. Positions
    are floats, x from 0 to the width and y from 0 to the height.

    Args:
        width: Its width.
        height: Its height.
        reach: The usual distance within which you look for neighbours. Other distances work, but
            this one is the fastest.
        wraps: Whether one side is beside the opposite one (a torus).

    Attributes:
        width: Its width.
        height: Its height.
        reach: The usual distance within which you look for neighbours.
        wraps: Whether one side is beside the opposite one.
        positions: The position of each agent. Change it with `put`.
    """

    __slots__ = ("_cells", "height", "positions", "reach", "width", "wraps")

    if TYPE_CHECKING:
        _cells: dict[Cell, dict[AgentT, None]]

    width: float = 1.0
    height: float = 1.0
    reach: float = 0.1
    wraps: bool = False
    positions: dict[AgentT, tuple[float, float]] = state(dict)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse a plane without an area, or without cells."""
        if name in _MOST and not (value > 0 and value <= _MOST[name]):
            finite = "" if _MOST[name] == inf else " and finite"
            raise FieldValueError(f"the {name} of a plane must be above 0{finite}, got {value!r}")
        super().__setattr__(name, value)

    def put(self, agent: AgentT, x: float, y: float) -> None:
        """Put an agent at a position. It leaves its previous one.

        In a plane that wraps, a position beyond one side enters from the opposite one.

        Raises:
            FieldValueError: If it is not a position, or outside a plane that does not wrap.
        """
        if self.wraps:
            x, y = _wrapped(x, self.width), _wrapped(y, self.height)
        if not (0 <= x <= self.width and 0 <= y <= self.height):
            raise FieldValueError(
                f"({x!r}, {y!r}) is not in a plane of {self.width} by {self.height}"
            )

        self.remove(agent)
        self.positions[agent] = x, y
        self._grid().setdefault(self._cell(x, y), {})[agent] = None

    def remove(self, agent: AgentT) -> None:
        """Remove an agent from the plane, if it is there."""
        if agent in self.positions:
            cells = self._grid()
            del cells[self._cell(*self.positions.pop(agent))][agent]

    def within(self, agent: AgentT, distance: float) -> AgentSet[AgentT]:
        """Return the other agents within a distance.

        They are in the order of their ids, or that of the list if the world's order is "listed".

        Args:
            agent: The agent in the middle.
            distance: The largest distance.

        Raises:
            FieldValueError: If the distance is no finite number, or below 0, or the agent has no
                position.
        """
        found = self.around(*self._position_of(agent), distance)
        return AgentSet(other for other in found if other is not agent)

    def around(self, x: float, y: float, distance: float) -> AgentSet[AgentT]:
        """Return the agents within a distance of a position, in the order of `within`.

        Raises:
            FieldValueError: If the distance is no finite number, or below 0.
        """
        if not 0 <= distance < inf:
            raise FieldValueError(
                f"a distance must be a finite number, 0 or more, got {distance!r}"
            )
        if self.wraps:
            x, y = _wrapped(x, self.width), _wrapped(y, self.height)

        square, positions, away = distance**2, self.positions, self._away
        near = [
            agent
            for cell in self._cells_around(x, y, distance)
            for agent in cell
            if _square(*away((x, y), positions[agent])) <= square
        ]

        return AgentSet(sorted(near, key=_PLACE))

    def distance(self, one: AgentT, other: AgentT) -> float:
        """Return the shortest distance between two agents.

        Raises:
            FieldValueError: If one of them has no position.
        """
        return hypot(*self.towards(one, other))

    def towards(self, one: AgentT, other: AgentT) -> tuple[float, float]:
        """Return the shortest way from one agent to another, to the right and down.

        Either number may be negative.

        Raises:
            FieldValueError: If one of them has no position.
        """
        return self._away(self._position_of(one), self._position_of(other))

    def pictured(self, agents: Sequence[AgentT], *, first: bool) -> dict[str, Any]:
        """Return where some agents are, for the log; ``first`` is for networks."""
        del first
        places = map(self.positions.get, agents)
        return {
            "space": "plane",
            "width": self.width,
            "height": self.height,
            "places": [each and [round(value, _DIGITS) for value in each] for each in places],
        }

    def _position_of(self, agent: AgentT) -> tuple[float, float]:
        if agent not in self.positions:
            raise FieldValueError(f"{agent!r} has no position: put it somewhere first")

        return self.positions[agent]

    def _away(self, here: tuple[float, float], there: tuple[float, float]) -> tuple[float, float]:
        right, down = there[0] - here[0], there[1] - here[1]
        if self.wraps:
            right -= round(right / self.width) * self.width
            down -= round(down / self.height) * self.height

        return right, down

    def _grid(self) -> dict[Cell, dict[AgentT, None]]:
        """Return the agents in each cell, recomputed from the positions when a run is resumed."""
        found: dict[Cell, dict[AgentT, None]] | None = getattr(self, "_cells", None)
        if found is None:
            found = {}
            self._cells = found
            for agent, position in self.positions.items():
                found.setdefault(self._cell(*position), {})[agent] = None

        return found

    def _cell(self, x: float, y: float) -> Cell:
        columns, rows = self._size()
        # the far edge belongs to the last cell
        return (
            min(int(x / self.width * columns), columns - 1),
            min(int(y / self.height * rows), rows - 1),
        )

    def _size(self) -> tuple[int, int]:
        """Return the number of columns and rows of cells, which are larger than the reach."""
        return max(1, ceil(self.width / self.reach) - 1), max(1, ceil(self.height / self.reach) - 1)

    def _cells_around(self, x: float, y: float, distance: float) -> Iterator[Iterable[AgentT]]:
        cells = self._grid()
        columns, rows = self._size()
        column, row = self._cell(x, y)
        across = self._span(column, columns, distance / self.width)
        along = self._span(row, rows, distance / self.height)
        # a large distance covers everybody
        if len(across) * len(along) > len(cells):
            yield from cells.values()
            return

        for place in product(across, along):
            if (cell := cells.get(place)) is not None:
                yield cell

    def _span(self, middle: int, number: int, share: float) -> Sequence[int]:
        """Return the columns, or rows, within a distance of one of them."""
        # a position at the edge of a cell may be rounded into the next one
        away = int(share * number + _ROUNDING) + 1
        if 2 * away + 1 >= number:
            return range(number)
        if self.wraps:
            return [place % number for place in range(middle - away, middle + away + 1)]

        return range(max(0, middle - away), min(number, middle + away + 1))


def _wrapped(value: float, length: float) -> float:
    # the remainder of a tiny negative number is rounded to the length itself
    rest = value % length
    return 0.0 if rest == length else rest


def _square(right: float, down: float) -> float:
    return right * right + down * down
