"""Populations: the agents of a simulation and their earlier posts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prism.agents._archetypes import ARCHETYPES, LURKER, Archetype
from prism.agents.social_agent import SocialAgent
from prism.errors import FieldValueError
from prism.statechart import RandomStream

TOPICS = (
    *("climate", "cooking", "economics", "education", "football", "gaming", "gardening", "health"),
    *("literature", "movies", "music", "politics", "science", "technology", "travel"),
)
"""Interests of synthetic agents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Communities:
    """The communities of a synthetic population.

    Args:
        size: Agents in a community, from 1 on.
        topics: Topics of a community, from which its agents have their interests, 1 to 15.
        most_interests: Most interests of an agent, from 1 on; all numbers up to it are equally
            likely.
        least_follows: Fewest draws of agents to follow; repeated draws and the agent itself are
            left out.
        most_follows: Most draws; all numbers between the two are equally likely.
        hub_share: Probability that a draw is among the contributors and superusers of the
            community, rather than among all agents.

    Raises:
        FieldValueError: If a value is out of range.
    """

    size: int = 100
    topics: int = len(TOPICS)
    most_interests: int = 3
    least_follows: int = 2
    most_follows: int = 12
    hub_share: float = 0.5

    def __post_init__(self) -> None:
        """Refuse impossible communities."""
        if self.size < 1:
            raise FieldValueError(f"a community needs at least one agent, got {self.size}")
        if not 1 <= self.most_interests <= self.topics <= len(TOPICS):
            raise FieldValueError(
                f"a community has 1 to {len(TOPICS)} topics and an agent at most as many "
                f"interests, got {self.topics} topics and {self.most_interests} interests"
            )
        if not 0 <= self.least_follows <= self.most_follows:
            raise FieldValueError(
                f"least_follows must be from 0 to most_follows, got {self.least_follows} and "
                f"{self.most_follows}"
            )
        if not 0 <= self.hub_share <= 1:
            raise FieldValueError(f"hub_share must be from 0 to 1, got {self.hub_share}")


COMMUNITIES = Communities()
"""The default communities of a population."""


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


def synthetic_population(
    size: int,
    *,
    seed: int = 0,
    archetypes: Mapping[str, Archetype] = ARCHETYPES,
    communities: Communities = COMMUNITIES,
) -> Population:
    """Generate a population with communities, archetypes, interests and a follow graph.

    Every hundred agents form a community with its own topics, so feeds are as busy in a large
    population as in a small one. Half of all follows go to contributors and superusers of the
    community, the others to any agent anywhere. A few agents therefore have many followers, as in
    real networks. Every agent has one earlier post on one of its interests.

    Args:
        size: Number of agents, from 1 on.
        seed: The same seed gives the same population.
        archetypes: The kinds of agents by name, with their shares.
        communities: Communities that replace the default ones.

    Raises:
        FieldValueError: If the size is below 1.
    """
    if size < 1:
        raise FieldValueError(f"a population needs at least one agent, got {size}")

    width = max(4, len(str(size)))
    ids = [f"agent_{number:0{width}}" for number in range(1, size + 1)]
    making = _Making(random.Random(f"population {seed}"), seed, ids, archetypes, communities)
    agents = [
        agent for start in range(0, size, communities.size) for agent in _community(making, start)
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


@dataclass(frozen=True, slots=True)
class _Making:
    """A population that is being made.

    Args:
        draw: Random numbers for interests and follows.
        seed: Seed of the archetypes.
        ids: The ids of all agents.
        archetypes: The kinds of agents.
        like: Settings of the communities.
    """

    draw: random.Random
    seed: int
    ids: list[str]
    archetypes: Mapping[str, Archetype]
    like: Communities


def _community(making: _Making, start: int) -> list[SocialAgent]:
    draw, like = making.draw, making.like
    members = making.ids[start : start + like.size]
    names = TOPICS[: like.topics]
    topics = [topic if start == 0 else f"{topic} {start // like.size + 1}" for topic in names]
    kinds = [archetype_for(agent_id, making.seed, making.archetypes) for agent_id in members]
    hubs = [
        agent_id for agent_id, kind in zip(members, kinds, strict=True) if kind.name != LURKER.name
    ] or members

    return [
        SocialAgent(
            agent_id,
            interests=draw.sample(topics, draw.randint(1, like.most_interests)),
            personality=f"A typical {kind.name}.",
            archetype=kind,
            following=_follow(making, agent_id, hubs),
        )
        for agent_id, kind in zip(members, kinds, strict=True)
    ]


def _follow(making: _Making, agent_id: str, hubs: list[str]) -> list[str]:
    draw, like = making.draw, making.like
    chosen = {
        draw.choice(hubs if draw.random() < like.hub_share else making.ids)
        for _ in range(draw.randint(like.least_follows, like.most_follows))
    }
    return sorted(chosen - {agent_id})


def _seed_post(stream: RandomStream, author: SocialAgent) -> SeedPost:
    topic = author.interests[stream.index(len(author.interests))]
    return SeedPost(author.agent_id, f"What I have been thinking about {topic} lately.", (topic,))


def archetype_for(
    agent_id: str, seed: int, archetypes: Mapping[str, Archetype] = ARCHETYPES
) -> Archetype:
    """Draw the archetype of an agent in the archetypes' proportions.

    The draw depends only on the seed and the agent's id.
    """
    stream, kinds = RandomStream(seed, agent_id, "archetype"), list(archetypes.values())
    return kinds[stream.weighted_index([kind.share for kind in kinds])]
