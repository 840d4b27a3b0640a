"""What a feed says itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from prism.agents import SeedPost, SocialAgent
from prism.social._feeds import Rank
from prism.social._parameters import Parameters
from prism.social._posts import Draft, Post
from prism.statechart import Guard, RandomStream


class FeedRules(Protocol):
    """What a feed says itself, and a feed of the user's own in another way.

    Attributes:
        parameters: All numbers of its behaviour.
    """

    parameters: Parameters

    def populate(self, agents: int) -> Iterable[SocialAgent]:
        """Make the population of a run that says a number only."""

    def opening(self) -> Iterable[SeedPost]:
        """Return what was posted before the first round, oldest first."""

    def guard(self) -> Guard | None:
        """Return who says whether a post is relevant enough; None if each agent does."""

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Write what an agent publishes."""

    def compose_post(
        self, agent: SocialAgent, topics: tuple[str, ...], stream: RandomStream
    ) -> Draft:
        """Write what an agent publishes of its own accord."""

    def ranking(self) -> Rank | None:
        """Return how a feed of the user's own ranks posts; None if the parameters say so."""
