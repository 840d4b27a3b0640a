"""Networks of follows, held against networkx."""

from math import log
from typing import Any

import pytest

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.errors import FieldValueError, InputError
from prism.social import Feed
from tests.kit.later import Later

networkx = Later("networkx")

KINDS = ("scale_free", "small_world", "blocks", "random")


def made(size: int = 200, seed: int = 1, **changed: Any) -> Any:
    """Return a network as a graph of networkx."""
    agents = list(synthetic_population(size, seed=seed).agents)
    connect(agents, changed, seed)
    return graph_of(agents)


def connect(agents: list[SocialAgent], parameters: dict[str, Any], seed: int) -> None:
    """Have agents follow each other as those of a run do."""
    _ = Run(Feed(first_posts=(), **parameters), agents, seed=seed).agents


def graph_of(agents: list[SocialAgent]) -> Any:
    graph = networkx.DiGraph()
    graph.add_nodes_from(agent.agent_id for agent in agents)
    graph.add_edges_from((agent.agent_id, other) for agent in agents for other in agent.following)
    return graph


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mean", "reciprocity"), [(4.5, 0.0), (10.0, 0.36), (6.0, 1.0)])
@pytest.mark.sampled(12)
def test_mean_and_reciprocity_are_met(kind: str, mean: float, reciprocity: float) -> None:
    """networkx measures the mean degree and the reciprocity that were asked for."""
    graph = made(follow_network=kind, mean_follows=mean, reciprocity=reciprocity)
    assert graph.number_of_edges() / 200 == pytest.approx(mean, abs=0.01)
    assert networkx.overall_reciprocity(graph) == pytest.approx(reciprocity, abs=0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(4)
def test_the_order_of_agents_changes_no_network(kind: str) -> None:
    """Agents follow the same others when the list is reversed; another seed gives another graph."""
    agents = list(synthetic_population(60).agents)
    connect(agents, {"follow_network": kind}, 5)
    before = {agent.agent_id: agent.following for agent in agents}
    connect(agents[::-1], {"follow_network": kind}, 5)
    assert {agent.agent_id: agent.following for agent in agents} == before
    connect(agents, {"follow_network": kind}, 6)
    assert {agent.agent_id: agent.following for agent in agents} != before


@pytest.mark.slow
def test_small_worlds_are_clustered_and_small() -> None:
    """Clustering is near a lattice's without rewiring, and a random graph's with all of it."""
    lattice, small, chance = (
        made(
            follow_network="small_world", rewired=share, mean_follows=6, reciprocity=1
        ).to_undirected()
        for share in (0.0, 0.1, 1.0)
    )
    # of a ring of six neighbours it is 3 (k - 2) / 4 (k - 1)
    assert networkx.average_clustering(lattice) == pytest.approx(3 * 4 / (4 * 5), abs=0.001)
    assert networkx.average_clustering(small) > 10 * networkx.average_clustering(chance)
    lengths = [networkx.average_shortest_path_length(graph) for graph in (lattice, small)]
    assert lengths[1] < lengths[0] / 3


def test_blocks_keep_their_share_of_follows() -> None:
    """The share of follows within a block is what the parameter says."""
    agents = [
        SocialAgent(f"a{number}", attributes={"party": "red" if number % 3 else "blue"})
        for number in range(300)
    ]
    changed = {
        "follow_network": "blocks",
        "block_by": "party",
        "within_block": 0.7,
        "reciprocity": 0,
    }
    connect(agents, changed, 1)
    party = {agent.agent_id: agent.attributes["party"] for agent in agents}
    within = [
        party[other] == party[agent.agent_id] for agent in agents for other in agent.following
    ]
    assert sum(within) / len(within) == pytest.approx(0.7, abs=0.001)


def test_networks_of_networkx_are_taken() -> None:
    """Generators get size and seed, and graphs without directions the reciprocity."""
    graph = made(follow_network="networkx:watts_strogatz_graph(k=6, p=0.2)", reciprocity=0.5)
    assert graph.to_undirected().number_of_edges() == 200 * 3
    assert networkx.overall_reciprocity(graph) == pytest.approx(0.5, abs=0.01)

    club = networkx.karate_club_graph()
    taken = made(34, follow_network="networkx:karate_club_graph", reciprocity=1)
    assert sorted(dict(club.degree()).values()) == sorted(dict(taken.in_degree()).values())


def star(agents: Any, stream: Any) -> Any:
    """Have everybody follow one agent."""
    return [(agent.agent_id, agents[0].agent_id) for agent in agents[1:]]


def test_a_function_of_ones_own_makes_a_network() -> None:
    """A function by its address says who follows whom."""
    graph = made(30, follow_network=f"{__file__}:star")
    assert sorted(dict(graph.in_degree()).values()) == [0] * 29 + [29]


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("scalefree", "network must be one of given, scale_free"),
        ("networkx:no_such_graph()", "networkx has no function 'no_such_graph'"),
        ("networkx:karate_club_graph", "34 nodes for 10 agents"),
        ("networkx:barabasi_albert_graph(m=99)", "failed: "),
        ("networkx:path_graph(__import__('os'))", "must be written as in"),
        ("networkx:generators.path_graph()", "must be written as in"),
        ("no.such.module:function", "no module"),
    ],
)
def test_a_network_that_cannot_be_made_is_refused(network: str, message: str) -> None:
    """The message says what was wrong with it."""
    with pytest.raises((FieldValueError, InputError), match=message):
        made(10, follow_network=network)


def test_a_block_that_agents_do_not_have_is_refused() -> None:
    """The message names the agent and how to keep the column."""
    with pytest.raises(FieldValueError, match=r"has no attribute 'city': load .* keep=\['city'\]"):
        made(10, follow_network="blocks", mean_follows=2, block_by="city")


def test_too_many_follows_are_refused() -> None:
    """Agents cannot follow more others than there are."""
    with pytest.raises(FieldValueError, match="mean_follows must be smaller"):
        made(10, follow_network="random", mean_follows=20)


@pytest.mark.long
@pytest.mark.parametrize("exponent", [2.3, 3.0])
def test_followers_have_a_power_law(exponent: float) -> None:
    """Of the shifted power law of a growing network, the exponent is what was asked for."""
    graph = made(20_000, follow_network="scale_free", follower_exponent=exponent, reciprocity=0)
    copying = 1 / (exponent - 1)
    shift = 10 * (1 - copying) / copying
    tail = [degree for _, degree in graph.in_degree() if degree >= 20]

    # Clauset, Shalizi and Newman (2009), equation 3.7, of k + shift
    found = 1 + len(tail) / sum(log((k + shift) / (20 + shift - 0.5)) for k in tail)
    assert len(tail) > 1000
    assert found == pytest.approx(exponent, abs=0.12)
