"""How an agent weighs a post: chances of acts, others' votes, the past."""

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
    """Return what a post's score adds to the utility of liking it; None for nothing.

    Earlier votes attract further ones, and a score below 0 may be corrected (Muchnik, Aral and
    Taylor 2013). Each further vote adds less. The form is chosen so that a weight is the utility of
    one vote.

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
    """Return the probability of each option in EVALUATING; None where archetypes decide.

    Args:
        parameters: The chances of an agent of mean activity.
        activity: How active the agent is, as a multiple of the mean.
        relevance: How relevant the post is to it.
        post: The post.
        pulls: Further utilities of options.
        virality: Factor on the chance of writing about the root of this cascade, and once more for
            each step from it.
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
    # the logarithm is normal, and 0 has none
    return exp(sigma * _NORMAL.inv_cdf(max(drawn, 2.0**-53)))


def dislike_odds(chance: float, pulls: Mapping[Any, float] | None) -> float:
    """Return the probability that an agent dislikes a post that it scrolls past.

    Args:
        chance: The probability for a post without a score, or where agents do not follow votes.
        pulls: What the score adds to the utility of liking the post, and takes from the utility of
            disliking it.
    """
    pull = pulls.get(AgentState.ENGAGING_LIKE, 0.0) if pulls else 0.0
    return min(1.0, chance * exp(-pull))


_DONE = {
    AgentState.ENGAGING_LIKE: "liked it",
    AgentState.ENGAGING_REPLY: "replied",
    AgentState.ENGAGING_RESHARE: "reshared it",
    AgentState.COMPOSING: "posted yourself",
}
"""What an agent has done that leaves a state because it is done."""


def recollect(network: Network, agent: Any, most: int) -> Sequence[str]:
    """Return the last posts that an agent saw and what it did about them, oldest first.

    The post that it is weighing is left out.

    Args:
        network: The posts.
        agent: The agent.
        most: How many at most.
    """
    history = list(getattr(agent, "state_history", None) or ())
    written = reversed(network.posts_by(agent.agent_id))
    told: list[str] = []
    done = ""

    # the newest first: of what the agent wrote, the last belongs to the last time it did so
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
        # on its way to a reply or a reshare, or nothing came of it
        return ""

    what = _DONE.get(record.from_state, "")
    if record.from_state is AgentState.ENGAGING_LIKE:
        return what

    post = next(written, None)
    return what if post is None else f'{what}: "{post.text}"'


def _in_words(post: Post) -> str:
    return f'a {post.kind} by {post.author_id}: "{post.text}"'
