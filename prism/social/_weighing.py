"""How an agent weighs a post: chances of acts, votes of others, and its memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from json import dumps
from math import copysign, exp, log2
from statistics import NormalDist
from typing import Any

from prism.randomness import RandomStream
from prism.social._parameters import Parameters
from prism.social._posts import Post
from prism.social._readers import Reader
from prism.statechart import AgentState
from prism.statechart.social import ACTION_DONE, COMPOSE_DONE, SEES_POST

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


_DONE = {
    AgentState.ENGAGING_LIKE: "liked it",
    AgentState.ENGAGING_REPLY: "replied",
    AgentState.ENGAGING_RESHARE: "reshared it",
    AgentState.COMPOSING: "posted yourself",
}
"""The act that an agent has completed when it leaves a state."""


def recollect(reader: Reader, most: int) -> Sequence[str]:
    """Return the last posts that an agent looked at, and how it reacted, oldest first.

    The post that it is weighing is left out.

    Args:
        reader: The agent.
        most: Maximum number of posts.
    """
    history, network = reader.state_history, reader.world.network_of_posts
    written = reversed(network.by_author.get(reader.agent_id, ()))
    things: list[str] = []
    done = ""

    # newest first: the last text that the agent wrote belongs to the last act of writing
    for record in reversed(history):
        if record.trigger == SEES_POST:
            post = network.by_id.get(str((record.context or {}).get("post_id")))
            if post is not None and record is not history[-1]:
                things.append(f"You saw {_in_words(post)}, and {done or 'scrolled on'}.")
            done = ""
        elif record.trigger in (ACTION_DONE, COMPOSE_DONE):
            done = _done(record, written) or done
        if len(things) == most:
            break

    return things[::-1]


def _done(record: Any, written: Iterator[Post]) -> str:
    """Return the act that a transition completes."""
    if record.trigger == COMPOSE_DONE and record.to_state is not AgentState.RESTING:
        # on its way to a reply or a reshare, or without a result
        return ""

    what = _DONE.get(record.from_state, "")
    if record.from_state is AgentState.ENGAGING_LIKE:
        return what

    post = next(written, None)
    return what if post is None else f"{what}: {quoted(post)}"


def _in_words(post: Post) -> str:
    return f"a {post.kind} by {post.author_id}: {quoted(post)}"


def quoted(post: Post) -> str:
    """Return a post's text in quotation marks that it cannot end itself, on one line."""
    return dumps(post.text, ensure_ascii=False)
