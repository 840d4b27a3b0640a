"""Spaces: cells in rows, and a plane."""

from math import hypot, inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism import Run
from prism.errors import FieldValueError
from prism.worlds import AgentSet, Layer, Plane, Space, World, state
from tests.kit.lamps import Lamp


class Hall(World[Lamp]):
    """Lamps in cells."""

    hall: Space[Lamp] = state(Space)

    def setup(self) -> None:
        self.hall = Space(width=3, height=3)
        for lamp, cell in zip(self.agents, (0, 1, 8), strict=True):
            self.hall.put(lamp, cell)


@pytest.fixture
def hall() -> Space[Lamp]:
    """Return a space of nine cells with three lamps."""
    return Run(Hall(), 3).world.hall


@pytest.mark.parametrize(
    ("wraps", "beside"), [(False, [[1], [0], []]), (True, [[2, 1], [2, 0], [1, 0]])]
)
def test_who_is_beside_whom(hall: Space[Lamp], wraps: bool, beside: list[list[int]]) -> None:
    """Those in the eight cells around, each once; no cell is beyond an edge that does not wrap."""
    hall.wraps, lamps = wraps, [*hall.cells]
    assert [[lamps.index(each) for each in hall.beside(lamp)] for lamp in lamps] == beside


def test_a_cell_with_room_for_two_takes_two(hall: Space[Lamp]) -> None:
    """They are beside each other, one may be put there again, and a third has no room."""
    hall.capacity, (one, other, third) = 2, hall.cells
    hall.put(other, 0)
    hall.put(one, 0)
    assert [*hall.beside(one)] == [other]
    assert [*hall.at(0)] == [other, one]
    with pytest.raises(FieldValueError, match="cell 0 is full"):
        hall.put(third, 0)
    with pytest.raises(TypeError, match="'float' object"):
        hall.put(third, 1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("cell", "problem"), [(9, "no cell 9: use 0 to 8"), (1, "cell 1 is full")])
def test_a_cell_that_is_not_free_is_refused(hall: Space[Lamp], cell: int, problem: str) -> None:
    """A cell that does not exist, or has somebody in it, is refused."""
    with pytest.raises(FieldValueError, match=problem):
        hall.put(next(iter(hall.cells)), cell)


@pytest.mark.parametrize(("capacity", "cell"), [(1, 3), (2, 0), (None, 0)])
def test_a_newcomer_begins_beside_its_parent(capacity: int | None, cell: int) -> None:
    """In its cell, if there is room, or else in the first one around it that is free."""

    class Nest(Hall):
        rounds = 1

        def round_begins(self) -> None:
            self.hall.capacity = capacity
            self.add(Lamp(agent_id="child"), at=self.agents[0])

    run = Run(Nest(), 3)
    run.run()
    assert [each.agent_id for each in run.world.hall.at(cell)][-1] == "child"


@pytest.mark.parametrize(
    ("wraps", "after"),
    [(False, [6, 1, 0, 1, 0, 0]), (True, [4, 1, 1, 2, 0, 0])],
)
def test_what_spreads_stays_or_flows_on(wraps: bool, after: list[float]) -> None:
    """A part goes to each of the four cells beside, and what has nowhere to go stays."""
    scent = Layer(3, 2, wraps=wraps)
    scent[0] = 8
    scent.spread(0.5)
    assert scent == after


class Sky(World[Lamp]):
    """Lamps somewhere."""

    sky: Plane[Lamp] = state(Plane)

    def setup(self) -> None:
        self.sky = Plane(width=10.0, height=5.0, radius=1.0, wraps=True)
        for lamp in self.agents:
            self.sky.put(lamp, 10 * lamp.random.random(), 5 * lamp.random.random())


