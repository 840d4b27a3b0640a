"""Cells in rows, with room for one agent each."""

import pytest

from prism.errors import FieldValueError
from prism.worlds import Run, Space, World, state
from tests.kit.lamps import Lamp


class Hall(World[Lamp]):
    """Lamps in cells."""

    hall: Space[Lamp] = state(Space)

    def setup(self) -> None:
        """Put lamps into a row of cells, the last one into the last cell."""
        self.hall = Space(width=3, height=3)
        for lamp, cell in zip(self.agents, (0, 1, 8), strict=True):
            self.hall.put(lamp, cell)


@pytest.fixture
def hall() -> Space[Lamp]:
    """Return a space of nine cells with three lamps."""
    return Run(Hall(), 3).world.hall


def test_who_is_beside_whom(hall: Space[Lamp]) -> None:
    """Those in the eight cells around are beside an agent; no cell is beyond an edge."""
    first, second, last = hall.cells
    assert hall.beside(first) == [second]
    assert hall.beside(last) == []


def test_edges_that_wrap_are_beside_each_other(hall: Space[Lamp]) -> None:
    """In a space that wraps, the last cell is beside the first, and nobody is named twice."""
    first, second, last = hall.cells
    hall.wraps = True
    assert hall.beside(first) == [last, second]


def test_an_agent_leaves_the_cell_in_which_it_was(hall: Space[Lamp]) -> None:
    """Who is put elsewhere frees a cell; who is removed frees one, too, once."""
    first, second, _ = hall.cells
    hall.put(first, 4)
    assert (hall.taken[4], hall.cells[first]) == (first, 4)
    hall.remove(second)
    hall.remove(second)
    assert hall.free() == [0, 1, 2, 3, 5, 6, 7]


@pytest.mark.parametrize(("cell", "problem"), [(9, "no cell 9: use 0 to 8"), (1, "is taken by")])
def test_a_cell_that_is_not_free_is_refused(hall: Space[Lamp], cell: int, problem: str) -> None:
    """A cell that does not exist, or has somebody in it, is refused."""
    with pytest.raises(FieldValueError, match=problem):
        hall.put(next(iter(hall.cells)), cell)


def test_a_space_is_kept() -> None:
    """A restored run has the same agents in the same cells."""
    first = Run(Hall(), 3, rounds=1)
    first.run()
    again = Run(Hall(), 3, rounds=1)
    again.restore(first.snapshot(), [])
    assert [lamp.agent_id for lamp in again.world.hall.taken.values()] == [
        lamp.agent_id for lamp in first.world.hall.taken.values()
    ]
