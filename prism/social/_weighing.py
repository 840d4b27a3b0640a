"""How an agent weighs a post: chances of acts, votes of others, and its memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import copysign, exp, log2
from statistics import NormalDist
from typing import Any

from prism.randomness import RandomStream
from prism.social._parameters import Parameters
from prism.social._posts import Post
from prism.social._publishing import Network
from prism.statechart import AgentState
from prism.statechart.social import ACTION_DONE, COMPOSE_DONE, SEES_POST

_NORMAL = NormalDist()


def herding_pulls(
    parameters: Parameters, network: Network, post: Post | None
) -> Mapping[AgentState, float] | None:
    """Return the amount that a post's score adds to the utility of liking it; None for nothing.

    Earlier votes attract further ones, and a score below 0 may be corrected (Muchnik, Aral and
    Taylor 2013). Each further vote adds less. A weight is the utility of the first vote.

    Args:
        parameters: How strongly agents follow others.
        network: The posts and their votes.
        post: The post.
    """
    up, down = parameters.herding, parameters.herding_down
    if post is None or not (up or down):
        return None

    score = network.score(post)
    weight = up if score > 0 or down is None else down
    if not score or not weight:
        return None

    return {AgentState.ENGAGING_LIKE: weight * copysign(log2(1 + abs(score)), score)}


def odds_of(
    parameters: Parameters,
    activity: float,
    relevance: float,
    post: Post,
    pulls: Mapping[Any, float] | None,
    virality: float = 1.0,
) -> Mapping[AgentState, float] | None:
    """Return the probability of each option in EVALUATING; None if archetypes decide.

    Args:
        parameters: The chances of an agent of mean activity.
        activity: How active the agent is, as a multiple of the mean.
        relevance: How relevant the post is to it.
        post: The post.
        pulls: Further utilities of options.
        virality: Factor on the chance of writing about the root of this cascade, applied once more
            for each step from it.
    """
    composes, likes = parameters.compose_chance, parameters.like_chance
    if composes is None or likes is None:
        return None

    pull = exp(parameters.relevance_pull * relevance)
    fading = parameters.fading**post.depth
    spread = virality ** (post.depth + 1)
    composing = min(parameters.most_chance, composes * activity * spread * fading * pull)
    herding = exp(pulls.get(AgentState.ENGAGING_LIKE, 0.0)) if pulls else 1.0
    liking = min(1.0 - composing, likes * pull * herding)

    return {
        AgentState.SCROLLING: 1.0 - composing - liking,
        AgentState.ENGAGING_LIKE: liking,
        AgentState.COMPOSING: composing,
    }


def virality_of(parameters: Parameters, seed: int, post: Post) -> float:
    """Return the virality of a post's cascade, drawn for its root."""
    sigma = parameters.virality_sigma
    if not sigma:
        return 1.0

    drawn = RandomStream(seed, "virality", post.root.post_id).random()
    # the logarithm is normal, and 0 has no logarithm
    return exp(sigma * _NORMAL.inv_cdf(max(drawn, 2.0**-53)))


def dislike_odds(chance: float, pulls: Mapping[Any, float] | None) -> float:
    """Return the probability that an agent dislikes a post that it scrolls past.

    Args:
        chance: The probability for a post without a score, or if agents ignore votes.
        pulls: Amount that the score adds to the utility of liking the post, and subtracts from that
            of disliking it.
    """
    pull = pulls.get(AgentState.ENGAGING_LIKE, 0.0) if pulls else 0.0
    return min(1.0, chance * exp(-pull))


_DONE = {
    AgentState.ENGAGING_LIKE: "liked it",
    AgentState.ENGAGING_REPLY: "replied",
    AgentState.ENGAGING_RESHARE: "reshared it",
    AgentState.COMPOSING: "posted yourself",
}
"""The act that an agent has completed when it leaves a state."""


def recollect(network: Network, agent: Any, most: int) -> Sequence[str]:
    """Return the last posts that an agent saw, and how it reacted, oldest first.

    The post that it is weighing is left out.

    Args:
        network: The posts.
        agent: The agent.
        most: Maximum number of posts.
    """
    history = list(getattr(agent, "state_history", None) or ())
    written = reversed(network.posts_by(agent.agent_id))
    told: list[str] = []
    done = ""

    # newest first: the last text that the agent wrote belongs to the last act of writing
    for record in reversed(history):
        if record.trigger == SEES_POST:
            post = network.post(str((record.context or {}).get("post_id")))
            if post is not None and record is not history[-1]:
                told.append(f"You saw {_in_words(post)}, and {done or 'scrolled on'}.")
            done = ""
        elif record.trigger in (ACTION_DONE, COMPOSE_DONE):
            done = _done(record, written) or done
        if len(told) == most:
            break

    return told[::-1]


def _done(record: Any, written: Iterator[Post]) -> str:
    """Return the act that a transition completes."""
    if record.trigger == COMPOSE_DONE and record.to_state is not AgentState.RESTING:
        # on its way to a reply or a reshare, or without a result
        return ""

    what = _DONE.get(record.from_state, "")
    if record.from_state is AgentState.ENGAGING_LIKE:
        return what

    post = next(written, None)
    return what if post is None else f'{what}: "{post.text}"'


def _in_words(post: Post) -> str:
    return f'a {post.kind} by {post.author_id}: "{post.text}"'
