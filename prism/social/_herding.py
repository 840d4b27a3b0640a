"""How the votes of others speak for liking a post."""

from __future__ import annotations

from collections.abc import Mapping
from math import copysign, log2

from prism.social._posts import Network, Post
from prism.statechart import AgentState


def herding_pulls(
    weight: float, network: Network, post: Post | None
) -> Mapping[AgentState, float] | None:
    """Return what a post's score adds to the utility of liking it; None for nothing.

    Votes of others that are there already draw further ones (Muchnik, Aral and Taylor 2013); the
    more there are, the less another one adds. The form is chosen so that a weight is the utility of
    a score of 1: ``weight * sign(score) * log2(1 + |score|)``.

    Args:
        weight: How strongly agents follow others; 0 for not at all.
        network: The posts and their votes.
        post: The post.
    """
    score = network.score(post) if weight and post is not None else 0
    if not score:
        return None

    return {AgentState.ENGAGING_LIKE: weight * copysign(log2(1 + abs(score)), score)}
