"""All numbers that set the feed's behaviour, in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeVar

from prism.agents import (
    ARCHETYPES,
    Archetype,
    Communities,
    Population,
    load_population,
    synthetic_population,
)
from prism.agents._oasis import MOST_KEYWORDS
from prism.errors import FieldValueError
from prism.statechart import AgentState
from prism.worlds._fields import plain_value
from prism.worlds._parameters import check_group

ValueT = TypeVar("ValueT")

FEEDS = ("interests", "chronological", "popular", "random", "collaborative", "mixed")
HOURS = 24
NETWORKS = ("given", "scale_free", "small_world", "blocks", "random")


def _of(
    default: ValueT,
    least: float | None = None,
    most: float | None = None,
    *,
    among: tuple[str, ...] = (),
    settled: bool = False,
) -> ValueT:
    """Return a field with its range, or with the texts it accepts.

    Args:
        default: Its value in ``conversation``, the default preset.
        least: Its least value.
        most: Its greatest value.
        among: The accepted texts.
        settled: Whether the population, the chart or the clock depends on it, so no treatment can
            change it.
    """
    known = {"least": least, "most": most, "among": among, "settled": settled}
    return field(default=default, metadata=known)


_LURKER, _CONTRIBUTOR, _SUPERUSER = ARCHETYPES.values()
_MADE_UP = Communities()
_INCLINED = {
    "scrolling": AgentState.SCROLLING.value,
    "liking": AgentState.ENGAGING_LIKE.value,
    "composing": AgentState.COMPOSING.value,
}
"""Options by the names of the inclinations towards them."""


def _inclination(kind: Archetype, option: str) -> float:
    return _of(kind.inclinations[_INCLINED[option]], settled=True)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """All numbers of the feed's behaviour; the defaults are the preset ``conversation``.

    Shares and probabilities lie between 0 and 1. Parameters are fixed within a round. Only a
    treatment changes them, by ``self.parameters = replace(self.parameters, feed="random")``.

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
        opening: Authors of posts from before the first round, if no posts are given: ``each`` agent
            with interests, the ``hub`` with the most followers, one agent ``drawn`` by its
            followers, or ``none``.
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
        network: Who follows whom: as ``given``, or generated by ``scale_free``, ``small_world``,
            ``blocks``, ``random``, ``networkx:name(arguments)`` or ``package.module:function``.
        mean_follows: Mean number of agents that an agent follows in a generated network, from 0 on.
        reciprocity: Probability that a follow is returned (Kwak et al. 2010: 22.1 % of the pairs).
        follower_exponent: Exponent of the numbers of followers of a scale-free network, above 2.
        rewired: Share of rewired follows of a small world.
        within_block: Share of the follows that stay within a block.
        blocks: Number of blocks of equal size; 0 for blocks by ``block_by``.
        block_by: Attribute whose values are the blocks; empty for the first interest.
        most_keywords: Most interests of an agent of a Twitter file, taken from its most frequent
            words.
        community_size: Agents in a community of a synthetic population, from 1 on.
        community_topics: Topics of a community, 1 to 15.
        most_interests: Most interests of a synthetic agent, from 1 on.
        least_follows: Fewest draws of agents for a synthetic agent to follow, from 0 on.
        most_follows: Most draws of agents to follow.
        hub_share: Probability that a draw is among the community's contributors and superusers,
            rather than among all agents.
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
    ticks_per_hour: int = _of(12, 1, settled=True)
    hours: str = _of("always", among=("always", "file", "diurnal"), settled=True)
    diurnal_curve: tuple[float, ...] = _of(DIURNAL, settled=True)
    first_hour: int | None = _of(0, 0, 23)
    posts_per_tick: float = _of(0.004, 0, 1)
    activity: str = _of(
        "lognormal", among=("equal", "lognormal", "pareto", "classes"), settled=True
    )
    activity_sigma: float = _of(1.0, 0.001, 10, settled=True)
    activity_exponent: float = _of(1.5, 1.001, 100, settled=True)
    top_agents: float = _of(0.01, 0, 1, settled=True)
    next_agents: float = _of(0.09, 0, 1, settled=True)
    top_share: float = _of(0.747, 0, 1, settled=True)
    next_share: float = _of(0.240, 0, 1, settled=True)
    silent_share: float = _of(0.0, 0, 0.999, settled=True)
    most_active: float = _of(0.0, 0, settled=True)
    common_topics: int = _of(40, 0, 60, settled=True)
    common_share: float = _of(0.2, 0, 1)
    engagement: float = _of(0.0, 0, 1, settled=True)
    compose_chance: float | None = _of(0.011, 0, 1)
    like_chance: float | None = _of(0.026, 0, 1)
    dislike_chance: float = _of(0.0, 0, 1)
    virality_sigma: float = _of(0.0, 0, 10)
    visit_chance: float = _of(1.0, 0, 1)
    most_chance: float = _of(0.5, 0, 1)
    relevance_pull: float = 2.0
    herding: float = 0.0
    herding_down: float | None = None
    fading: float = _of(0.14, 0, 1)
    reply_share: float = _of(0.8, 0, 1)
    reshare_share: float = _of(0.2, 0, 1)
    post_share: float = _of(0.0, 0, 1)
    reshares_once: bool = True
    replies_per_cascade: int | None = _of(3, 0)
    resting_ticks: int = _of(2, 1, settled=True)
    opening: str = _of("each", among=("each", "hub", "drawn", "none"), settled=True)
    opening_bias: float = _of(1.0, 0, 100, settled=True)
    feed: str = "interests"
    feed_length: int = _of(20, 1)
    candidates: int = _of(100, 1, settled=True)
    beyond_follows: float | None = _of(None, 0, 1)
    mix_chronological: float = _of(0.5, 0)
    mix_interests: float = _of(0.0, 0)
    mix_popular: float = _of(0.5, 0)
    mix_random: float = _of(0.0, 0)
    mix_collaborative: float = _of(0.0, 0)
    hot_half_life: float = _of(45.0, 0.001)
    similar_agents: int = _of(20, 1)
    likes_compared: int = _of(20, 1)
    network: str = _of("given", settled=True)
    mean_follows: float = _of(10.0, 0, settled=True)
    reciprocity: float = _of(0.36, 0, 1, settled=True)
    follower_exponent: float = _of(2.3, 2.001, settled=True)
    rewired: float = _of(0.1, 0, 1, settled=True)
    within_block: float = _of(0.8, 0, 1, settled=True)
    blocks: int = _of(0, 0, settled=True)
    block_by: str = _of("", settled=True)
    most_keywords: int = _of(MOST_KEYWORDS, 1, settled=True)
    community_size: int = _of(_MADE_UP.size, 1, settled=True)
    community_topics: int = _of(_MADE_UP.topics, 1, _MADE_UP.topics, settled=True)
    most_interests: int = _of(_MADE_UP.most_interests, 1, settled=True)
    least_follows: int = _of(_MADE_UP.least_follows, 0, settled=True)
    most_follows: int = _of(_MADE_UP.most_follows, 0, settled=True)
    hub_share: float = _of(_MADE_UP.hub_share, 0, 1, settled=True)
    lurker_share: float = _of(_LURKER.share, 0, 1, settled=True)
    lurker_threshold: float = _of(_LURKER.engagement_threshold, 0, 1, settled=True)
    lurker_timeout: int = _of(_LURKER.timeout_threshold, 1, settled=True)
    lurker_scrolling: float = _inclination(_LURKER, "scrolling")
    lurker_liking: float = _inclination(_LURKER, "liking")
    lurker_composing: float = _inclination(_LURKER, "composing")
    contributor_share: float = _of(_CONTRIBUTOR.share, 0, 1, settled=True)
    contributor_threshold: float = _of(_CONTRIBUTOR.engagement_threshold, 0, 1, settled=True)
    contributor_timeout: int = _of(_CONTRIBUTOR.timeout_threshold, 1, settled=True)
    contributor_scrolling: float = _inclination(_CONTRIBUTOR, "scrolling")
    contributor_liking: float = _inclination(_CONTRIBUTOR, "liking")
    contributor_composing: float = _inclination(_CONTRIBUTOR, "composing")
    superuser_share: float = _of(_SUPERUSER.share, 0, 1, settled=True)
    superuser_threshold: float = _of(_SUPERUSER.engagement_threshold, 0, 1, settled=True)
    superuser_timeout: int = _of(_SUPERUSER.timeout_threshold, 1, settled=True)
    superuser_scrolling: float = _inclination(_SUPERUSER, "scrolling")
    superuser_liking: float = _inclination(_SUPERUSER, "liking")
    superuser_composing: float = _inclination(_SUPERUSER, "composing")
    shows_scores: bool = True
    shows_activity: bool = False
    logs_follows: bool = _of(True, settled=True)

    def __post_init__(self) -> None:
        """Refuse values that no feed can use."""
        check_group(self)
        for name, known in (("feed", FEEDS), ("network", NETWORKS)):
            given = getattr(self, name)
            if given not in known and ":" not in given:
                raise FieldValueError(
                    f"{name} must be one of {', '.join(known)}, package.module:function or "
                    f"file.py:function, got {given!r}"
                )

        self._check_curve()
        self._check_shares()
        # refuses impossible communities
        self.communities()

    def communities(self) -> Communities:
        """Return the settings of the communities of a synthetic population."""
        return Communities(
            size=self.community_size,
            topics=self.community_topics,
            most_interests=self.most_interests,
            least_follows=self.least_follows,
            most_follows=self.most_follows,
            hub_share=self.hub_share,
        )

    def archetypes(self) -> Mapping[str, Archetype]:
        """Return the archetypes with the numbers set here."""
        return {
            name: Archetype(
                name,
                getattr(self, f"{name}_threshold"),
                getattr(self, f"{name}_timeout"),
                getattr(self, f"{name}_share"),
                {state: getattr(self, f"{name}_{named}") for named, state in _INCLINED.items()},
            )
            for name in ARCHETYPES
        }

    def _check_curve(self) -> None:
        curve = self.diurnal_curve
        if len(curve) != HOURS or not all(0 <= share <= 1 for share in curve):
            raise FieldValueError(
                f"diurnal_curve must be {HOURS} numbers from 0 to 1, got {list(curve)!r}"
            )

    def _check_shares(self) -> None:
        shares = {f"{name}_share": kind.share for name, kind in self.archetypes().items()}
        if not any(shares.values()):
            raise FieldValueError(f"one of {', '.join(shares)} must be above 0")
        for one, other in (("top_agents", "next_agents"), ("top_share", "next_share")):
            given = getattr(self, one), getattr(self, other)
            if sum(given) > 1:
                raise FieldValueError(
                    f"{one} and {other} must be 1 or less together, got {given[0]} and {given[1]}"
                )

    @classmethod
    def preset(cls, name: str, /, **changed: Any) -> Self:
        """Return the parameters of a preset, with some changes.

        Args:
            name: ``conversation``, ``participation``, ``twitter``, ``browsing``, ``rumour``,
                ``herding`` or ``classic``.
            changed: Parameters to change.

        Raises:
            FieldValueError: If there is no such preset.
            TypeError: If there is no such parameter.
        """
        # a module of data that imports this one
        from prism.social._presets import preset_named

        return cls(**{**preset_named(name).values, **changed})

    def to_dict(self) -> dict[str, Any]:
        """Return all parameters as plain data."""
        return {name: plain_value(value) for name, value in asdict(self).items()}

    @property
    def functions(self) -> tuple[str, ...]:
        """The addresses of the user's own functions, for a feed or a network."""
        named = (self.feed, self.network)
        return tuple(each for each in named if ":" in each and not each.startswith(f"{LIBRARY}:"))

    @property
    def chart(self) -> str:
        """Name of the agents' chart, which has one more event if they post unprompted."""
        return "social_feed" if self.posts_per_tick else "social_media"

    def changes(self) -> Mapping[str, Any]:
        """Return the parameters that differ from their defaults."""
        return {
            each.name: plain_value(getattr(self, each.name))
            for each in fields(self)
            if getattr(self, each.name) != each.default
        }


SECONDS_PER_HOUR = 3600

SETTLED: tuple[str, ...] = tuple(
    each.name for each in fields(Parameters) if each.metadata.get("settled")
)
"""Parameters that determine population and chart, so no treatment can change them."""

DEFAULTS = Parameters()
"""The default parameters of a feed, the preset ``conversation``."""


def made_up(size: int, now: Parameters, seed: int) -> Population:
    """Return a synthetic population by the parameters."""
    return synthetic_population(
        size, seed=seed, archetypes=now.archetypes(), communities=now.communities()
    )


def loaded(file: Path, now: Parameters, seed: int, keep: Sequence[str]) -> Population:
    """Return the population of a file, completed by the parameters."""
    archetypes = now.archetypes()
    return load_population(
        file, seed=seed, keep=keep, archetypes=archetypes, most_keywords=now.most_keywords
    )
