"""Networks of follows, held against networkx."""

from typing import Any

import pytest

from prism import Run
from prism.agents import synthetic_population
from prism.errors import FieldValueError
from prism.social import Feed
from tests.kit.modules import Later

networkx = Later("networkx")

KINDS = ("scale_free", "random")


def follows(agents: Any, seed: int = 1, **parameters: Any) -> dict[str, tuple[str, ...]]:
    """Return whom each agent of a run follows."""
    feed = Feed(first_posts=(), **parameters)
    Run(feed, agents, seed=seed).prepare(None)
    return {reader.agent_id: tuple(reader.follows) for reader in feed.agents}


def made(size: int = 200, **parameters: Any) -> Any:
    """Return a network as a graph of networkx."""
    found = follows(synthetic_population(size, seed=1).agents, **parameters)
    graph = networkx.DiGraph()
    graph.add_nodes_from(found)
    graph.add_edges_from((one, other) for one, others in found.items() for other in others)
    return graph


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("mean", "reciprocity"), [(4.5, 0.0), (10.0, 0.36), (6.0, 1.0)])
@pytest.mark.sampled(9)
def test_mean_and_reciprocity_are_met(kind: str, mean: float, reciprocity: float) -> None:
    """networkx measures the mean degree and the reciprocity that were asked for."""
    graph = made(follow_network=kind, mean_follows=mean, reciprocity=reciprocity)
    assert graph.number_of_edges() / 200 == pytest.approx(mean, abs=0.01)
    assert networkx.overall_reciprocity(graph) == pytest.approx(reciprocity, abs=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_agents_changes_no_network(kind: str) -> None:
    """Agents follow the same others when the list is reversed; another seed gives another graph."""
    agents = list(synthetic_population(60).agents)
    before = follows(agents, 5, follow_network=kind)
    assert follows(agents[::-1], 5, follow_network=kind) == before
    assert follows(agents, 6, follow_network=kind) != before
    assert follows(agents) == {agent.agent_id: agent.following for agent in agents}


def test_an_impossible_network_is_refused() -> None:
    """The message says how many agents it would take."""
    with pytest.raises(FieldValueError, match="mean_follows must be smaller"):
        made(10, follow_network="random", mean_follows=20)
