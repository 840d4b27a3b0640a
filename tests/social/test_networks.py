"""Networks of follows, held against networkx."""

from collections import Counter
from typing import Any

import pytest

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.social import Feed
from tests.kit.modules import Later

networkx = Later("networkx")


def follows(agents: Any, seed: int = 1, **parameters: Any) -> dict[str, tuple[str, ...]]:
    """Return whom each agent of a run follows."""
    feed = Feed(first_posts=(), **parameters)
    Run(feed, agents, seed=seed).prepare(None)
    return {reader.agent_id: tuple(reader.follows) for reader in feed.agents}


def network_of(size: int = 200, **parameters: Any) -> Any:
    """Return a network as a graph of networkx."""
    found = follows(synthetic_population(size, seed=1).agents, **parameters)
    graph = networkx.DiGraph()
    graph.add_nodes_from(found)
    graph.add_edges_from((one, other) for one, others in found.items() for other in others)
    return graph


@pytest.mark.parametrize(("mean", "reciprocity"), [(4.5, 0.0), (10.0, 0.36), (6.0, 1.0)])
def test_mean_and_reciprocity_are_met(mean: float, reciprocity: float) -> None:
    """networkx measures the mean degree and the reciprocity that were asked for."""
    graph = network_of(follow_network="scale_free", mean_follows=mean, reciprocity=reciprocity)
    assert graph.number_of_edges() / 200 == pytest.approx(mean, abs=0.01)
    assert networkx.overall_reciprocity(graph) == pytest.approx(reciprocity, abs=0.01)


def test_the_order_of_agents_changes_no_network() -> None:
    """Agents follow the same others when the list is reversed; another seed gives another graph."""
    agents = list(synthetic_population(60).agents)
    before = follows(agents, 5, follow_network="scale_free")
    assert follows(agents[::-1], 5, follow_network="scale_free") == before
    assert follows(agents, 6, follow_network="scale_free") != before
    assert follows(agents) == {agent.agent_id: agent.following for agent in agents}


def test_few_follow_as_many_as_there_are() -> None:
    """Of three who would follow 20 each, every two are connected."""
    graph = network_of(3, follow_network="scale_free", mean_follows=20).to_undirected()
    assert graph.number_of_edges() == 3


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [2.2, 2.5, 3.0, 4.0])
def test_a_scale_free_network_has_the_exponent_that_it_should(exponent: float) -> None:
    """Followers are distributed as by Price's formula, within 2 %."""
    special = pytest.importorskip("scipy.special")
    mean, size = 4, 20_000
    kind = {"follow_network": "scale_free", "mean_follows": mean, "reciprocity": 0.0}
    agents = [SocialAgent(f"a{number}") for number in range(size)]
    followed = follows(agents, follower_exponent=exponent, **kind).values()
    counts = Counter(Counter(name for names in followed for name in names).values())
    counts[0] = size - counts.total()
    of_nobody = mean * (exponent - 2)
    seen = expected = 0.0
    for number in range(40):
        seen += counts[number] / size
        expected += special.beta(number + of_nobody, exponent) / special.beta(
            of_nobody, exponent - 1
        )
        assert seen == pytest.approx(expected, abs=0.02)
