"""Topics of what agents publish, and its texts without a model."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Protocol

from prism.agents import SocialAgent
from prism.randomness import RandomStream
from prism.social._posts import Draft, Post, PostKind

_TEXTS: dict[PostKind, tuple[str, ...]] = {
    "reply": (
        "I see {topic} differently, and here is why.",
        "Well put. I would add that {topic} is only half of it.",
        "Has anyone looked at what this means for {topic}?",
    ),
    "reshare": (
        "Worth a read if you care about {topic}.",
        "This is what I mean when I talk about {topic}.",
        "More people should see this: {topic}.",
    ),
    "post": (
        "A thought on {topic} that would not leave me today.",
        "Three things I learned about {topic} this week.",
        "Why does nobody talk about {topic} any more?",
    ),
}


class Composer(Protocol):
    """Decides what a composing agent publishes, and writes it."""

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Write something.

        Args:
            agent: The agent that writes.
            post: The post it was looking at when it decided to write.
            stream: Random numbers for this text only, so that it does not depend on how many
                numbers the agent's decisions have used.
        """
        ...


class TemplateComposer:
    """Writes a few fixed sentences without a model, which is enough to pass topics on.

    Args:
        replies: How often a composing agent replies, as a weight.
        reshares: How often it reshares with commentary.
        posts: How often it writes a post of its own.
    """

    def __init__(self, replies: float = 0.8, reshares: float = 0.2, posts: float = 0.0) -> None:
        self._weights = (replies, reshares, posts)

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Draw a kind by its share, and a sentence on the post's topic or an interest."""
        kinds: tuple[PostKind, ...] = ("reply", "reshare", "post")
        kind = kinds[stream.weighted_index(self._weights)]
        topics = post.topics
        if kind == "post" and agent.interests:
            topics = (agent.interests[stream.index(len(agent.interests))],)

        return _drafted(kind, topics, stream)

    def compose_as(
        self,
        agent: SocialAgent,  # noqa: ARG002
        post: Post,
        kind: PostKind,
        stream: RandomStream,
    ) -> Draft:
        """Draw a sentence on the post's topic, for an agent that has already chosen the kind."""
        return _drafted(kind, post.topics, stream)

    def compose_post(
        self,
        agent: SocialAgent,  # noqa: ARG002
        topics: tuple[str, ...],
        stream: RandomStream,
    ) -> Draft:
        """Draw a sentence on the topics of a post that an agent writes on its own initiative."""
        return _drafted("post", topics, stream)


def _drafted(kind: PostKind, topics: tuple[str, ...], stream: RandomStream) -> Draft:
    texts = _TEXTS[kind]
    text = texts[stream.index(len(texts))]

    return Draft(kind, text.format(topic=topics[0] if topics else "this"), topics)


_COMMON_TOPICS: tuple[str, ...] = (
    *("weather", "elections", "holidays", "breakfast", "traffic", "coffee", "birthdays", "films"),
    *("celebrities", "taxes", "trains", "television", "rain", "schools", "housing", "prices"),
    *("animals", "cats", "dogs", "photography", "running", "cycling", "basketball", "tennis"),
    *("olympics", "chess", "comics", "podcasts", "concerts", "festivals", "dancing", "poetry"),
    *("museums", "architecture", "history", "languages", "philosophy", "religion", "families"),
    *("parenting", "weddings", "fashion", "shopping", "recipes", "baking", "wine", "restaurants"),
    *("hospitals", "vaccines", "sleep", "space", "robots", "phones", "internet", "privacy"),
    *("energy", "recycling", "forests", "oceans", "airports"),
)
"""60 common topics, in the order in which the parameter ``common_topics`` uses them."""

_HUNDRED = 100
"""The number of agents to which ``common_topics`` refers."""


def common_topic(agents: int, number: int, stream: RandomStream) -> str:
    """Draw one of the topics that a population shares.

    A larger population has more topics, so each is shared by the same number of agents, and feeds
    are as busy as in a small population.

    Args:
        agents: Size of the population.
        number: Topics per hundred agents, or part of a hundred, above 0.
        stream: Random numbers.
    """
    place = stream.index(number * ceil(agents / _HUNDRED))
    again, name = divmod(place, number)

    return _COMMON_TOPICS[name] if again == 0 else f"{_COMMON_TOPICS[name]} {again + 1}"


def share_topics(agents: Sequence[SocialAgent], number: int, seed: int) -> None:
    """Give each agent an interest in one of the common topics, keyed by (seed, agent)."""
    for agent in agents if number else ():
        topic = common_topic(len(agents), number, RandomStream(seed, "topic", agent.agent_id))
        if topic not in agent.interests:
            agent.interests = [*agent.interests, topic]


def topic_of_ones_own(
    agent: SocialAgent, agents: int, number: int, share: float, stream: RandomStream
) -> tuple[str, ...]:
    """Draw the topic of a post on an agent's own initiative: a common one, or an interest.

    Args:
        agent: The agent that writes.
        agents: Size of the population.
        number: Common topics per hundred agents; 0 for none.
        share: Probability of a common one.
        stream: Random numbers for this text only.
    """
    if stream.chance(share) and number:
        return (common_topic(agents, number, stream),)

    return (stream.choice(agent.interests),) if agent.interests else ()
