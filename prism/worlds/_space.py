"""Cells in rows, in each of which there is room for one agent."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from prism.errors import FieldValueError
from prism.worlds._agent import Thing
from prism.worlds._fields import state

AgentT = TypeVar("AgentT")


class Space(Thing, Generic[AgentT]):
    """Cells in rows, numbered from 0 on, in each of which there is room for one agent.

    Make it in a world's `World.setup`, and keep it in a field: ``town: Space[Resident] = state()``.

    Args:
        width: Cells in a row.
        height: Rows.
        wraps: Whether the first row and column are beside the last.

    Attributes:
        width: Cells in a row.
        height: Rows.
        wraps: Whether the first row and column are beside the last.
        taken: Who is where, by cell.
        cells: Where each agent is.
    """

    width: int = 0
    height: int = 0
    wraps: bool = False
    taken: dict[int, AgentT] = state(dict)
    cells: dict[AgentT, int] = state(dict)

    def free(self) -> list[int]:
        """Return the cells in which there is nobody."""
        return [cell for cell in range(self.width * self.height) if cell not in self.taken]

    def put(self, agent: AgentT, cell: int) -> None:
        """Put an agent into a free cell; it leaves the one in which it was.

        Raises:
            FieldValueError: If there is no such cell, or somebody is in it.
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
        """Take an agent out of its cell; nothing happens if it is in none."""
        if agent in self.cells:
            del self.taken[self.cells.pop(agent)]

    def beside(self, agent: AgentT) -> list[AgentT]:
        """Return who is in the cells around an agent's, corners included, row by row."""
        row, column = divmod(self.cells[agent], self.width)
        around = [(row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
        found: list[Any] = [self._at(*place) for place in around]

        # of a small space that wraps, some places are the same
        return [other for other in dict.fromkeys(found) if other not in (None, agent)]

    def _at(self, row: int, column: int) -> AgentT | None:
        if self.wraps:
            row, column = row % self.height, column % self.width
        elif not (0 <= row < self.height and 0 <= column < self.width):
            return None

        return self.taken.get(row * self.width + column)
