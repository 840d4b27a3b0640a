"""Networks of a world's agents."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prism import Run
from prism.errors import FieldTypeError, FieldValueError
from prism.examples.rumour import Person
from prism.worlds import Network, World, from_edges, small_world
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


@example(seed=2, agents=6)  # in which some are connected with all others
@given(seed=st.integers(0, 999), agents=st.integers(5, 48))
def test_networks_are_mutual_and_their_seeds(seed: int, agents: int) -> None:
    """Nobody is connected with itself or twice, all connections are mutual, and seeds decide."""
    network, world = network_of(lambda world: small_world(world, 4, 0.5), agents, seed)
    for agent in world.agents:
        assert agent not in agent.neighbours
        assert len(set(agent.neighbours)) == len(agent.neighbours)
        assert all(agent in other.neighbours for other in agent.neighbours)

    ends = sum(len(agent.neighbours) for agent in world.agents)
    assert 2 * len(network.pairs()) == ends
    again, _ = network_of(lambda world: small_world(world, 4, 0.5), agents, seed)
    assert again.pairs() == network.pairs()


def test_a_small_world_without_rewiring_is_the_ring_of_networkx() -> None:
    """It has the same connections."""
    network, _ = network_of(lambda world: small_world(world, 6, 0), 20)
    wanted = networkx.watts_strogatz_graph(20, 6, 0).edges()
    assert {*map(frozenset, network.pairs())} == {*map(frozenset, wanted)}


def test_a_small_world_keeps_its_number_of_connections() -> None:
    """Rewiring replaces connections, and leaves some of the ring."""
    network, _ = network_of(lambda world: small_world(world, 6, 0.2), 200)
    ring, world = network_of(lambda world: small_world(world, 6, 0), 200)
    # the next one of a setup has numbers of its own
    assert small_world(world, 6, 0.2).pairs() != network.pairs()
    assert len(network.pairs()) == 600
    kept = len({*map(frozenset, ring.pairs())} & {*map(frozenset, network.pairs())})
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
    assert network.pairs() == [(0, 1), (1, 2)]
    assert (first.neighbours, third.neighbours) == ((second,), (second,))


def test_connections_come_and_go() -> None:
    """Connecting and disconnecting changes the neighbours of both."""
    network, world = network_of(lambda world: from_edges(world, [(0, 1)]), 3)
    first, second, third = world.agents
    network.connect(first, third)
    network.disconnect(second, first)
    assert [each.neighbours for each in world.agents] == [(third,), (), (first,)]
    third.leave()
    network.join(third, [first, second])
    assert [each.neighbours for each in (first, second, third)] == [(), (), ()]
    with pytest.raises(FieldValueError, match="'person_2' is not in the network"):
        network.connect(first, "person_2")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda world: small_world(world, 3, 0), "neighbours must be even"),
        (lambda world: from_edges(world, [(0, 9)]), "9 is not an agent"),
        (lambda world: from_edges(world, [(1, 1)]), "cannot be connected to itself"),
        (lambda _: networkx.path_graph(3), "must be a Network, got <.*write  self.network = from_"),
    ],
)
def test_what_no_network_can_be_is_refused(make: Make, problem: str) -> None:
    """Numbers out of their range and strangers are refused."""
    with pytest.raises((FieldValueError, FieldTypeError), match=problem):
        network_of(make, 8)


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
