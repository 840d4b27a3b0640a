"""All numbers that set the feed's behaviour, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from prism.agents import (
    ARCHETYPES,
    Archetype,
)
from prism.errors import DefinitionError, FieldValueError
from prism.statechart import AgentState
from prism.worlds import World, param
from prism.worlds._fields import (
    Declared,
    check_value,
    hints_of,
    plain_value,
)

ValueT = TypeVar("ValueT")

CANDIDATES = 100
FEED_LENGTH = 20
RESTING_TICKS = 2
FEEDS = ("interests", "chronological", "popular", "random", "collaborative", "mixed")
HOURS = 24
NETWORKS = ("given", "scale_free", "small_world", "blocks", "random")


@dataclass(frozen=True, slots=True)
class _Settled(Declared):
    """A parameter on which the population, the chart or the clock depends."""


def _settled(default: ValueT, least: float | None = None, most: float | None = None) -> ValueT:
    """Declare a parameter that no treatment can change.

    Args:
        default: Its value in ``conversation``, the default preset.
        least: Its least value.
        most: Its greatest value.
    """
    return cast(ValueT, _Settled(default, least=least, most=most))


_LURKER, _CONTRIBUTOR, _SUPERUSER = ARCHETYPES.values()
_INCLINED = {
    "scrolling": AgentState.SCROLLING.value,
    "liking": AgentState.ENGAGING_LIKE.value,
    "composing": AgentState.COMPOSING.value,
}
"""Options by the names of the inclinations towards them."""


def _inclination(kind: Archetype, option: str) -> float:
    return _settled(kind.inclinations[_INCLINED[option]])


DIURNAL = (
    *(0.45, 0.32, 0.24, 0.19, 0.17, 0.19, 0.27, 0.40, 0.53, 0.62, 0.68, 0.72),
    *(0.76, 0.78, 0.78, 0.78, 0.80, 0.83, 0.87, 0.92, 0.97, 1.00, 0.90, 0.66),
)
"""The share of agents awake in each hour of the day, from midnight on.

