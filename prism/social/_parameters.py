"""All numbers of the feed's behaviour, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self, TypeVar

from prism.errors import FieldValueError
from prism.worlds._parameters import check_group

ValueT = TypeVar("ValueT")

FEEDS = ("interests", "chronological", "popular", "random", "collaborative", "mixed")
NETWORKS = ("given", "scale_free", "small_world", "blocks", "random")


def _of(
    default: ValueT,
    least: float | None = None,
    most: float | None = None,
    *,
    among: tuple[str, ...] = (),
) -> ValueT:
    """Return a field with its range, or with the texts that it may be."""
    return field(default=default, metadata={"least": least, "most": most, "among": among})


LIBRARY = "networkx"
"""Before the colon, what makes a network by a function of that library's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """All numbers of the feed's behaviour; the defaults are those of ``classic``.

    What is a share or a probability lies between 0 and 1. They are fixed within a round: only a
    treatment changes them, by ``self.parameters = replace(self.parameters, feed="random")``.

    Args:
        shuffled: Whether opening posts, and agents in each tick, come in a random order, keyed by
            (seed, round, tick); else in that of the population.
        carries_over: Whether what is under way when a round ends goes on in the next; else drafts
            are published at once, and all return to IDLE.
        ticks_per_hour: Ticks in an hour of the day, from 1 on, for ``hours`` and ``hot_half_life``.
        hours: When agents are awake: ``always``; ``file``, by the attribute
            ``activity_level_frequency`` of each agent, 24 numbers, the largest of which is awake
            all hour; or ``diurnal``, a curve of the day with its trough at four and its peak at
            nine in the evening (after Golder and Macy 2011).
        posts_per_tick: Posts of their own accord, as a mean of all agents and ticks awake, 0 to 1.
        activity: How much more some agents write than others: ``equal``, ``lognormal``, ``pareto``,
            or ``classes`` of 1, 9 and 90 % of the agents. Where agents have archetypes, superusers
            come first, lurkers last.
        activity_sigma: Standard deviation of the logarithm of a lognormal activity, above 0.
        activity_exponent: Exponent of the distribution function of a Pareto activity, above 1.
        top_share: Share of what is written that the first 1 % of the agents write, with
            ``classes`` (van Mierlo 2014: .747).
        next_share: Share that the next 9 % write (van Mierlo 2014: .240).
        silent_share: Share of the agents that write nothing at all.
        most_active: Largest activity, in means of all agents; 0 for no limit.
        common_topics: Topics that the whole population shares, 0 to 60; each agent takes an
            interest in one of them, so that nobody is without any.
        common_share: Probability that a post of its own accord is on a common topic.
        engagement: Factor on the agents' engagement thresholds, from 0 (every post may be decided
            on) to 1 (as agents have them).
        compose_chance: Probability that an agent of mean activity writes about a post that it
            weighs, of relevance 0; None for the inclinations of archetypes.
        like_chance: As above, that it likes one; None as above, for both.
        most_chance: Largest probability that an agent writes about a post.
        relevance_pull: What a post's relevance of 1 adds to the utility of writing and liking, as
            the logarithm of a factor, where chances are given.
        herding: What a post's score adds to the utility of liking it: this times the logarithm of
            1 + likes - dislikes to the base 2, with its sign (Muchnik, Aral and Taylor 2013).
        fading: Factor on the chances of writing about a post, for each step from its root.
        reply_share: Weight of replies among what is written about a post.
        reshare_share: Weight of reshares.
        post_share: Weight of posts of one's own.
        reshares_once: Whether an agent reshares a root at most once.
        replies_per_cascade: Most replies of an agent in one cascade; None for any number.
        resting_ticks: Longest time in RESTING, in ticks, from 1 on (the chart's is 2).
        opening: Who has a post before the first round, where no posts are given: ``each`` agent
            with interests, the ``hub`` that has the most followers, or ``none``.
        feed: How feeds are made: ``interests``, ``chronological``, ``popular``, ``random``,
            ``collaborative``, ``mixed``, or a function as ``package.module:function``.
        feed_length: Most posts in a feed, from 1 on.
        candidates: Newest posts of a source that a feed looks at, from 1 on.
        beyond_follows: Share of the places for posts of authors who are not followed; None for
            wherever the feed finds them.
        mix_chronological: Weight of the chronological order in a mixed feed, from 0 on.
        mix_interests: Weight of the order by interests.
        mix_popular: Weight of the order by hot score.
        mix_random: Weight of a random order.
        mix_collaborative: Weight of the order by what similar agents like.
        hot_half_life: Ticks by which a post must be younger to stand where one of twice the score
            does, above 0; Reddit's 45,000 seconds for ten times the score are 45 ticks of five
            minutes for twice.
        similar_agents: Agents whose likes a collaborative feed goes by, from 1 on.
        likes_compared: Latest likes by which agents are compared, from 1 on.
        network: Who follows whom: as ``given``; else generated, ``scale_free``, ``small_world``,
            ``blocks`` or ``random``, ``networkx:name(arguments)``, or ``package.module:function``.
        mean_follows: Mean number of agents that one follows, from 0 on, of a generated network.
        reciprocity: Probability that a follow is returned (Kwak et al. 2010: 22.1 % of the pairs).
        follower_exponent: Exponent of the numbers of followers of a scale-free network, above 2.
        rewired: Share of rewired follows of a small world.
        within_block: Share of the follows that stay within a block.
        blocks: Number of blocks of equal size; 0 for those that ``block_by`` makes.
        block_by: Attribute that makes blocks; nothing for the first interest.
        shows_scores: Whether questions, prompts and ``post.weighed`` tell likes, dislikes, score
            and relevance.
        logs_follows: Whether ``agent.joined`` tells whom an agent follows.

    Raises:
        FieldTypeError: If a value is of another type; names it.
        FieldValueError: If a value is out of its range; names it.
    """

    shuffled: bool = False
    carries_over: bool = False
    ticks_per_hour: int = _of(12, 1)
    hours: str = _of("always", among=("always", "file", "diurnal"))
    posts_per_tick: float = _of(0.0, 0, 1)
    activity: str = _of("equal", among=("equal", "lognormal", "pareto", "classes"))
    activity_sigma: float = _of(2.0, 0.001, 10)
    activity_exponent: float = _of(1.5, 1.001, 100)
    top_share: float = _of(0.747, 0, 1)
    next_share: float = _of(0.240, 0, 1)
    silent_share: float = _of(0.0, 0, 0.999)
    most_active: float = _of(0.0, 0)
    common_topics: int = _of(0, 0, 60)
    common_share: float = _of(0.0, 0, 1)
    engagement: float = _of(1.0, 0, 1)
    compose_chance: float | None = _of(None, 0, 1)
    like_chance: float | None = _of(None, 0, 1)
    most_chance: float = _of(0.8, 0, 1)
    relevance_pull: float = 2.0
    herding: float = 0.0
    fading: float = _of(1.0, 0, 1)
    reply_share: float = _of(0.45, 0, 1)
    reshare_share: float = _of(0.40, 0, 1)
    post_share: float = _of(0.15, 0, 1)
    reshares_once: bool = False
    replies_per_cascade: int | None = _of(None, 0)
    resting_ticks: int = _of(2, 1)
    opening: str = _of("each", among=("each", "hub", "none"))
    feed: str = "interests"
    feed_length: int = _of(20, 1)
    candidates: int = _of(100, 1)
    beyond_follows: float | None = _of(None, 0, 1)
    mix_chronological: float = _of(0.5, 0)
    mix_interests: float = _of(0.0, 0)
    mix_popular: float = _of(0.5, 0)
    mix_random: float = _of(0.0, 0)
    mix_collaborative: float = _of(0.0, 0)
    hot_half_life: float = _of(45.0, 0.001)
    similar_agents: int = _of(20, 1)
    likes_compared: int = _of(20, 1)
    network: str = "given"
    mean_follows: float = _of(10.0, 0)
    reciprocity: float = _of(0.36, 0, 1)
    follower_exponent: float = _of(2.3, 2.001)
    rewired: float = _of(0.1, 0, 1)
    within_block: float = _of(0.8, 0, 1)
    blocks: int = _of(0, 0)
    block_by: str = ""
    shows_scores: bool = False
    logs_follows: bool = False

    def __post_init__(self) -> None:
        """Refuse what no feed can do."""
        check_group(self)
        for name, known in (("feed", FEEDS), ("network", NETWORKS)):
            given = getattr(self, name)
            if given not in known and ":" not in given:
                raise FieldValueError(
                    f"{name} must be one of {', '.join(known)}, package.module:function or "
                    f"file.py:function, got {given!r}"
                )

    @classmethod
    def preset(cls, name: str, /, **changed: Any) -> Self:
        """Return the parameters of a preset, some of them changed.

        Args:
            name: ``classic``, ``twitter``, ``participation``, ``browsing`` or ``rumour``.
            changed: Parameters that are to be others.

        Raises:
            FieldValueError: If there is no such preset.
            TypeError: If there is no such parameter.
        """
        # a module of data, which needs this one
        from prism.social._presets import preset_named

        return cls(**{**preset_named(name).values, **changed})

    def to_dict(self) -> dict[str, Any]:
        """Return all parameters as plain data."""
        return asdict(self)

    @property
    def functions(self) -> tuple[str, ...]:
        """The addresses of functions of the user's own: of a feed, of a network."""
        named = (self.feed, self.network)
        return tuple(each for each in named if ":" in each and not each.startswith(f"{LIBRARY}:"))

    @property
    def chart(self) -> str:
        """Name of the agents' chart, which has one event more if they post of their own accord."""
        return "social_feed" if self.posts_per_tick else "social_media"

    def changes(self) -> Mapping[str, Any]:
        """Return the parameters that are not those of ``classic``."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if getattr(self, each.name) != each.default
        }


CLASSIC = Parameters()
"""The parameters of the feed as it was before there were presets."""
