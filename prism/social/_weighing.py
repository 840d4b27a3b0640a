"""How an agent weighs a post: chances of acts, votes of others, and its memory."""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps
from math import copysign, exp, log2
from statistics import NormalDist

from prism.randomness import RandomStream
from prism.social._parameters import Parameters
from prism.social._posts import Post
from prism.social._readers import Reader
from prism.statechart import AgentState

_NORMAL = NormalDist()


def herding_pull(parameters: Parameters, post: Post) -> float:
    """Return the amount that a post's score adds to the utility of liking it.

    Earlier votes attract further ones, and a score below 0 may be corrected (Muchnik, Aral and
    Taylor 2013). Each further vote adds less. A weight is the utility of the first vote.
    """
    up, down, score = parameters.herding, parameters.herding_down, post.score
    weight = up if score > 0 or down is None else down
    return weight * copysign(log2(1 + abs(score)), score) if score and weight else 0.0


def odds_of(parameters: Parameters, reader: Reader, post: Post) -> Mapping[AgentState, float]:
    """Return the odds of each option in EVALUATING, if no model decides.

    Without chances, they are proportional to ``exp(u)`` (the multinomial logit model, McFadden
    1974), with the inclination of the agent's archetype towards the option as its utility ``u``.

    Args:
        parameters: The chances of an agent of mean activity.
        reader: The agent.
        post: The post.
    """
    composes, likes = parameters.compose_chance, parameters.like_chance
    relevance = reader.relevance(post)
    pull = exp(parameters.relevance_pull * relevance)
    herding = exp(herding_pull(parameters, post))
    if composes is None or likes is None:
        inclined = {} if reader.archetype is None else reader.archetype.inclinations
        odds = {each: exp(inclined.get(each.value, 0.0)) for each in _OPTIONS}
        factors = dict.fromkeys(_OPTIONS[1:], pull)
        factors[AgentState.ENGAGING_LIKE] *= herding
        return {each: odds[each] * factors.get(each, 1.0) for each in _OPTIONS}

    spread = virality_of(parameters, post) ** (post.depth + 1) if parameters.virality_sigma else 1.0
    chance = composes * reader.activity * spread * parameters.fading**post.depth * pull
    composing = min(parameters.most_chance, chance)
    liking = min(1.0 - composing, likes * pull * herding)

    return {
        AgentState.SCROLLING: 1.0 - composing - liking,
        AgentState.ENGAGING_LIKE: liking,
        AgentState.COMPOSING: composing,
    }


_OPTIONS = (AgentState.SCROLLING, AgentState.ENGAGING_LIKE, AgentState.COMPOSING)


def virality_of(parameters: Parameters, post: Post) -> float:
    """Return the virality of a post's cascade, drawn for its root."""
    drawn = RandomStream(parameters.seed, "virality", post.root.post_id).random()
    # the logarithm is normal, and 0 has no logarithm
    return exp(parameters.virality_sigma * _NORMAL.inv_cdf(max(drawn, 2.0**-53)))


def dislikes(parameters: Parameters, reader: Reader, post: Post) -> bool:
    """Draw whether an agent dislikes a post that it has weighed and scrolls past."""
    chance = min(1.0, parameters.dislike_chance * exp(-herding_pull(parameters, post)))
    # a separate stream, so dislikes shift no other random number
    return RandomStream(parameters.seed, "dislikes", reader.agent_id, post.post_id).chance(chance)


ACTS_IN_WORDS = {
    AgentState.SCROLLING: "scrolled on",
    AgentState.ENGAGING_LIKE: "liked it",
    AgentState.ENGAGING_REPLY: "replied",
    AgentState.ENGAGING_RESHARE: "reshared it",
    AgentState.COMPOSING: "began to write",
}
"""What an agent that has weighed a post did, by the state that it chose."""


def in_words(post: Post) -> str:
    """Describe a post on one line, for an agent's memory."""
    return f"a {post.kind} by {post.author_id}: {quoted(post.text)}"


def quoted(text: str) -> str:
    """Return a text in quotation marks that it cannot end itself, on one line."""
    return dumps(text, ensure_ascii=False)
