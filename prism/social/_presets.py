"""Presets: parameters of the feed that resemble what has been published, with sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prism.errors import FieldValueError

DEFAULT_PRESET = "participation"
"""The preset whose runs are nearest to all published figures together; see docs/feed.md."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Parameters under a name.

    Args:
        name: The name.
        about: What it resembles, by which source, and what it does not reproduce.
        values: The parameters that are not those of ``classic``.
    """

    name: str
    about: str
    values: Mapping[str, Any] = field(default_factory=dict)


_OPEN: Mapping[str, Any] = {
    "carries_over": True,
    "shows_scores": True,
    "logs_follows": True,
}
"""What all presets but ``classic`` have in common."""

_WRITING: Mapping[str, Any] = {
    **_OPEN,
    "common_topics": 40,
    "common_share": 0.2,
    "engagement": 0.5,
    "relevance_pull": 0.5,
    "most_chance": 0.5,
    "reshares_once": True,
    "replies_per_cascade": 3,
    "reply_share": 0.25,
    "reshare_share": 0.75,
    "post_share": 0.0,
    "like_chance": 0.1,
}
"""What the presets have in common in which agents write of their own accord."""

_CLASSIC = Preset("classic", "The feed as it was before there were presets.")
_PARTICIPATION = Preset(
    "participation",
    "1 % of the agents write .747 of what is written, the next 9 % .240, the other 90 % .013 (van "
    "Mierlo 2014, Journal of Medical Internet Research 16(2), e33). Cascades are smaller than on "
    "Twitter: few go beyond one degree.",
    {
        **_WRITING,
        "activity": "classes",
        # the most active have less time to begin a post than the rest, so they get more than .747
        "top_share": 0.8255,
        "next_share": 0.1655,
        "posts_per_tick": 0.0025,
        "engagement": 0.0,
        "relevance_pull": 2.0,
        "compose_chance": 0.0005,
        "like_chance": 0.03,
        "fading": 0.6,
        "reply_share": 0.5,
        "reshare_share": 0.5,
    },
)
_TWITTER = Preset(
    "twitter",
    "A tenth of the agents write .80 of what is written (Wojcik and Hughes 2019, Sizing up Twitter "
    "users); .70 to .95 of the posts are never reshared, .01 to .04 of the trees of reshares go "
    "beyond one degree (Goel, Watts and Goldstein 2012). Large cascades are missing: the largest "
    "has about ten posts.",
    {
        **_WRITING,
        "activity": "lognormal",
        "activity_sigma": 2.5,
        "most_active": 20.0,
        "posts_per_tick": 0.005,
        "compose_chance": 0.012,
        "fading": 0.42,
    },
)
_BROWSING = Preset(
    "browsing",
    ".92 of all actions only look at what others wrote (Benevenuto et al. 2009, Characterizing "
    "user behavior in online social networks). Who writes is hardly concentrated at all.",
    {
        **_WRITING,
        "posts_per_tick": 0.003,
        "compose_chance": 0.010,
        "like_chance": 0.08,
        "fading": 0.36,
    },
)
_RUMOUR = Preset(
    "rumour",
    "One post of the most followed agent spreads over a follow graph as in the 198 Twitter "
    "cascades of OASIS (arXiv 2411.11581): 248 to 401.5 users in the middle half, depth 3 in the "
    "median and 9 at the most. Nobody writes anything else, so it says nothing about "
    "participation.",
    {
        **_OPEN,
        "network": "scale_free",
        "mean_follows": 20.0,
        "follower_exponent": 2.02,
        "feed": "chronological",
        "beyond_follows": 0.0,
        "opening": "hub",
        "engagement": 0.0,
        "relevance_pull": 0.0,
        "compose_chance": 0.3,
        "like_chance": 0.05,
        "most_chance": 1.0,
        "fading": 0.12,
        "reshares_once": True,
        "reply_share": 0.0,
        "reshare_share": 1.0,
        "post_share": 0.0,
    },
)

PRESETS: Mapping[str, Preset] = {
    each.name: each for each in (_CLASSIC, _PARTICIPATION, _TWITTER, _BROWSING, _RUMOUR)
}
"""All presets by their names."""


def preset_named(name: str) -> Preset:
    """Return the preset of a name.

    Raises:
        FieldValueError: If there is none.
    """
    if name not in PRESETS:
        raise FieldValueError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")

    return PRESETS[name]
