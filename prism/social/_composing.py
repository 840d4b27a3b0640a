"""Writing posts without a model."""

from __future__ import annotations

from typing import Protocol

from prism.agents import SocialAgent
from prism.social._posts import Draft, Post, PostKind
from prism.statechart import RandomStream

KIND_WEIGHTS: dict[PostKind, float] = {"reply": 0.45, "reshare": 0.40, "post": 0.15}
"""How often a composing agent replies, reshares with commentary, or writes a post of its own."""

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
    """Writes from a few set sentences, without a model: enough to carry topics on."""

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Draw a kind by ``KIND_WEIGHTS``, and a sentence on the post's topic or an interest."""
        kinds = list(KIND_WEIGHTS)
        kind = kinds[stream.weighted_index(list(KIND_WEIGHTS.values()))]
        topics = post.topics
        if kind == "post" and agent.interests:
            topics = (agent.interests[stream.index(len(agent.interests))],)

        texts = _TEXTS[kind]
        text = texts[stream.index(len(texts))]

        return Draft(kind, text.format(topic=topics[0] if topics else "this"), topics)