def far(plane: Plane[Any], one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the shortest of all ways from one position to another, one by one."""
    rounds = (-1, 0, 1) if plane.wraps else (0,)
    return min(
        hypot(
            other[0] + right * plane.width - one[0],
            other[1] + down * plane.height - one[1],
        )
        for right in rounds
        for down in rounds
    )


@pytest.mark.slow
@given(
    wraps=st.booleans(),
    size=st.tuples(st.sampled_from([1.0, 3.0, 10.0]), st.sampled_from([0.5, 3.0])),
    radius=st.sampled_from([0.1, 0.5, 1.0, 3.0, 50.0, inf]),
    distance=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0, 4.0, 20.0]),
    places=st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=12, max_size=12),
)
@settings(max_examples=2 * settings().max_examples)
def test_neighbours_in_a_plane_are_those_that_a_look_at_everybody_finds(
    wraps: bool,
    size: tuple[float, float],
    radius: float,
    distance: float,
    places: list[tuple[int, int]],
) -> None:
    """On a grid of positions, where edges and distances meet, cells miss nobody."""
    run = Run(Sky(), len(places))
    plane: Plane[Lamp] = Plane(width=size[0], height=size[1], radius=radius, wraps=wraps)
    for lamp, (x, y) in zip(run.world.agents, places, strict=True):
        plane.put(lamp, size[0] * x / 10, size[1] * y / 10)

    for lamp in run.world.agents:
        found = plane.within(lamp, distance)
        for other in run.world.agents:
            away = far(plane, plane.positions[lamp], plane.positions[other])
            assert hypot(*plane.towards(lamp, other)) == pytest.approx(away)
            if other is not lamp and abs(away - distance) > 1e-9:
                assert (other in found) == (away <= distance)


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("width", [10.0, 2.5])
def test_a_crowd_misses_no_neighbour(wraps: bool, width: float) -> None:
    """Among so many that only the cells around are looked at, all within the distance are there."""
    lamps = Run(Sky(), 150).world.agents
    plane: Plane[Lamp] = Plane(width=width, height=50 / width, radius=1.0, wraps=wraps)
    for number, lamp in enumerate(lamps):
        plane.put(lamp, width * (number * 0.618 % 1), 50 / width * (number * 0.755 % 1))
    plane.put(lamps[0], width, 50 / width)  # at the far edge
    for lamp in lamps:
        here = plane.positions[lamp]
        near = [each for each in lamps if far(plane, here, plane.positions[each]) <= 0.9]
        assert sorted([lamp, *plane.within(lamp, 0.9)], key=lamps.index) == near


def test_an_agent_moves_in_a_plane() -> None:
    """Who is put elsewhere is found there alone, beyond an edge on the other side."""
    run = Run(Sky(), 2)
    plane, (one, other) = run.world.sky, run.world.agents
    plane.put(other, 5, 2.5)
    for x, y in [(5, 2.6), (15.2, -2.5), (-5.2, 7.6)]:
        plane.put(one, x, y)
        assert plane.within(other, 0.3) == (one,)
    plane.put(one, 0.1, 0)
    plane.put(other, 9.9, 0)
    assert plane.towards(other, one) == pytest.approx((0.2, 0))
    plane.remove(other)
    plane.remove(other)
    assert plane.within(one, 100) == AgentSet()


@pytest.mark.parametrize(("x", "y"), [(-0.1, 0), (0, 1.1), (nan, 0), (inf, 0)])
def test_a_position_outside_is_refused(x: float, y: float) -> None:
    """A plane that does not wrap has an end, and no plane has a position that is no number."""
    lamp = Run(Sky(), 1).world.agents[0]
    plane: Plane[Lamp] = Plane()
    with pytest.raises(FieldValueError, match="is outside"):
        plane.put(lamp, x, y)
    plane.put(lamp, 1, 1)
    assert plane.within(lamp, 1) == ()


def test_who_was_never_put_somewhere_has_no_neighbours() -> None:
    """In a space or a plane alike, the message names the agent and says what to do."""
    world = Run(Sky(), 2).world
    one, other = world.agents
    world.sky.remove(one)
    for look in (
        lambda: world.sky.within(one, 1),
        lambda: world.sky.towards(one, other),
        lambda: Space[Lamp](width=3, height=3).beside(one),
    ):
        with pytest.raises(FieldValueError, match="<Lamp lamp_1 in off> is nowhere in this space"):
            look()
