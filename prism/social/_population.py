"""The population of a feed: its chart, its archetypes and its earlier posts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from prism.agents import ARCHETYPES, Archetype, SeedPost, SocialAgent, opening_posts
from prism.errors import FieldValueError
from prism.randomness import RandomStream
from prism.social._parameters import RESTING_TICKS, Parameters
from prism.social._posts import PostKind
from prism.statechart import (
    AgentState,
    Guard,
    Statechart,
    social_feed_chart,
    social_media_chart,
)
from prism.statechart.social import DECIDES

NEEDS = (
    "agent_id",
    "name",
    "archetype",
    "interests",
    "following",
    "timeout_threshold",
    "ticks_in_state",
    "state_history",
)
"""The attributes of an agent that the feed uses, in addition to those of the chart."""

KINDS_OF_ACTS: Mapping[AgentState, PostKind] = {
    AgentState.ENGAGING_REPLY: "reply",
    AgentState.ENGAGING_RESHARE: "reshare",
}
"""The kinds of posts that an agent publishes by acts that only a model can choose."""


def acts_with(reasoner: Any, model_acts: bool) -> tuple[bool, Callable[[Any], bool]]:
    """Return whether agents may choose among all acts, and for which of them a model decides.

    Args:
        reasoner: Makes the decisions.
        model_acts: Whether agents should choose among all acts if a model decides.
    """
    acts = bool(getattr(reasoner, "chooses_acts", False)) and model_acts
    return acts, getattr(reasoner, "chooses_acts_for", lambda _agent: acts)


_ENGAGING = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE)
"""Targets from EVALUATING for agents to whom a post is relevant enough."""

_ACTS = tuple(KINDS_OF_ACTS)
"""Further targets for them, if they choose among all acts."""


def feed_chart(
    parameters: Parameters,
    guard: Guard | None,
    *,
    acts: bool = False,
) -> Statechart[AgentState]:
    """Return the chart of a feed's agents.

    Args:
        parameters: They set whether agents write on their own initiative, how long they rest, and
            how much of an agent's engagement threshold counts.
        guard: Decides whether a post is relevant enough; None if each agent decides.
        acts: Whether agents choose among all acts if a model decides.
    """
    resting = parameters.resting_ticks
    if parameters.posts_per_tick:
        chart = social_feed_chart(should_engage=guard, resting_ticks=resting, acts=acts)
    else:
        chart = social_media_chart(should_engage=guard, acts=acts)
        if resting != RESTING_TICKS:
            chart = chart.extended(timeouts={AgentState.RESTING: resting})

    # the user's own guard takes precedence
    if guard is not None or parameters.engagement == 1:
        return chart

    engaging = (*_ENGAGING, *(_ACTS if acts else ()))
    # so the chart needs the same attributes of agents as before
    scaled = _Scaled(parameters.engagement)
    return chart.extended(
        guards={(DECIDES, AgentState.EVALUATING, target): scaled for target in engaging}
    )


class _Scaled:
    """A guard: whether an agent engages with a post if a part of its threshold counts.

    An agent without a relevance or a threshold decides by itself.

    Args:
        scale: The part of the threshold that counts.
    """

    def __init__(self, scale: float) -> None:
        self._scale = scale

    __name__ = "should_engage"

    def __call__(self, agent: Any, post: Any) -> bool:
        # reuse the result of a moment ago
        if type(agent).should_engage is SocialAgent.should_engage:
            weighed = agent.weighed_relevance(post)
            if weighed is not None:
                return bool(weighed >= self._scale * agent.engagement_threshold)

        # called in any case, since it stores the relevance that is logged
        engages = bool(agent.should_engage(post))
        if engages:
            return True

        rating = getattr(agent, "relevance", None)
        threshold = getattr(agent, "engagement_threshold", None)
        if rating is None or threshold is None:
            return False

        return bool(rating(post) >= self._scale * threshold)


def take_archetypes(agents: Iterable[SocialAgent], archetypes: Mapping[str, Archetype]) -> None:
    """Replace the usual archetypes of agents by those of the same name, with their settings.

    Args:
        agents: The population; a threshold that is not the usual archetype's is the agent's own.
        archetypes: The archetypes by name.
    """
    changed = {name: kind for name, kind in archetypes.items() if kind != ARCHETYPES[name]}
    for agent in agents if changed else ():
        usual = agent.archetype
        if usual is None or usual.name not in changed or usual != ARCHETYPES[usual.name]:
            continue

        agent.archetype = kind = changed[usual.name]
        if agent.engagement_threshold == usual.engagement_threshold:
            agent.engagement_threshold = kind.engagement_threshold
        if agent.timeout_threshold == usual.timeout_threshold:
            agent.timeout_threshold = kind.timeout_threshold


def opened_by(
    agents: Sequence[SocialAgent], opening: str, bias: float, seed: int
) -> list[SeedPost]:
    """Make the posts from before the first round, if none are given.

    Args:
        agents: The population.
        opening: Their author: ``each`` agent with interests, the ``hub`` with the most followers
            (the first by id, if there are several), one ``drawn`` by its followers, or ``none``.
        bias: Exponent of the number of followers, to which the odds of being drawn are
            proportional.
        seed: Seed of the run.
    """
    if opening == "each":
        return opening_posts(agents, seed=seed)
    if opening == "none":
        return []

    followers = Counter(name for agent in agents for name in agent.following)
    names = sorted(agent.agent_id for agent in agents)
    if opening == "hub":
        author = min(names, key=lambda name: (-followers[name], name))
    else:
        # if nobody is followed, anybody may be drawn
        weights = [followers[name] ** bias for name in names] if followers else [1.0] * len(names)
        author = names[RandomStream(seed, "opening").weighted_index(weights)]

    return [SeedPost(author, "Have you heard? This changes everything.", ("rumour",))]


def check_authors(agents: Iterable[SocialAgent], posts: Iterable[SeedPost]) -> None:
    """Refuse posts by unknown authors.

    Raises:
        FieldValueError: If there are any; the message names the authors.
    """
    known = {agent.agent_id for agent in agents}
    if strangers := sorted({post.author_id for post in posts} - known):
        raise FieldValueError(
            f"posts must be by agents of the population, which has no {', '.join(strangers)}"
        )


def in_keyed_order(posts: Iterable[SeedPost], seed: int) -> list[SeedPost]:
    """Return opening posts in an order that does not depend on the order of the population.

    The posts of one author stay in order.
    """
    return sorted(posts, key=lambda post: RandomStream(seed, "order", post.author_id).random())
