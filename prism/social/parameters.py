"""All numbers that set the feed's behaviour, in one place, and the presets of their values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from prism.errors import FieldValueError
from prism.social._readers import Reader
from prism.worlds import World, param

DEFAULT_PRESET = "conversation"
"""The default preset, in which people answer each other even if there are few of them."""

HOURS = 24
SECONDS_PER_HOUR = 3600

DIURNAL = (
    0.45, 0.32, 0.24, 0.19, 0.17, 0.19, 0.27, 0.40, 0.53, 0.62, 0.68, 0.72,
    0.76, 0.78, 0.78, 0.78, 0.80, 0.83, 0.87, 0.92, 0.97, 1.00, 0.90, 0.66,
)  # fmt: skip
"""The share of agents awake in each hour of the day, from midnight on.

Its shape, with a trough at four in the morning and a peak in the evening, is that of the posts of a
day in Golder and Macy (2011, Science 333, figure 1). The numbers are approximate readings.
"""


@dataclass(frozen=True, slots=True)
class Preset:
    """Named parameters.

    Args:
        about: The figures to which it is calibrated, their source, and what it does not reproduce.
        values: The parameters that differ from the defaults, which are ``conversation``.
    """

    about: str
    values: Mapping[str, Any] = field(default_factory=dict)


def _presets_in(file: Path) -> dict[str, Preset]:
    return {
        name: Preset(
            " ".join(table["about"].split()),
            {**table.get("values", {}), **dict.fromkeys(table.get("none", ()))},
        )
        for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items()
    }


PRESETS: Mapping[str, Preset] = _presets_in(Path(__file__).with_name("presets.toml"))
"""All presets by their names."""


class Parameters(World[Reader]):
    """The parameters of the feed; their defaults are the preset ``conversation``.

    Shares and probabilities lie between 0 and 1. Only a treatment changes parameters, as in
    ``self.feed = "chronological"``, but not those on which the population or the chart depends.

    Args:
        preset: Name of a preset, whose values replace these defaults.
        first_posts: Posts from before the first round, oldest first: `SeedPost` objects, or a file
            of them (see `load_posts`); by default ``opening_authors`` makes them.
        carries_over: Whether agents continue their activity in the next round. Otherwise, drafts
            are published at the end of a round, and all agents return to IDLE.
        ticks_per_hour: Ticks in an hour, from 1 on. This sets the length of a tick for ``hours``
            and for the times in the log; by default, it is five minutes.
        hours: When agents are awake: ``always``, or ``diurnal``, by a curve with its trough at four
            and its peak at nine in the evening (after Golder and Macy 2011). The seed decides in
            which hour a run begins.
        posts_per_tick: Mean number of posts on an agent's own initiative per tick awake, 0 to 1.
        activity: Distribution of how much agents write: ``equal``, ``lognormal``, or
            ``classes``, three classes of equal agents. If agents have archetypes, superusers rank
            first and lurkers last.
        activity_sigma: Standard deviation of the logarithm of a lognormal activity, above 0.
        top_share: Share of all writing by the first class, 1 % of the agents (Nielsen 2006; van
            Mierlo 2014: .747).
        next_share: Share of all writing by the second class, 9 % of the agents (van Mierlo 2014:
            .240), or what the first class leaves.
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
        opening_authors: Authors of posts from before the first round, if no posts are given:
            ``each`` agent with interests, or one agent ``drawn`` by its followers.
        opening_bias: Exponent of the number of followers in ``drawn``: 0 draws any agent, a large
            value draws the hub.
        feed: How feeds are made: ``interests`` or ``chronological``. For another ranking, override
            `Feed.rank`.
        feed_length: Most posts in a feed, from 1 on.
        candidates: Number of newest posts of each source to consider for a feed, from 1 on.
        follow_network: Who follows whom: as ``given`` by the population, or generated as
            ``scale_free``. For another network, override `Feed.populate`.
        mean_follows: Mean number of agents that an agent follows in a generated network, from 0 on,
            as far as there are enough agents.
        reciprocity: Probability that a follow is returned (Kwak et al. 2010: 22.1 % of the pairs).
        follower_exponent: Exponent of the numbers of followers of a scale-free network, above 2.
        shows_scores: Whether questions, prompts and ``post.weighed`` include likes, dislikes, score
            and relevance.
        up_treated: Share of the posts that get a like from nobody when they are published, which is
            logged as ``post.voted`` (Muchnik, Aral and Taylor 2013).
        down_treated: Share of the posts that get a dislike then.

    Raises:
        FieldTypeError: If a value has the wrong type. The message names it.
        FieldValueError: If a value is out of range. The message names it.
    """

    # population and chart are made of these
    settled: ClassVar[Sequence[str]] = (
        "ticks_per_hour", "hours", "activity", "activity_sigma", "top_share", "next_share",
        "most_active", "common_topics", "opening_authors", "opening_bias",
        "candidates", "follow_network", "mean_follows", "reciprocity", "follower_exponent",
    )  # fmt: skip

    preset: str = DEFAULT_PRESET
    first_posts: Any = None
    carries_over: bool = True
    ticks_per_hour: int = param(12, least=1)
    hours: Literal["always", "diurnal"] = "always"
    posts_per_tick: float = param(0.004, least=0, most=1)
    activity: Literal["equal", "lognormal", "classes"] = "lognormal"
    activity_sigma: float = param(1.0, least=0.001, most=10)
    top_share: float = param(0.747, least=0, most=1)
    next_share: float = param(0.240, least=0, most=1)
    most_active: float = param(0.0, least=0)
    common_topics: int = param(40, least=0, most=60)
    common_share: float = param(0.2, least=0, most=1)
    engagement: float = param(0.0, least=0, most=1)
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
    opening_authors: Literal["each", "drawn"] = "each"
    opening_bias: float = param(1.0, least=0, most=100)
    feed: Literal["interests", "chronological"] = "interests"
    feed_length: int = param(20, least=1)
    candidates: int = param(100, least=1)
    follow_network: Literal["given", "scale_free"] = "given"
    mean_follows: float = param(10.0, least=0)
    reciprocity: float = param(0.36, least=0, most=1)
    follower_exponent: float = param(2.3, least=2.001)
    shows_scores: bool = True
    up_treated: float = param(0.0, least=0, most=1)
    down_treated: float = param(0.0, least=0, most=1)

    def __init__(self, **parameters: Any) -> None:
        """Set the parameters: those that are passed, those of the preset, and the defaults."""
        cls = type(self)
        name = parameters.get("preset", cls.fields["preset"].default)
        if name not in PRESETS:
            raise FieldValueError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")

        # a class's own defaults take precedence
        values = {
            name: value
            for name, value in PRESETS[name].values.items()
            if cls.fields[name] is Parameters.fields[name]
        }
        super().__init__(**{**values, **parameters})
