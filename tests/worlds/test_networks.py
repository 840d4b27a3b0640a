"""Networks and spaces of a world's agents."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.errors import FieldValueError, SimulationError
from prism.worlds import (
    Network,
    Run,
    Space,
    World,
    from_edges,
    grid,
    random_graph,
    ring,
    scale_free,
    small_world,
    state,
)
from prism.worlds.examples.rumour import Person
from tests.kit.lamps import Lamp

Make = Callable[[World[Person]], Network[Person]]


class Town(World[Person]):
    """People without a network."""


def network_of(make: Make, agents: int, seed: int = 0) -> tuple[Network[Person], Town]:
    """Return a network of a new world, which is its network."""
    world = Town()
    Run(world, agents, seed=seed)
    world.network = network = make(world)
    return network, world


MAKES: dict[str, Make] = {
    "ring": lambda world: ring(world, 4),
    "small_world": lambda world: small_world(world, 4, 0.5),
    "grid": lambda world: grid(world, 4, diagonal=True),
    "random_graph": lambda world: random_graph(world, 0.4),
    "scale_free": lambda world: scale_free(world, 2),
}


@pytest.mark.parametrize("name", MAKES)
@given(seed=st.integers(0, 999), rows=st.integers(3, 12))
@settings(max_examples=10)
def test_networks_are_mutual_and_their_seeds(name: str, seed: int, rows: int) -> None:
    """Nobody is connected with itself or twice, all connections are mutual, and seeds decide."""
    network, world = network_of(MAKES[name], 4 * rows, seed)
    for agent in world.agents:
        assert agent not in agent.neighbours
        assert len(set(agent.neighbours)) == len(agent.neighbours)
        assert all(agent in other.neighbours for other in agent.neighbours)
        assert network.neighbours(agent) == agent.neighbours

    ends = sum(len(agent.neighbours) for agent in world.agents)
    assert 2 * len(network) == 2 * len(list(network.edges())) == ends
    assert network_of(MAKES[name], 4 * rows, seed)[0].pairs() == network.pairs()


def test_a_ring_is_that_of_networkx() -> None:
    """A ring, and a small world without rewiring, are Watts and Strogatz's beginning."""
    for make in (lambda world: ring(world, 6), lambda world: small_world(world, 6, 0.0)):
        network, _ = network_of(make, 20)
        wanted = networkx.watts_strogatz_graph(20, 6, 0)
        assert {frozenset(pair) for pair in network.pairs()} == set(map(frozenset, wanted.edges()))


@pytest.mark.parametrize("wraps", [False, True])
def test_a_grid_is_that_of_networkx(wraps: bool) -> None:
    """A grid has the connections of networkx's."""
    network, _ = network_of(lambda world: grid(world, 5, wraps=wraps), 20)
    wanted = networkx.grid_2d_graph(4, 5, periodic=wraps)
    pairs = {frozenset((row * 5 + column for row, column in edge)) for edge in wanted.edges()}
    assert {frozenset(pair) for pair in network.pairs()} == pairs


def test_a_small_world_keeps_its_number_of_connections() -> None:
    """Rewiring replaces connections, and leaves some of the ring."""
    network, _ = network_of(lambda world: small_world(world, 6, 0.2), 200)
    of_ring = {frozenset(pair) for pair in network_of(lambda world: ring(world, 6), 200)[0].pairs()}
    kept = sum(frozenset(pair) in of_ring for pair in network.pairs())
    assert len(network) == 600
    assert 430 < kept < 530


def test_a_scale_free_network_has_hubs() -> None:
    """The best connected agents have many times the median's neighbours."""
    _, world = network_of(lambda world: scale_free(world, 2), 400)
    degrees = sorted(len(agent.neighbours) for agent in world.agents)
    assert degrees[-1] > 10 * degrees[200]


def test_a_random_graph_has_the_connections_that_it_should() -> None:
    """The number of connections is near the probability times that of all pairs."""
    network, _ = network_of(lambda world: random_graph(world, 0.1), 200)
    assert 1800 < len(network) < 2180


@pytest.mark.parametrize(
    "edges",
    [
        [("person_1", "person_2"), ("person_2", "person_3")],
        [(0, 1), (1, 2)],
        networkx.Graph([(0, 1), (1, 2)]),
    ],
)
def test_edges_are_taken_by_id_place_or_graph(edges: Any) -> None:
    """Edges name agents by id or place; a graph of networkx is a list of them."""
    network, world = network_of(lambda world: from_edges(world, edges), 3)
    first, second, third = world.agents
    assert list(network.edges()) == [(first, second), (second, third)]


def test_a_directed_connection_leads_one_way() -> None:
    """Who is connected by a directed edge is a neighbour, and not the other way round."""
    _, world = network_of(lambda world: from_edges(world, [(0, 1)], directed=True), 2)
    assert [len(agent.neighbours) for agent in world.agents] == [1, 0]


def test_connections_come_and_go() -> None:
    """Connecting and disconnecting changes the neighbours of both."""
    network, world = network_of(lambda world: from_edges(world, [(0, 1)]), 3)
    first, second, third = world.agents
    network.connect(first, third)
    network.disconnect(second, first)
    assert [each.neighbours for each in world.agents] == [(third,), (), (first,)]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda world: ring(world, 3), "neighbours must be even"),
        (lambda world: ring(world, 8), "below the number of agents"),
        (lambda world: small_world(world, 4, 1.5), "rewired must be from 0 to 1"),
        (lambda world: grid(world, 3), "8 agents do not fill rows of 3"),
        (lambda world: grid(world, 2, wraps=True), "too small to wrap"),
        (lambda world: random_graph(world, -1), "probability must be from 0 to 1"),
        (lambda world: scale_free(world, 8), "neighbours must be from 1 to 7"),
        (lambda world: from_edges(world, [(0, 9)]), "9 is no agent"),
        (lambda world: from_edges(world, [("bob", 1)]), "'bob' is no agent"),
        (lambda world: from_edges(world, {(0, 1)}), "edges in a set have another order"),
        (lambda world: from_edges(world, [(1, 1)]), "cannot be connected with itself"),
    ],
)
def test_what_no_network_can_be_is_refused(make: Make, problem: str) -> None:
    """Numbers out of their range and strangers are refused."""
    with pytest.raises(FieldValueError, match=problem):
        network_of(make, 8)


def test_a_world_without_a_network_says_so() -> None:
    """Asking for a network that nobody set tells how to set one."""
    world = Town()
    Run(world, 3)
    with pytest.raises(SimulationError, match=r"set one in setup, such as  self.network = small_w"):
        _ = world.network


def test_two_networks_of_one_setup_are_not_the_same() -> None:
    """The second network of a setup has numbers of its own."""

    class Twice(World[Person]):
        """Makes two."""

        def setup(self) -> None:
            """Make two networks."""
            found.extend(random_graph(self, 0.5).pairs() for _ in range(2))

    found: list[list[tuple[int, int]]] = []
    Run(Twice(), 20)
    assert found[0] != found[1]
    assert Counter(map(len, found)).total() == 2


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
