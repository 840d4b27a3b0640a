"""Made-up populations."""

from collections import Counter
from math import sqrt
from typing import Any

import pytest

from prism.agents import (
    ARCHETYPES,
    Population,
    SeedPost,
    SocialAgent,
    opening_posts,
    synthetic_population,
)


def told(population: Population) -> list[Any]:
    """Return what is drawn for a population's agents, and their posts."""
    names = ("agent_id", "interests", "archetype", "following")
    return [
        [[getattr(each, name) for name in names] for each in population.agents],
        [*population.posts],
    ]


def test_a_seed_fixes_the_population() -> None:
    """The same seed gives the same population, another seed a different one in every field."""
    one, again, other = (synthetic_population(150, seed=seed) for seed in (7, 7, 8))
    assert told(one) == told(again)
    for name in ("interests", "archetype", "following"):
        assert [getattr(a, name) for a in one.agents] != [getattr(a, name) for a in other.agents]
    assert [post.topics for post in one.posts] != [post.topics for post in other.posts]


@pytest.mark.parametrize("size", [1, 2, 99, 100, 101, 250])
def test_a_population_is_well_formed(size: int) -> None:
    """Ids are unique, follows exist, and every agent has interests and a post on one of them."""
    population = synthetic_population(size, seed=1)
    ids = {agent.agent_id for agent in population.agents}
    assert len(population.agents) == len(ids) == size
    for agent, post in zip(population.agents, population.posts, strict=True):
        assert 1 <= len(agent.interests) == len(set(agent.interests))
        assert set(agent.following) <= ids - {agent.agent_id}
        assert len(set(agent.following)) == len(agent.following)
        assert post.author_id == agent.agent_id
        assert post.topics[0] in agent.interests
        assert post.topics[0] in post.text


@pytest.mark.slow
def test_a_large_population_has_archetypes_in_proportion() -> None:
    """Among 20,000 agents the archetypes are 90-9-1, within six standard deviations."""
    size = 20_000
    agents = synthetic_population(size, seed=5).agents
    counts = Counter(agent.archetype.name for agent in agents)
    for kind in ARCHETYPES.values():
        deviation = sqrt(size * kind.share * (1 - kind.share))
        assert abs(counts[kind.name] - size * kind.share) < 6 * deviation
    assert all(
        agent.engagement_threshold == agent.archetype.engagement_threshold for agent in agents
    )


def test_opening_posts_are_of_agents_with_interests() -> None:
    """Each agent with interests gets one post, which depends only on the seed and its id."""
    tea, nothing, music = (
        SocialAgent("a", interests=["tea"]),
        SocialAgent("b"),
        SocialAgent("c", interests=["music"]),
    )
    posts = opening_posts([tea, nothing, music], seed=4)
    assert [(post.author_id, post.topics) for post in posts] == [("a", ("tea",)), ("c", ("music",))]
    assert all(isinstance(post, SeedPost) and post.post_id is None for post in posts)
    assert opening_posts([music], seed=4) == posts[1:]
