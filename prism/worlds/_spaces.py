"""Spaces: cells in rows, layers of numbers, and a plane with arbitrary positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import ceil, hypot
from operator import attrgetter, index
from typing import Any, Generic, TypeVar

from prism.errors import FieldValueError
from prism.worlds._agent import Agent
from prism.worlds._agent_set import AgentSet

AgentT = TypeVar("AgentT", bound=Agent)
PositionT = TypeVar("PositionT")

Position = tuple[float, float]

_BY_ID = attrgetter("agent_id")
_DIGITS = 4


class _Ground(Generic[AgentT, PositionT]):
    """Agents by their positions, and the agents in each cell."""

    def __init__(self) -> None:
        self._positions: dict[AgentT, PositionT] = {}
        self._inside: dict[Any, dict[AgentT, None]] = {}

    def remove(self, agent: AgentT) -> None:
        """Remove an agent, if it is here."""
        if agent in self._positions:
            del self._inside[self._cell_at(self._positions.pop(agent))][agent]

    def _cell_at(self, position: PositionT) -> Any:
        """Return the cell of a place."""
        return position

    def _settle(self, agent: AgentT, position: PositionT) -> None:
        """Put an agent that is there into a place, which it leaves when it leaves the run."""
        if agent.has_left:
            return
        self.remove(agent)
        self._positions[agent] = position
        self._inside.setdefault(self._cell_at(position), {})[agent] = None
        if self not in agent._spaces:
            vars(agent)["_spaces"] = {**agent._spaces, self: None}

    def place_of(self, agent: AgentT) -> PositionT:
        """Return where an agent is.

        Raises:
            FieldValueError: If it is not in this space.
        """
        if agent not in self._positions:
            raise FieldValueError(f"{agent!r} is nowhere in this space, before put or after leave")
        return self._positions[agent]


class Space(_Ground[AgentT, int]):
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
        self, width: int = 0, height: int = 0, *, wraps: bool = False, capacity: int | None = 1
    ) -> None:
        super().__init__()
        self.width: int = width
        self.height: int = height
        self.wraps: bool = wraps
        self.capacity: int | None = capacity
        self.cells: dict[AgentT, int] = self._positions
        self._near: dict[int, list[int]] = {}

    def at(self, cell: int) -> AgentSet[AgentT]:
        """Return the agents in a cell, in the order in which they came."""
        return AgentSet(self._inside.get(cell, ()))

    def free(self) -> list[int]:
        """Return the empty cells."""
        return [cell for cell in range(self.width * self.height) if not self._inside.get(cell)]

    def near(self, cell: int) -> list[int]:
        """Return the cells around a cell, including corners, row by row."""
        if cell not in self._near:
            # in a small space that wraps, some of these cells are the same
            around = dict.fromkeys(_around(self, cell, _EIGHT))
            self._near[cell] = [each for each in around if each != cell]
        return self._near[cell]

    def put(self, agent: AgentT, cell: int) -> None:
        """Put an agent into a cell that has room. It leaves its previous cell.

        One that has left the run stays out.

        Raises:
            FieldValueError: If the cell does not exist, or is full.
        """
        cell = index(cell)
        if not 0 <= cell < self.width * self.height:
            raise FieldValueError(f"no cell {cell}: use 0 to {self.width * self.height - 1}")
        if self.cells.get(agent) != cell and not self._has_room(cell):
            raise FieldValueError(f"cell {cell} is full: {self.at(cell)!r}")
        self._settle(agent, cell)

    def beside(self, agent: AgentT) -> AgentSet[AgentT]:
        """Return the other agents in its cell, and those in the cells around it, row by row.

        Raises:
            FieldValueError: If the agent is in no cell.
        """
        cell = self.place_of(agent)
        return AgentSet(
            other
            for each in (*self.near(cell), cell)
            for other in self._inside.get(each, ())
            if other is not agent
        )

    def bring(self, newcomer: AgentT, cell: int) -> None:
        """Put a newcomer into the cell of its parent, or, if that is full, into one around it.

        Raises:
            FieldValueError: If all of these are full.
        """
        for each in (cell, *self.near(cell)):
            if self._has_room(each):
                return self.put(newcomer, each)
        raise FieldValueError(f"there is no room for {newcomer!r} in or around cell {cell}")

    def pictured(self, agents: Sequence[AgentT]) -> dict[str, Any]:
        """Return where some agents are, for the log."""
        size = {"width": self.width, "height": self.height}
        return {"space": "grid", **size, "places": [*map(self.cells.get, agents)]}

    def _has_room(self, cell: int) -> bool:
        return self.capacity is None or len(self._inside.get(cell, ())) < self.capacity


class Layer(list[float]):
    """A list with a number for each cell of a `Space`, row by row, such as grass or a scent.

    Args:
        width: Cells in a row.
        height: Rows.
        value: The first value of each cell.
        wraps: Whether the first row and column are beside the last, for `spread`.
    """

    def __init__(
        self, width: int = 0, height: int = 0, value: float = 0.0, *, wraps: bool = False
    ) -> None:
        super().__init__([value] * (width * height))
        self.width: int = width
        self.height: int = height
        self.wraps: bool = wraps

    def spread(self, share: float) -> None:
        """Let a share of each number flow in equal parts to the four cells beside it.

        At an edge that does not wrap, the parts that would flow out stay.

        Args:
            share: From 0 to 1.
        """
        for cell, value in enumerate([*self]):
            flow = value * share / 4
            for other in _around(self, cell, _FOUR):
                self[cell] -= flow
                self[other] += flow


_FOUR = (-1, 0), (0, -1), (0, 1), (1, 0)
_EIGHT = tuple((down, right) for down in (-1, 0, 1) for right in (-1, 0, 1))
"""Steps down and right to the cells beside one, row by row."""


def _around(ground: Space[Any] | Layer, cell: int, steps: Iterable[tuple[int, int]]) -> list[int]:
    """Return the cells to which some steps lead."""
    width, height = ground.width, ground.height
    row, column = divmod(cell, width)
    cells = [(row + down, column + right) for down, right in steps]
    if ground.wraps:
        cells = [(down % height, right % width) for down, right in cells]
    return [
        down * width + right for down, right in cells if 0 <= down < height and 0 <= right < width
    ]


class Plane(_Ground[AgentT, Position]):
    """A flat space with arbitrary positions, and neighbours within a distance.

    Make it in `World.setup`, and keep it in a field: ``sky: Plane[Bird] = state(Plane)``. Positions
    are floats, x from 0 to the width and y from 0 to the height.

    Args:
        width: Its width.
        height: Its height.
        radius: The usual distance within which you look for neighbours. Other distances work, but
            this one is the fastest.
        wraps: Whether one side is beside the opposite one (a torus).

    Attributes:
        positions: The position of each agent. Change it with `put`.
    """

    def __init__(
        self, width: float = 1.0, height: float = 1.0, radius: float = 0.1, *, wraps: bool = False
    ) -> None:
        super().__init__()
        self.width: float = width
        self.height: float = height
        self.radius: float = radius
        self.wraps: bool = wraps
        self.positions: dict[AgentT, Position] = self._positions
        # cells are larger than the radius
        self._columns = max(1, ceil(width / radius) - 1)
        self._rows = max(1, ceil(height / radius) - 1)

    def put(self, agent: AgentT, x: float, y: float) -> None:
        """Put an agent at a position. It leaves its previous one.

        In a plane that wraps, a position beyond one side enters from the opposite one. An agent
        that has left the run stays out.

        Raises:
            FieldValueError: If it is not a position, or outside a plane that does not wrap.
        """
        if self.wraps:
            x, y = x % self.width, y % self.height
        if not (0 <= x <= self.width and 0 <= y <= self.height):
            raise FieldValueError(f"({x!r}, {y!r}) is outside {self.width} by {self.height}")
        self._settle(agent, (float(x), float(y)))

    def bring(self, newcomer: AgentT, place: Position) -> None:
        """Put a newcomer where its parent is."""
        self.put(newcomer, *place)

    def within(self, agent: AgentT, distance: float) -> AgentSet[AgentT]:
        """Return the other agents within a distance.

        They are in the order of their ids.

        Args:
            agent: The agent in the middle.
            distance: The largest distance.

        Raises:
            FieldValueError: If the agent has no position.
        """
        here = self.place_of(agent)
        positions, away = self.positions, self._away
        near: list[Any] = [
            other
            for cell in self._cells_around(here, distance)
            for other in cell
            if other is not agent and hypot(*away(here, positions[other])) <= distance
        ]
        return AgentSet(sorted(near, key=_BY_ID))

    def towards(self, one: AgentT, other: AgentT) -> tuple[float, float]:
        """Return the shortest way from one agent to another, to the right and down.

        Either number may be negative.

        Raises:
            FieldValueError: If one of them has no position.
        """
        return self._away(self.place_of(one), self.place_of(other))

    def pictured(self, agents: Sequence[AgentT]) -> dict[str, Any]:
        """Return where some agents are, for the log."""
        size = {"width": self.width, "height": self.height}
        positions = map(self.positions.get, agents)
        rounded = [each and [round(value, _DIGITS) for value in each] for each in positions]
        return {"space": "plane", **size, "places": rounded}

    def _away(self, here: Position, there: Position) -> Position:
        right, down = there[0] - here[0], there[1] - here[1]
        if self.wraps:
            right -= round(right / self.width) * self.width
            down -= round(down / self.height) * self.height

        return right, down

    def _cell_at(self, position: Position) -> tuple[int, int]:
        x, y = position
        # the far edge belongs to the last cell
        return (
            min(int(x / self.width * self._columns), self._columns - 1),
            min(int(y / self.height * self._rows), self._rows - 1),
        )

    def _cells_around(self, here: Position, distance: float) -> Iterable[Iterable[AgentT]]:
        """Return the agents of each cell of which some part may lie within a distance."""
        cells, columns, rows = self._inside, self._columns, self._rows
        across = int(min(distance / self.width, 1) * columns) + 1
        along = int(min(distance / self.height, 1) * rows) + 1
        # a large distance covers everybody
        if (2 * across + 1) * (2 * along + 1) > len(cells):
            return cells.values()
        column, row = self._cell_at(here)
        near: Iterable[tuple[int, int]] = product(
            range(column - across, column + across + 1), range(row - along, row + along + 1)
        )
        if self.wraps:
            near = dict.fromkeys((x % columns, y % rows) for x, y in near)
        return [cells[cell] for cell in near if cell in cells]
