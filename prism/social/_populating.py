"""The population of a feed: what must hold of it, and what agents have beyond their persona."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prism.agents import ARCHETYPES, Archetype, SeedPost, SocialAgent, opening_posts
from prism.agents._attributes import plain_attributes
from prism.errors import FieldValueError


def attributes_of(agent: SocialAgent) -> dict[str, Any]:
    """Return an agent's attributes, which code of the user may have changed."""
    # an agent of another engine may have none
    own = getattr(agent, "attributes", None)
    return plain_attributes(own) if own else {}


def take_archetypes(agents: Iterable[SocialAgent], archetypes: Mapping[str, Archetype]) -> None:
    """Give agents of the usual archetypes those of the same name, with what these set.

    Args:
        agents: The population; a threshold that is not the usual archetype's is the agent's own.
        archetypes: The archetypes by name.
    """
    changed = {name: kind for name, kind in archetypes.items() if kind != ARCHETYPES[name]}
    for agent in agents if changed else ():
        usual = agent.archetype
        if usual is None or usual.name not in changed or usual != ARCHETYPES[usual.name]:
            continue

        agent.archetype = kind = changed[usual.name]
        if agent.engagement_threshold == usual.engagement_threshold:
            agent.engagement_threshold = kind.engagement_threshold
        if agent.timeout_threshold == usual.timeout_threshold:
            agent.timeout_threshold = kind.timeout_threshold


def opened_by(agents: Sequence[SocialAgent], opening: str, seed: int) -> list[SeedPost]:
    """Return the posts from before the first round, where none are given.

    Args:
        agents: The population.
        opening: Whose: of ``each`` with interests, of the ``hub`` with the most followers, of whom
            the first in the order of ids, or of ``none``.
        seed: Seed of the run.
    """
    if opening == "each":
        return opening_posts(agents, seed=seed)
    if opening == "none":
        return []

    followers = Counter(name for agent in agents for name in agent.following)
    hub = min(agents, key=lambda agent: (-followers[agent.agent_id], agent.agent_id))

    return [SeedPost(hub.agent_id, "Have you heard? This changes everything.", ("rumour",))]


def check_population(agents: Sequence[SocialAgent], posts: Sequence[SeedPost]) -> None:
    """Refuse nobody, ids that are used twice, and posts by strangers.

    Raises:
        FieldValueError: If there is any of these; names them.
    """
    if not agents:
        raise FieldValueError("a simulation needs at least one agent")

    counts = Counter(agent.agent_id for agent in agents)
    twice = sorted(agent_id for agent_id, count in counts.items() if count > 1)
    if twice:
        raise FieldValueError(f"agent ids must be unique, used more than once: {', '.join(twice)}")

    strangers = sorted({post.author_id for post in posts if post.author_id not in counts})
    if strangers:
        raise FieldValueError(
            f"posts must be by agents of the population, which has no {', '.join(strangers)}"
        )
