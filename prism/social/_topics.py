"""Topics that a whole population shares, so that nobody has nothing to read or to write about."""

from __future__ import annotations

from collections.abc import Iterable

from prism.agents import SocialAgent
from prism.randomness import RandomStream

COMMON_TOPICS: tuple[str, ...] = (
    *("weather", "elections", "holidays", "breakfast", "traffic", "coffee", "birthdays", "films"),
    *("celebrities", "taxes", "trains", "television", "rain", "schools", "housing", "prices"),
    *("animals", "cats", "dogs", "photography", "running", "cycling", "basketball", "tennis"),
    *("olympics", "chess", "comics", "podcasts", "concerts", "festivals", "dancing", "poetry"),
    *("museums", "architecture", "history", "languages", "philosophy", "religion", "families"),
    *("parenting", "weddings", "fashion", "shopping", "recipes", "baking", "wine", "restaurants"),
    *("hospitals", "vaccines", "sleep", "space", "robots", "phones", "internet", "privacy"),
    *("energy", "recycling", "forests", "oceans", "airports"),
)
"""Common topics in the order in which the parameter ``common_topics`` takes them; 60 in all."""


def share_topics(agents: Iterable[SocialAgent], number: int, seed: int) -> None:
    """Give each agent an interest in one of so many common topics, keyed by (seed, agent)."""
    if not number:
        return

    for agent in agents:
        topic = RandomStream(seed, "topic", agent.agent_id).choice(COMMON_TOPICS[:number])
        if topic not in agent.interests:
            agent.interests = [*agent.interests, topic]


def topic_of_ones_own(
    agent: SocialAgent, number: int, share: float, stream: RandomStream
) -> tuple[str, ...]:
    """Draw what an agent writes about of its own accord: a common topic, or an interest.

    Args:
        agent: Who writes.
        number: How many common topics there are.
        share: Probability of a common one.
        stream: Random numbers for this text alone.
    """
    is_common = stream.chance(share)
    among = COMMON_TOPICS[:number] if is_common and number else agent.interests

    return (stream.choice(among),) if among else ()