Its shape, with a trough at four in the morning and a peak in the evening, is that of the posts of a
day in Golder and Macy (2011, Science 333, figure 1). The numbers are approximate readings.
"""


LIBRARY = "networkx"
"""The prefix, before the colon, of networks made by a function of networkx."""


class Parameters(World[Any]):
    """The parameters of the feed; their defaults are the preset ``conversation``.

    Shares and probabilities lie between 0 and 1. Parameters are fixed within a round. Only a
    treatment changes them, as in ``self.feed = "random"``.

    Args:
        carries_over: Whether agents continue their activity in the next round. Otherwise, drafts
            are published at the end of a round, and all agents return to IDLE.
        ticks_per_hour: Ticks in an hour, from 1 on. This sets the length of a tick for ``hours``
            and for the times in the log; by default, it is five minutes.
        hours: When agents are awake: ``always``; ``file``, by the attribute
            ``activity_level_frequency`` of each agent (24 numbers, the largest of which means the
            whole hour); or ``diurnal``, by ``diurnal_curve``.
        diurnal_curve: The share of agents awake in each hour of the day with ``diurnal``: 24
            numbers from midnight on, 0 to 1. The default has its trough at four and its peak at
            nine in the evening (after Golder and Macy 2011).
        first_hour: Hour of the day in which the run begins, 0 to 23; None to draw it by the seed.
        posts_per_tick: Mean number of posts on an agent's own initiative per tick awake, 0 to 1.
        activity: Distribution of how much agents write: ``equal``, ``lognormal``, ``pareto``, or
            ``classes``, three classes of equal agents. If agents have archetypes, superusers rank
            first and lurkers last.
        activity_sigma: Standard deviation of the logarithm of a lognormal activity, above 0.
        activity_exponent: Exponent of the distribution function of a Pareto activity, above 1.
        top_agents: Share of the agents in the first class (Nielsen 2006: 1 %).
        next_agents: Share of the agents in the second class (Nielsen 2006: 9 %); the others are in
            the third.
        top_share: Share of all writing by the first class (van Mierlo 2014: .747).
        next_share: Share of all writing by the second class (van Mierlo 2014: .240).
        silent_share: Share of the agents that never write.
        most_active: Largest activity, as a multiple of the mean; 0 for no limit.
        common_topics: Topics that all agents share, per hundred agents, 0 to 60. Each agent is
            interested in one of them, so none is without interests.
        common_share: Probability that a post on an agent's own initiative is on a common topic.
        engagement: Factor on the agents' engagement thresholds, from 0 (agents may decide on every
            post) to 1 (unchanged).
        compose_chance: Probability that an agent of mean activity writes about a post of relevance
            0 that it weighs.
        like_chance: The same probability for liking the post. If either chance is None, the
            inclinations of archetypes decide.
        dislike_chance: Probability that an agent dislikes a post that it has weighed and scrolled
            past.
        virality_sigma: Standard deviation of the logarithm of a root's virality, whose median is 1.
            The virality is a factor on the chance of writing about the root, applied once more for
            each step from it. The larger it is, the heavier the tails of the sizes and depths of
            cascades.
        visit_chance: Probability that an idle agent opens its feed in a tick.
        most_chance: Largest probability that an agent writes about a post.
        relevance_pull: Amount that a relevance of 1 adds to the utility of writing and liking; if
            chances are given, the logarithm of a factor on them.
        herding: Amount that a score (likes minus dislikes) of 1 adds to the utility of liking a
            post, and subtracts from that of disliking it. A score of n counts log2(1 + n) times as
            much.
        herding_down: Amount that a score of -1 subtracts from the utility of liking a post, and
            adds to that of disliking it. If it is below 0, agents correct a bad score (Muchnik,
            Aral and Taylor 2013). None for the value of ``herding``.
        fading: Factor on the chances of writing about a post, for each step from its root.
        reply_share: Weight of replies among texts about a post.
        reshare_share: Weight of reshares.
        post_share: Weight of an agent's own posts.
        reshares_once: Whether an agent reshares a root at most once.
        replies_per_cascade: Most replies of an agent in one cascade; None for any number.
        resting_ticks: Longest time in RESTING, in ticks, from 1 on (the chart's is 2).
        opening_authors: Authors of posts from before the first round, if no posts are given:
            ``each`` agent with interests, the ``hub`` with the most followers, one agent ``drawn``
            by its followers, or ``none``.
        opening_bias: Exponent of the number of followers in ``drawn``: 0 draws any agent, a large
            value draws the hub.
        feed: How feeds are made: ``interests``, ``chronological``, ``popular``, ``random``,
            ``collaborative``, ``mixed``, or a function as ``package.module:function``.
        feed_length: Most posts in a feed, from 1 on.
        candidates: Number of newest posts of each source to consider for a feed, from 1 on.
        beyond_follows: Share of places reserved for authors who are not followed; None for no fixed
            share.
        mix_chronological: Weight of the chronological order in a mixed feed, from 0 on.
        mix_interests: Weight of the order by interests.
        mix_popular: Weight of the order by hot score.
        mix_random: Weight of a random order.
        mix_collaborative: Weight of the order by what similar agents like.
        hot_half_life: Ticks by which a post with half the score must be younger to rank equally,
            above 0. Reddit's 45,000 seconds for a tenth of the score correspond to 45 ticks of the
            default length.
        similar_agents: Agents whose likes a collaborative feed uses, from 1 on.
        likes_compared: Latest likes that are compared between agents, from 1 on.
        follow_network: Who follows whom: as ``given``, or generated by ``scale_free``,
            ``small_world``, ``blocks``, ``random``, ``networkx:name(arguments)`` or
            ``package.module:function``.
        mean_follows: Mean number of agents that an agent follows in a generated network, from 0 on.
        reciprocity: Probability that a follow is returned (Kwak et al. 2010: 22.1 % of the pairs).
        follower_exponent: Exponent of the numbers of followers of a scale-free network, above 2.
        rewired: Share of rewired follows of a small world.
        within_block: Share of the follows that stay within a block.
        blocks: Number of blocks of equal size; 0 for blocks by ``block_by``.
        block_by: Attribute whose values are the blocks; empty for the first interest.
        lurker_share: Weight of lurkers among agents without an archetype in a file.
        lurker_threshold: Relevance from which lurkers engage.
        lurker_timeout: Longest dwell time of lurkers in one state, in ticks, from 1 on.
        lurker_scrolling: Utility of scrolling on for lurkers, if no chances are given.
        lurker_liking: Utility of liking for lurkers.
        lurker_composing: Utility of writing for lurkers.
        contributor_share: Weight of contributors among agents without an archetype in a file.
        contributor_threshold: Relevance from which contributors engage.
        contributor_timeout: Longest dwell time of contributors in one state, in ticks, from 1 on.
        contributor_scrolling: Utility of scrolling on for contributors, if no chances are given.
        contributor_liking: Utility of liking for contributors.
        contributor_composing: Utility of writing for contributors.
        superuser_share: Weight of superusers among agents without an archetype in a file.
        superuser_threshold: Relevance from which superusers engage.
        superuser_timeout: Longest dwell time of superusers in one state, in ticks, from 1 on.
        superuser_scrolling: Utility of scrolling on for superusers, if no chances are given.
        superuser_liking: Utility of liking for superusers.
        superuser_composing: Utility of writing for superusers.
        shows_scores: Whether questions, prompts and ``post.weighed`` include likes, dislikes, score
            and relevance.
        shows_activity: Whether prompts say how much the agent writes, compared with the mean.
            Without it, a model does not keep to an agent's activity.
        logs_follows: Whether ``agent.joined`` lists whom the agent follows.

    The numbers of an archetype apply to the agents that have it. An agent with its own thresholds
    keeps them.

    Raises:
        FieldTypeError: If a value has the wrong type. The message names it.
        FieldValueError: If a value is out of range. The message names it.
    """

    carries_over: bool = True
    ticks_per_hour: int = _settled(12, 1)
    hours: Literal["always", "file", "diurnal"] = _settled("always")
    diurnal_curve: tuple[float, ...] = _settled(DIURNAL)
    first_hour: int | None = param(0, least=0, most=23)
    posts_per_tick: float = param(0.004, least=0, most=1)
    activity: Literal["equal", "lognormal", "pareto", "classes"] = _settled("lognormal")
    activity_sigma: float = _settled(1.0, 0.001, 10)
    activity_exponent: float = _settled(1.5, 1.001, 100)
    top_agents: float = _settled(0.01, 0, 1)
    next_agents: float = _settled(0.09, 0, 1)
    top_share: float = _settled(0.747, 0, 1)
    next_share: float = _settled(0.240, 0, 1)
    silent_share: float = _settled(0.0, 0, 0.999)
    most_active: float = _settled(0.0, 0)
    common_topics: int = _settled(40, 0, 60)
    common_share: float = param(0.2, least=0, most=1)
    engagement: float = _settled(0.0, 0, 1)
    compose_chance: float | None = param(0.011, least=0, most=1)
    like_chance: float | None = param(0.026, least=0, most=1)
    dislike_chance: float = param(0.0, least=0, most=1)
    virality_sigma: float = param(0.0, least=0, most=10)
    visit_chance: float = param(1.0, least=0, most=1)
    most_chance: float = param(0.5, least=0, most=1)
    relevance_pull: float = 2.0
    herding: float = 0.0
    herding_down: float | None = None
    fading: float = param(0.14, least=0, most=1)
    reply_share: float = param(0.8, least=0, most=1)
    reshare_share: float = param(0.2, least=0, most=1)
    post_share: float = param(0.0, least=0, most=1)
    reshares_once: bool = True
    replies_per_cascade: int | None = param(3, least=0)
    resting_ticks: int = _settled(RESTING_TICKS, 1)
    opening_authors: Literal["each", "hub", "drawn", "none"] = _settled("each")
    opening_bias: float = _settled(1.0, 0, 100)
    feed: str = "interests"
    feed_length: int = param(FEED_LENGTH, least=1)
    candidates: int = _settled(CANDIDATES, 1)
    beyond_follows: float | None = param(None, least=0, most=1)
    mix_chronological: float = param(0.5, least=0)
    mix_interests: float = param(0.0, least=0)
    mix_popular: float = param(0.5, least=0)
    mix_random: float = param(0.0, least=0)
    mix_collaborative: float = param(0.0, least=0)
    hot_half_life: float = param(45.0, least=0.001)
    similar_agents: int = param(20, least=1)
    likes_compared: int = param(20, least=1)
    follow_network: str = _settled("given")
    mean_follows: float = _settled(10.0, 0)
    reciprocity: float = _settled(0.36, 0, 1)
    follower_exponent: float = _settled(2.3, 2.001)
    rewired: float = _settled(0.1, 0, 1)
    within_block: float = _settled(0.8, 0, 1)
    blocks: int = _settled(0, 0)
    block_by: str = _settled("")
    lurker_share: float = _settled(_LURKER.share, 0, 1)
    lurker_threshold: float = _settled(_LURKER.engagement_threshold, 0, 1)
    lurker_timeout: int = _settled(_LURKER.timeout_threshold, 1)
    lurker_scrolling: float = _inclination(_LURKER, "scrolling")
    lurker_liking: float = _inclination(_LURKER, "liking")
    lurker_composing: float = _inclination(_LURKER, "composing")
    contributor_share: float = _settled(_CONTRIBUTOR.share, 0, 1)
    contributor_threshold: float = _settled(_CONTRIBUTOR.engagement_threshold, 0, 1)
    contributor_timeout: int = _settled(_CONTRIBUTOR.timeout_threshold, 1)
    contributor_scrolling: float = _inclination(_CONTRIBUTOR, "scrolling")
    contributor_liking: float = _inclination(_CONTRIBUTOR, "liking")
    contributor_composing: float = _inclination(_CONTRIBUTOR, "composing")
    superuser_share: float = _settled(_SUPERUSER.share, 0, 1)
    superuser_threshold: float = _settled(_SUPERUSER.engagement_threshold, 0, 1)
    superuser_timeout: int = _settled(_SUPERUSER.timeout_threshold, 1)
    superuser_scrolling: float = _inclination(_SUPERUSER, "scrolling")
    superuser_liking: float = _inclination(_SUPERUSER, "liking")
    superuser_composing: float = _inclination(_SUPERUSER, "composing")
    shows_scores: bool = True
    shows_activity: bool = False
    logs_follows: bool = _settled(True)

    def changes(self) -> Mapping[str, Any]:
        """Return the parameters that differ from their defaults."""
        return {
            name: plain_value(getattr(self, name))
            for name, field in Parameters.fields.items()
            if getattr(self, name) != field.declared.default
        }

    def _prism_check(self) -> None:
        """Refuse values that no feed can use."""
        own, hints = type(self).fields, hints_of(Parameters)
        for name, usual in Parameters.fields.items():
            if own[name] is not usual:
                check_value(usual, hints[name], getattr(self, name))

        for name, known in (("feed", FEEDS), ("follow_network", NETWORKS)):
            given = getattr(self, name)
            if given not in known and ":" not in given:
                raise FieldValueError(
                    f"{name} must be one of {', '.join(known)}, package.module:function or "
                    f"file.py:function, got {given!r}"
                )

        _check_curve(self)
        _check_shares(self)


def refuse_hidden(cls: type[Parameters]) -> None:
    """Refuse a class whose attributes hide parameters of the feed.

    Raises:
        DefinitionError: If one does.
    """
    for name, slot in ((name, vars(Parameters)[name]) for name in Parameters.fields):
        if getattr(cls, name) is not slot or cls.fields[name].declared.is_state:
            raise DefinitionError(
                f"{cls.__name__}.{name} would hide a parameter of the feed: give it another name, "
                f"or declare a default with its type,  {name}: "
                f"{Parameters.fields[name].annotation} = ..."
            )


def _check_curve(now: Parameters) -> None:
    curve = now.diurnal_curve
    if len(curve) != HOURS or not all(0 <= share <= 1 for share in curve):
        raise FieldValueError(
            f"diurnal_curve must be {HOURS} numbers from 0 to 1, got {list(curve)!r}"
        )


def _check_shares(now: Parameters) -> None:
    shares = {f"{name}_share": kind.share for name, kind in archetypes_of(now).items()}
    if not any(shares.values()):
        raise FieldValueError(f"one of {', '.join(shares)} must be above 0")
    for one, other in (("top_agents", "next_agents"), ("top_share", "next_share")):
        given = getattr(now, one), getattr(now, other)
        if sum(given) > 1:
            raise FieldValueError(
                f"{one} and {other} must be 1 or less together, got {given[0]} and {given[1]}"
            )


def archetypes_of(now: Parameters) -> Mapping[str, Archetype]:
    """Return the archetypes with the numbers that the parameters set."""
    return {
        name: Archetype(
            name,
            getattr(now, f"{name}_threshold"),
            getattr(now, f"{name}_timeout"),
            getattr(now, f"{name}_share"),
            {state: getattr(now, f"{name}_{named}") for named, state in _INCLINED.items()},
        )
        for name in ARCHETYPES
    }


SECONDS_PER_HOUR = 3600

SETTLED: tuple[str, ...] = tuple(
    name for name, each in Parameters.fields.items() if isinstance(each.declared, _Settled)
)
"""Parameters that determine population and chart, so no treatment can change them."""
