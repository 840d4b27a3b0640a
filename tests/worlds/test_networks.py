"""Networks of a world's agents."""

from collections import Counter
from collections.abc import Callable
from math import comb
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism import Run
from prism.errors import FieldValueError
from prism.examples.rumour import Person
from prism.worlds import (
    Network,
    World,
    from_edges,
    grid,
    random_graph,
    ring,
    scale_free,
    small_world,
)
from tests.kit.laws import p_of_counts, p_of_outcomes
from tests.kit.modules import Later

networkx = Later("networkx")
numpy = Later("numpy")

Make = Callable[[World[Person]], Network[Person]]


class Town(World[Person]):
    """People without a network."""


def network_of(make: Make, agents: int, seed: int = 0) -> tuple[Network[Person], Town]:
    """Return a network of a new world, which is its network."""
    world = Town()
    _ = Run(world, agents, seed=seed).agents
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
@pytest.mark.sampled(3)
def test_networks_are_mutual_and_their_seeds(name: str, seed: int, rows: int) -> None:
    """Nobody is connected with itself or twice, all connections are mutual, and seeds decide."""
    network, world = network_of(MAKES[name], 4 * rows, seed)
    for agent in world.agents:
        assert agent not in agent.neighbours
        assert len(set(agent.neighbours)) == len(agent.neighbours)
        assert all(agent in other.neighbours for other in agent.neighbours)

    ends = sum(len(agent.neighbours) for agent in world.agents)
    assert 2 * len(network) == 2 * len(list(network.edges())) == ends
    assert network_of(MAKES[name], 4 * rows, seed)[0].pairs() == network.pairs()


def in_rows(graph: Any) -> Any:
    """Return a graph of rows and columns with numbers, row after row."""
    return networkx.convert_node_labels_to_integers(graph, ordering="sorted")


EQUAL_TO_NETWORKX: dict[str, tuple[Make, Callable[[], Any]]] = {
    "ring": (lambda world: ring(world, 6), lambda: networkx.watts_strogatz_graph(20, 6, 0)),
    "small world without rewiring": (
        lambda world: small_world(world, 6, 0.0),
        lambda: networkx.watts_strogatz_graph(20, 6, 0),
    ),
    "grid": (lambda world: grid(world, 5), lambda: in_rows(networkx.grid_2d_graph(4, 5))),
    "grid with diagonals": (
        lambda world: grid(world, 5, diagonal=True),
        lambda: in_rows(networkx.strong_product(networkx.path_graph(4), networkx.path_graph(5))),
    ),
}


@pytest.mark.parametrize("name", EQUAL_TO_NETWORKX)
def test_a_network_without_chance_is_that_of_networkx(name: str) -> None:
    """It has the same connections."""
    make, wanted = EQUAL_TO_NETWORKX[name]
    network, _ = network_of(make, 20)
    assert {*map(frozenset, network.pairs())} == {*map(frozenset, wanted().edges())}


def test_a_small_world_keeps_its_number_of_connections() -> None:
    """Rewiring replaces connections, and leaves some of the ring."""
    network, _ = network_of(lambda world: small_world(world, 6, 0.2), 200)
    of_ring = {frozenset(pair) for pair in network_of(lambda world: ring(world, 6), 200)[0].pairs()}
    kept = sum(frozenset(pair) in of_ring for pair in network.pairs())
    assert len(network) == 600
    assert 430 < kept < 530


@pytest.mark.parametrize(
    "edges",
    [
        [("person_1", "person_2"), ("person_2", "person_3")],
        [(0, 1), (1, 2)],
        lambda: networkx.Graph([(0, 1), (1, 2)]),
        lambda: numpy.array([[0, 1], [1, 2]]),
    ],
)
def test_edges_are_taken_by_id_place_or_graph(edges: Any) -> None:
    """Edges name agents by id or place; a graph of networkx, or an array, is a list of them."""
    taken = edges() if callable(edges) else edges
    network, world = network_of(lambda world: from_edges(world, taken), 3)
    first, second, third = world.agents
    assert list(network.edges()) == [(first, second), (second, third)]


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
        (lambda world: small_world(world, 4, 1.5), "rewired must be from 0 to 1"),
        (lambda world: grid(world, 3), "8 agents do not fill rows of 3"),
        (lambda world: scale_free(world, 2, 2.0), "exponent must be above 2"),
        (lambda world: random_graph(world, -1), "probability must be from 0 to 1"),
        (lambda world: scale_free(world, 8), "at least 1 and below the number of agents, 8; got 8"),
        (lambda world: from_edges(world, [(0, 9)]), "9 is not an agent"),
        (lambda world: from_edges(world, {(0, 1)}), "edges in a set have a different order"),
        (lambda world: from_edges(world, [(1, 1)]), "cannot be connected to itself"),
    ],
)
def test_what_no_network_can_be_is_refused(make: Make, problem: str) -> None:
    """Numbers out of their range and strangers are refused."""
    with pytest.raises(FieldValueError, match=problem):
        network_of(make, 8)


def test_two_networks_of_one_setup_are_not_the_same() -> None:
    """The second network of a setup has numbers of its own."""
    network, world = network_of(lambda world: random_graph(world, 0.5), 20)
    assert random_graph(world, 0.5).pairs() != network.pairs()


@pytest.mark.slow
def test_numbers_of_neighbours_are_distributed_as_in_networkx() -> None:
    """In small worlds of 10,000, they are not told apart (chi-squared, p above .0005)."""
    stats = pytest.importorskip("scipy.stats")
    _, world = network_of(lambda world: small_world(world, 6, 0.3), 10_000)
    ours = Counter(len(agent.neighbours) for agent in world.agents)
    other = networkx.watts_strogatz_graph(10_000, 6, 0.3, seed=1)
    theirs = Counter(dict(other.degree()).values())
    table = [[counts[number] for number in range(3, 12)] for counts in (ours, theirs)]
    assert stats.chi2_contingency(table).pvalue > 0.0005


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [2.2, 2.5, 3.0, 4.0])
def test_a_scale_free_network_has_the_exponent_that_it_should(exponent: float) -> None:
    """Connections that lead to agents are distributed as by Price's formula, within 2 %."""
    special = pytest.importorskip("scipy.special")
    made, size = 4, 20_000
    _, world = network_of(lambda world: scale_free(world, made, exponent), size)
    led = Counter(len(agent.neighbours) - made for agent in world.agents[100:])
    of_nobody = made * (exponent - 2)
    seen = expected = 0.0
    for number in range(40):
        seen += led[number] / (size - 100)
        expected += special.beta(number + of_nobody, exponent) / special.beta(
            of_nobody, exponent - 1
        )
        assert seen == pytest.approx(expected, abs=0.02)


@pytest.mark.slow
def test_each_pair_of_a_random_graph_is_as_likely() -> None:
    """In 2,000 graphs of six agents, pairs and numbers of pairs are distributed as they should."""
    graphs = [
        network_of(lambda world: random_graph(world, 0.3), 6, seed)[0] for seed in range(2000)
    ]
    pairs = Counter(pair for graph in graphs for pair in graph.pairs())
    assert p_of_counts([*pairs.values()], [1 / 15] * 15) > 0.0005
    sizes = [len(graph) for graph in graphs]
    assert p_of_outcomes(sizes, lambda n: comb(15, n) * 0.3**n * 0.7 ** (15 - n), 8) > 0.0005
