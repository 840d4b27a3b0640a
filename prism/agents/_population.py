"""A population: the agents of a simulation and what they have already posted."""

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
    """Something that was posted before the simulation begins.

    Args:
        author_id: Id of the agent who posted it.
        text: What it says.
        topics: What it is about.
        post_id: Its id; made by the simulation if not given.
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
    """Make up a population of communities: archetypes by their shares, interests, and a follow graph.

    Every hundred agents are a community with topics of its own, so that a feed is as busy in a
    large population as in a small one. Half of all follows go to those of the community who post
    (contributors and superusers), the others to anyone anywhere, so that a few agents have many
    followers, as in real networks. Everyone has one earlier post on one of its interests.

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
    """Give everyone one earlier post on one of its interests, for populations that bring none.

    Args:
        agents: The authors, in order; those without interests post nothing.
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
