"""Populations: the agents of a simulation and their earlier posts."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from prism.agents._archetypes import ARCHETYPES, Archetype
from prism.agents.social_agent import SocialAgent
from prism.errors import FieldValueError
from prism.statechart import RandomStream

TOPICS = (
    *("climate", "cooking", "economics", "education", "football", "gaming", "gardening", "health"),
    *("literature", "movies", "music", "politics", "science", "technology", "travel"),
)
"""Interests of synthetic agents."""


_COMMUNITY = 100
_MOST_INTERESTS = 3
_FEWEST_FOLLOWS, _MOST_FOLLOWS = 2, 12
_HUB_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class SeedPost:
    """A post from before the simulation.

    Args:
        author_id: Id of its author.
        text: Its text.
        topics: Its topics.
        post_id: Its id; if missing, the simulation makes one.
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
    """Generate a population with communities, archetypes, interests and a follow graph.

    Every hundred agents form a community with its own topics, so feeds are as busy in a large
    population as in a small one. Half of all follows go to contributors and superusers of the
    community, the others to any agent anywhere. A few agents therefore have many followers, as in
    real networks. Every agent has one earlier post on one of its interests.

    Args:
        size: Number of agents, from 1 on.
        seed: The same seed gives the same population.

    Raises:
        FieldValueError: If the size is below 1.
    """
    if size < 1:
        raise FieldValueError(f"a population needs at least one agent, got {size}")

    width = max(4, len(str(size)))
    ids = [f"agent_{number:0{width}}" for number in range(1, size + 1)]
    draw = random.Random(f"population {seed}")
    agents: list[SocialAgent] = []
    for start in range(0, size, _COMMUNITY):
        members = ids[start : start + _COMMUNITY]
        kinds = {agent_id: archetype_for(agent_id, seed) for agent_id in members}
        hubs = [each for each, kind in kinds.items() if kind.name != "lurker"] or members
        suffix = f" {start // _COMMUNITY + 1}" if start else ""
        topics = [topic + suffix for topic in TOPICS]

        agents += [
            SocialAgent(
                agent_id,
                interests=draw.sample(topics, draw.randint(1, _MOST_INTERESTS)),
                personality=f"A typical {kind.name}.",
                archetype=kind,
                following=sorted(_follows(draw, hubs, ids) - {agent_id}),
            )
            for agent_id, kind in kinds.items()
        ]

    return Population(agents, opening_posts(agents, seed=seed))


def _follows(draw: random.Random, hubs: Sequence[str], ids: Sequence[str]) -> set[str]:
    """Draw whom an agent follows, perhaps itself."""
    return {
        draw.choice(hubs if draw.random() < _HUB_SHARE else ids)
        for _ in range(draw.randint(_FEWEST_FOLLOWS, _MOST_FOLLOWS))
    }


def opening_posts(agents: Iterable[Any], *, seed: int = 0) -> list[SeedPost]:
    """Return one post of each agent on one of its interests, for a population without posts.

    Args:
        agents: The authors, in order; an agent without interests has no post.
        seed: The same seed gives the same posts.
    """
    posts = []
    for agent in agents:
        if agent.interests:
            stream = RandomStream(seed, agent.agent_id, "post")
            topic = agent.interests[stream.index(len(agent.interests))]
            text = f"What I have been thinking about {topic} lately."
            posts.append(SeedPost(agent.agent_id, text, (topic,)))

    return posts


def archetype_for(agent_id: str, seed: int) -> Archetype:
    """Draw the archetype of an agent in the archetypes' proportions.

    The draw depends only on the seed and the agent's id.
    """
    stream, kinds = RandomStream(seed, agent_id, "archetype"), list(ARCHETYPES.values())
    return kinds[stream.weighted_index([kind.share for kind in kinds])]
