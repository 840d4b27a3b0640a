"""Populations: the agents of a simulation and their earlier posts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from prism.agents._archetypes import LURKER, archetype_for
from prism.agents.social_agent import SocialAgent
from prism.errors import FieldValueError
from prism.statechart import RandomStream

TOPICS = (
    "climate",
    "cooking",
    "economics",
    "education",
    "football",
    "gaming",
    "gardening",
    "health",
    "literature",
    "movies",
    "music",
    "politics",
    "science",
    "technology",
    "travel",
)
"""Interests of synthetic agents."""

_COMMUNITY = 100
_MOST_INTERESTS = 3
_MOST_FOLLOWED = 12
_HUB_CHANCE = 0.5


@dataclass(frozen=True, slots=True)
class SeedPost:
    """A post from before the simulation.

    Args:
        author_id: Id of its author.
        text: What it says.
        topics: What it is about.
        post_id: Its id; the simulation makes one if there is none.
    """

    author_id: str
    text: str
    topics: tuple[str, ...] = ()
    post_id: str | None = None


@dataclass(frozen=True, slots=True)
class Population:
    """Agents and their earlier posts.

    Args:
        agents: The agents, in the order in which they act.
        posts: Their earlier posts, oldest first.
    """

    agents: Sequence[SocialAgent]
    posts: Sequence[SeedPost] = field(default=())


def synthetic_population(size: int, *, seed: int = 0) -> Population:
    """Generate a population of communities with archetypes, interests and a follow graph.

    Every hundred agents form a community with its own topics, so that feeds are as busy in a large
    population as in a small one. Half of all follows go to contributors and superusers of the
    community, the others to any agent anywhere, so that a few agents have many followers, as in
    real networks. Every agent has one earlier post on one of its interests.

    Args:
        size: Number of agents, from 1 on.
        seed: The same seed gives the same population.

    Raises:
        FieldValueError: If the size is below 1.
    """
    if size < 1:
        raise FieldValueError(f"a population needs at least one agent, got {size}")

    draw = random.Random(f"population {seed}")
    width = max(4, len(str(size)))
    ids = [f"agent_{number:0{width}}" for number in range(1, size + 1)]
    agents = [
        agent
        for start in range(0, size, _COMMUNITY)
        for agent in _community(draw, seed, ids, start)
    ]

    return Population(agents, opening_posts(agents, seed=seed))


def opening_posts(agents: Sequence[SocialAgent], *, seed: int = 0) -> list[SeedPost]:
    """Return one post of each agent on one of its interests, for a population without posts.

    Args:
        agents: The authors, in order; an agent without interests has no post.
        seed: The same seed gives the same posts.
    """
    return [
        _seed_post(RandomStream(seed, agent.agent_id, "post"), agent)
        for agent in agents
        if agent.interests
    ]


def _community(draw: random.Random, seed: int, ids: list[str], start: int) -> list[SocialAgent]:
    members = ids[start : start + _COMMUNITY]
    topics = [topic if start == 0 else f"{topic} {start // _COMMUNITY + 1}" for topic in TOPICS]
    kinds = [archetype_for(agent_id, seed) for agent_id in members]
    hubs = [
        agent_id for agent_id, kind in zip(members, kinds, strict=True) if kind is not LURKER
    ] or members

    return [
        SocialAgent(
            agent_id,
            interests=draw.sample(topics, draw.randint(1, _MOST_INTERESTS)),
            personality=f"A typical {kind.name}.",
            archetype=kind,
            following=_follow(draw, agent_id, ids, hubs),
        )
        for agent_id, kind in zip(members, kinds, strict=True)
    ]


def _follow(draw: random.Random, agent_id: str, everyone: list[str], hubs: list[str]) -> list[str]:
    chosen = {
        draw.choice(hubs if draw.random() < _HUB_CHANCE else everyone)
        for _ in range(draw.randint(2, _MOST_FOLLOWED))
    }
    return sorted(chosen - {agent_id})


def _seed_post(stream: RandomStream, author: SocialAgent) -> SeedPost:
    topic = author.interests[stream.index(len(author.interests))]
    return SeedPost(author.agent_id, f"What I have been thinking about {topic} lately.", (topic,))
