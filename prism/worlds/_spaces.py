"""Spaces: cells in rows, layers of numbers, and a plane with arbitrary positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import ceil, hypot
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

from prism.errors import FieldValueError
from prism.worlds._agent_set import AgentSet

AgentT = TypeVar("AgentT")

Cell = tuple[int, int]

_BY_ID = attrgetter("agent_id")
_ROUNDING = 1e-9
_DIGITS = 4


class Space(Generic[AgentT]):
    """Cells in rows, numbered from 0, each with room for one agent, several or any number.

    Make it in `World.setup`, and keep it in a field: ``town: Space[Resident] = state(Space)``.

    Args:
        width: Cells in a row.
        height: Rows.
        wraps: Whether the first row and column are beside the last.
        capacity: Agents for which a cell has room; None for any number.

    Attributes:
        cells: The cell of each agent. Change it with `put`.
    """

    def __init__(
        self,
        width: int = 0,
        height: int = 0,
        *,
        wraps: bool = False,
        capacity: int | None = 1,
    ) -> None:
        self.width: int = width
        self.height: int = height
        self.wraps: bool = wraps
        self.capacity: int | None = capacity
        self.cells: dict[AgentT, int] = {}
        self._inside: dict[int, dict[AgentT, None]] = {}
        self._near: dict[int, list[int]] = {}

    def at(self, cell: int) -> AgentSet[AgentT]:
        """Return the agents in a cell, in the order in which they came."""
        return AgentSet(self._inside.get(cell, ()))

    def free(self) -> list[int]:
        """Return the empty cells."""
        return [cell for cell in range(self.width * self.height) if not self._inside.get(cell)]

    def near(self, cell: int) -> list[int]:
        """Return the cells around a cell, including corners, row by row."""
        found = self._near.get(cell)
        if found is None:
            row, column = divmod(cell, self.width)
            places = [(row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
            if self.wraps:
                places = [(down % self.height, right % self.width) for down, right in places]
            inside = (
                down * self.width + right
                for down, right in places
                if 0 <= down < self.height and 0 <= right < self.width
            )
            # in a small space that wraps, some of these cells are the same
            found = self._near[cell] = [each for each in dict.fromkeys(inside) if each != cell]
        return found

    def put(self, agent: AgentT, cell: int) -> None:
        """Put an agent into a cell that has room. It leaves its previous cell.

        One that has left the run stays out.

        Raises:
            FieldValueError: If the cell does not exist, or is full.
        """
        if cast(Any, agent).has_left:
            return
        if not 0 <= cell < self.width * self.height:
            raise FieldValueError(
                f"there is no cell {cell}: use 0 to {self.width * self.height - 1}"
            )
        inside = self._inside.setdefault(cell, {})
        if self.capacity is not None and len(inside) >= self.capacity and agent not in inside:
            raise FieldValueError(f"cell {cell} is full: {AgentSet(inside)!r}")

        self.remove(agent)
        inside[agent] = None
        self.cells[agent] = cell
        note_space(agent, self)

    def remove(self, agent: AgentT) -> None:
        """Remove an agent from its cell, if it is in one."""
        cell = self.cells.pop(agent, None)
        if cell is not None:
            del self._inside[cell][agent]

    def beside(self, agent: AgentT) -> AgentSet[AgentT]:
        """Return the other agents in its cell, and those in the cells around it, row by row.

        Raises:
            FieldValueError: If the agent is in no cell.
        """
        cell = self._cell_of(agent)
        cells = [*self.near(cell), cell] if self.capacity != 1 else self.near(cell)
        inside = self._inside
        return AgentSet(
            other
            for each in cells
            if (there := inside.get(each))
            for other in there
            if other is not agent
        )

    def bring(self, newcomer: AgentT, parent: AgentT) -> None:
        """Put a newcomer into the cell of its parent, or, if that is full, into one around it.

        Raises:
            FieldValueError: If all of these are full.
        """
        cell = self._cell_of(parent)
        for each in (cell, *self.near(cell)):
            if self.capacity is None or len(self._inside.get(each, ())) < self.capacity:
                return self.put(newcomer, each)
        raise FieldValueError(f"there is no room for {newcomer!r} beside {parent!r}")

    def pictured(self, agents: Sequence[AgentT]) -> dict[str, Any]:
        """Return where some agents are, for the log."""
        size = {"width": self.width, "height": self.height}
        return {"space": "grid", **size, "places": [*map(self.cells.get, agents)]}

    def _cell_of(self, agent: AgentT) -> int:
        if agent not in self.cells:
            raise _absent(agent, "is in no cell: put it into one first")
        return self.cells[agent]


def _absent(agent: Any, problem: str) -> FieldValueError:
    if agent.has_left:
        problem = "has left the run: bear others, and look around, before it leaves"
    return FieldValueError(f"{agent!r} {problem}")


def note_space(agent: Any, space: Any) -> None:
    """Let an agent know that it is in a space, which it leaves when it leaves the run."""
    if space not in agent._spaces:
        vars(agent)["_spaces"] = {**agent._spaces, space: None}


class Layer:
    """A number for each cell of a `Space`, such as grass or a scent.

    ``layer[cell]`` reads and sets one.

    Args:
        width: Cells in a row.
        height: Rows.
        value: The first value of each cell.
        wraps: Whether the first row and column are beside the last, for `spread`.

    Attributes:
        values: The numbers by cell, row by row.
    """

    def __init__(
        self, width: int = 0, height: int = 0, value: float = 0.0, *, wraps: bool = False
    ) -> None:
        self.width: int = width
        self.height: int = height
        self.wraps: bool = wraps
        self.values: list[float] = [value] * (width * height)

    def __getitem__(self, cell: int) -> float:
        """Return the number of a cell."""
        return self.values[cell]

    def __setitem__(self, cell: int, value: float) -> None:
        """Set the number of a cell."""
        self.values[cell] = value

    def change(self, function: Callable[[float], float]) -> None:
        """Set each number to what a function makes of it."""
        self.values = [*map(function, self.values)]

    def spread(self, share: float) -> None:
        """Let a share of each number flow in equal parts to the four cells beside it.

        At an edge that does not wrap, the parts that would flow out stay.

        Args:
            share: From 0 to 1.
        """
        part, values = share / 4, self.values
        result = list(values)
        width, height = self.width, self.height
        for cell, value in enumerate(values):
            if not value:
                continue
            row, column = divmod(cell, width)
            flow = value * part
            for down, right in ((-1, 0), (0, -1), (0, 1), (1, 0)):
                y, x = row + down, column + right
                if self.wraps:
                    y, x = y % height, x % width
                if 0 <= y < height and 0 <= x < width:
                    result[cell] -= flow
                    result[y * width + x] += flow
        self.values = result


class Plane(Generic[AgentT]):
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
        positions: The position of each agent. Change it with `put`.
    """

    def __init__(
        self,
        width: float = 1.0,
        height: float = 1.0,
        reach: float = 0.1,
        *,
        wraps: bool = False,
    ) -> None:
        self.width: float = width
        self.height: float = height
        self.reach: float = reach
        self.wraps: bool = wraps
        self.positions: dict[AgentT, tuple[float, float]] = {}
        self._inside: dict[Cell, dict[AgentT, None]] = {}

    def put(self, agent: AgentT, x: float, y: float) -> None:
        """Put an agent at a position. It leaves its previous one.

        In a plane that wraps, a position beyond one side enters from the opposite one. An agent
        that has left the run stays out.

        Raises:
            FieldValueError: If it is not a position, or outside a plane that does not wrap.
        """
        if cast(Any, agent).has_left:
            return
        if self.wraps:
            x, y = _wrapped(x, self.width), _wrapped(y, self.height)
        if not (0 <= x <= self.width and 0 <= y <= self.height):
            raise FieldValueError(
                f"({x!r}, {y!r}) is not in a plane of {self.width} by {self.height}"
            )

        self.remove(agent)
        self.positions[agent] = x, y
        self._inside.setdefault(self._cell(x, y), {})[agent] = None
        note_space(agent, self)

    def remove(self, agent: AgentT) -> None:
        """Remove an agent from the plane, if it is there."""
        if agent in self.positions:
            del self._inside[self._cell(*self.positions.pop(agent))][agent]

    def bring(self, newcomer: AgentT, parent: AgentT) -> None:
        """Put a newcomer where its parent is."""
        self.put(newcomer, *self._position_of(parent))

    def within(self, agent: AgentT, distance: float) -> AgentSet[AgentT]:
        """Return the other agents within a distance.

        They are in the order of their ids.

        Args:
            agent: The agent in the middle.
            distance: The largest distance.

        Raises:
            FieldValueError: If the agent has no position.
        """
        here = self._position_of(agent)
        square, positions, away = distance**2, self.positions, self._away
        near: list[Any] = [
            other
            for cell in self._cells_around(*here, distance)
            for other in cell
            if other is not agent and _square(*away(here, positions[other])) <= square
        ]
        return AgentSet(sorted(near, key=_BY_ID))

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

    def pictured(self, agents: Sequence[AgentT]) -> dict[str, Any]:
        """Return where some agents are, for the log."""
        places = map(self.positions.get, agents)
        return {
            "space": "plane",
            "width": self.width,
            "height": self.height,
            "places": [each and [round(value, _DIGITS) for value in each] for each in places],
        }

    def _position_of(self, agent: AgentT) -> tuple[float, float]:
        if agent not in self.positions:
            raise _absent(agent, "has no position: put it somewhere first")

        return self.positions[agent]

    def _away(self, here: tuple[float, float], there: tuple[float, float]) -> tuple[float, float]:
        right, down = there[0] - here[0], there[1] - here[1]
        if self.wraps:
            right -= round(right / self.width) * self.width
            down -= round(down / self.height) * self.height

        return right, down

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
        cells = self._inside
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
