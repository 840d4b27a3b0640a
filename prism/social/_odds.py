"""What an agent makes of a post, where parameters say so instead of archetypes."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any

from prism.social._parameters import Parameters
from prism.social._posts import Post
from prism.statechart import AgentState


def odds_of(
    parameters: Parameters,
    activity: float,
    relevance: float,
    post: Post,
    pulls: Mapping[Any, float] | None,
) -> Mapping[AgentState, float] | None:
    """Return the probability of each option in EVALUATING; None where archetypes say so.

    Args:
        parameters: The chances of an agent of mean activity.
        activity: How active the agent is, in means of all.
        relevance: How relevant the post is to it.
        post: The post.
        pulls: What else speaks for options, in units of utility.
    """
    composes, likes = parameters.compose_chance, parameters.like_chance
    if composes is None or likes is None:
        return None

    pull = exp(parameters.relevance_pull * relevance)
    fading = parameters.fading**post.depth
    composing = min(parameters.most_chance, composes * activity * fading * pull)
    herding = exp(pulls.get(AgentState.ENGAGING_LIKE, 0.0)) if pulls else 1.0
    liking = min(1.0 - composing, likes * pull * herding)

    return {
        AgentState.SCROLLING: 1.0 - composing - liking,
        AgentState.ENGAGING_LIKE: liking,
        AgentState.COMPOSING: composing,
    }


def dislike_odds(chance: float, pulls: Mapping[Any, float] | None) -> float:
    """Return the probability that an agent dislikes a post that it scrolls past.

    Args:
        chance: That of a post without a score, or where agents do not follow votes.
        pulls: What the score adds to the utility of liking the post, which it takes from that of
            disliking it.
    """
    pull = pulls.get(AgentState.ENGAGING_LIKE, 0.0) if pulls else 0.0
    return min(1.0, chance * exp(-pull))
