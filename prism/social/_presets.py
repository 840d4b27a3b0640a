"""Presets: parameters of the feed that resemble what has been published, with sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prism.errors import FieldValueError

DEFAULT_PRESET = "classic"


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


_WRITING: Mapping[str, Any] = {
    "shuffled": True,
    "carries_over": True,
    "activity": "lognormal",
    "common_topics": 40,
    "common_share": 0.2,
    "engagement": 0.0,
    "reshares_once": True,
    "replies_per_cascade": 3,
}

_CLASSIC = Preset("classic", "The feed as it was before there were presets.")
_TWITTER = Preset(
    "twitter",
    "A tenth of the users write .80 of what is written (Wojcik and Hughes 2019), and most posts "
    "are never reshared (Goel, Watts and Goldstein 2012).",
    {**_WRITING},
)

PRESETS: Mapping[str, Preset] = {each.name: each for each in (_CLASSIC, _TWITTER)}
"""All presets by their names."""


def preset_named(name: str) -> Preset:
    """Return the preset of a name.

    Raises:
        FieldValueError: If there is none.
    """
    if name not in PRESETS:
        raise FieldValueError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")

    return PRESETS[name]
