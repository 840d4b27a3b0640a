"""Presets: parameters of the feed that are calibrated to published figures, with sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prism.errors import FieldValueError

DEFAULT_PRESET = "conversation"
"""The preset of a feed of which nothing else is said: people answer each other, however few."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Named parameters.

    Args:
        name: The name.
        about: What it is calibrated to, the source, and what it does not reproduce.
        values: The parameters that differ from the defaults, which are ``conversation``.
    """

    name: str
    about: str
    values: Mapping[str, Any] = field(default_factory=dict)


_SHARING: Mapping[str, Any] = {
    "engagement": 0.5,
    "relevance_pull": 0.5,
    "reply_share": 0.25,
    "reshare_share": 0.75,
}
"""What the presets have in common in which posts are shared rather than answered."""

_CONVERSATION = Preset(
    DEFAULT_PRESET,
    "Calibrated to 1.2 billion tweets: 29 % are answered or reshared, 6 % reshared, and of the "
    "threads 15 % go beyond one reply (Sysomos 2010, Replies and Retweets on Twitter). It is for "
    "small populations too, as each agent answers at a rate of its own. How much more some write "
    "than others is an assumption.",
)
_PARTICIPATION = Preset(
    "participation",
    "Calibrated to 1 % of the users writing .747 of what is written, the next 9 % .240, the other "
    "90 % .013 (van Mierlo 2014, Journal of Medical Internet Research 16(2), e33). Cascades are "
    "smaller than on Twitter: few go beyond one degree.",
    {
        "activity": "classes",
        # the most active have less time to begin a post than the rest, so they write .747 of it all
        "top_share": 0.8255,
        "next_share": 0.1655,
        "posts_per_tick": 0.0025,
        "compose_chance": 0.0005,
        "fading": 0.6,
        "reply_share": 0.5,
        "reshare_share": 0.5,
    },
)
_TWITTER = Preset(
    "twitter",
    "Calibrated to a tenth of the users writing .80 of what is written (Wojcik and Hughes 2019, "
    "Sizing up Twitter users), .70 to .95 of the posts never being reshared, and .01 to .04 of the "
    "trees of reshares going beyond one degree (Goel, Watts and Goldstein 2012). Large cascades "
    "are missing: the largest has about ten posts.",
    {
        **_SHARING,
        "activity_sigma": 2.6,
        "most_active": 20.0,
        "posts_per_tick": 0.005,
        "compose_chance": 0.026,
        "like_chance": 0.1,
        "fading": 0.47,
    },
)
_BROWSING = Preset(
    "browsing",
    "Calibrated to .92 of all actions only looking at what others wrote (Benevenuto et al. 2009, "
    "Characterizing user behavior in online social networks). Who writes is hardly concentrated "
    "at all.",
    {
        **_SHARING,
        "activity": "equal",
        "posts_per_tick": 0.003,
        "compose_chance": 0.010,
        "like_chance": 0.08,
        "fading": 0.36,
    },
)
_RUMOUR = Preset(
    "rumour",
    "Calibrated to users, depth and pace of 99 of the 198 Twitter cascades of OASIS (arXiv "
    "2411.11581). One post by an author who is drawn by its followers spreads over a follow "
    "graph. Nobody writes anything else, so it says nothing about participation.",
    {
        "activity": "equal",
        "posts_per_tick": 0.0,
        "common_topics": 0,
        "network": "scale_free",
        "mean_follows": 40.0,
        "follower_exponent": 2.02,
        "feed": "chronological",
        "beyond_follows": 0.0,
        "opening": "drawn",
        "opening_bias": 1.42,
        # six rounds are twelve hours, in which real cascades have ended
        "ticks_per_hour": 6,
        "hours": "diurnal",
        "first_hour": None,
        "visit_chance": 0.02686,
        "virality_sigma": 0.3814,
        "relevance_pull": 0.0,
        "compose_chance": 0.99,
        "like_chance": 0.05,
        "most_chance": 1.0,
        "fading": 0.2035,
        "reply_share": 0.0,
        "reshare_share": 1.0,
        "replies_per_cascade": None,
    },
)
_HERDING = Preset(
    "herding",
    "As conversation, with votes that draw votes: a post with one like is 32 % more likely to be "
    "liked than one without, and one with a dislike is corrected (Muchnik, Aral and Taylor 2013, "
    "Social influence bias). The plan herd gives posts their first vote.",
    {"herding": 0.2776, "herding_down": -0.2, "dislike_chance": 0.005},
)
_CLASSIC = Preset(
    "classic",
    "The feed as it was before there were presets, calibrated to nothing: archetypes say what "
    "agents do, and threads are long.",
    {
        "carries_over": False,
        "posts_per_tick": 0.0,
        "activity": "equal",
        "common_topics": 0,
        "common_share": 0.0,
        "engagement": 1.0,
        "compose_chance": None,
        "like_chance": None,
        "most_chance": 0.8,
        "fading": 1.0,
        "reply_share": 0.45,
        "reshare_share": 0.4,
        "post_share": 0.15,
        "reshares_once": False,
        "replies_per_cascade": None,
        "shows_scores": False,
        "logs_follows": False,
    },
)

PRESETS: Mapping[str, Preset] = {
    each.name: each
    for each in (_CONVERSATION, _PARTICIPATION, _TWITTER, _BROWSING, _RUMOUR, _HERDING, _CLASSIC)
}
"""All presets by their names."""


def preset_named(name: str) -> Preset:
    """Return the preset with a name.

    Raises:
        FieldValueError: If there is none.
    """
    if name not in PRESETS:
        raise FieldValueError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")

    return PRESETS[name]
