"""Writing posts without a model."""

from __future__ import annotations

from typing import Protocol

from prism.agents import SocialAgent
from prism.social._parameters import CLASSIC, Parameters
from prism.social._posts import Draft, Post, PostKind
from prism.statechart import RandomStream

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
            agent: Who writes.
            post: What it looked at when it decided to.
            stream: Random numbers for this text alone, so that what is written does not depend on
                how many the agent's decisions took.
        """
        ...


class TemplateComposer:
    """Writes from a few set sentences, without a model: enough to carry topics on.

    Args:
        parameters: How often a composing agent replies, reshares with commentary, or writes a post
            of its own.
    """

    def __init__(self, parameters: Parameters = CLASSIC) -> None:
        self._parameters = parameters

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Draw a kind by its share, and a sentence on the post's topic or an interest."""
        now = self._parameters
        kinds: tuple[PostKind, ...] = ("reply", "reshare", "post")
        kind = kinds[stream.weighted_index((now.reply_share, now.reshare_share, now.post_share))]
        topics = post.topics
        if kind == "post" and agent.interests:
            topics = (agent.interests[stream.index(len(agent.interests))],)

        return _drafted(kind, topics, stream)

    def compose_post(
        self,
        agent: SocialAgent,  # noqa: ARG002
        topics: tuple[str, ...],
        stream: RandomStream,
    ) -> Draft:
        """Draw a sentence on topics of which an agent writes of its own accord."""
        return _drafted("post", topics, stream)


def _drafted(kind: PostKind, topics: tuple[str, ...], stream: RandomStream) -> Draft:
    texts = _TEXTS[kind]
    text = texts[stream.index(len(texts))]

    return Draft(kind, text.format(topic=topics[0] if topics else "this"), topics)
