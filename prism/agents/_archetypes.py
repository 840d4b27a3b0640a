"""Kinds of social media users and their default behaviour.

Their proportions follow the 90-9-1 rule of participation inequality (Nielsen 2006): most users of a
large community only read, some contribute occasionally, and very few write most of the posts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from prism.errors import FieldValueError


@dataclass(frozen=True, slots=True)
class Archetype:
    """A kind of user.

    Args:
        name: Its name in population files.
        engagement_threshold: Relevance from which its agents engage, 0.0 to 1.0.
        timeout_threshold: Longest dwell time of its agents in a state, in ticks.
        share: Its proportion of a population without archetypes, 0.0 to 1.0.
        inclinations: Utility of each option for `PolicyReasoner`, by the name of the state; 0 for
            states that are not listed.
    """

    name: str
    engagement_threshold: float
    timeout_threshold: int
    share: float
    inclinations: Mapping[str, float] = field(default_factory=dict)


def _inclined(scrolling: float, liking: float, composing: float) -> Mapping[str, float]:
    return {"scrolling": scrolling, "engaging_like": liking, "composing": composing}


_ALL = (
    Archetype("lurker", 0.7, 8, 0.90, _inclined(2.5, 0.0, -1.0)),
    Archetype("contributor", 0.5, 5, 0.09, _inclined(1.5, 0.5, 1.0)),
    Archetype("superuser", 0.3, 3, 0.01, _inclined(0.5, 0.5, 2.0)),
)
ARCHETYPES: Mapping[str, Archetype] = {kind.name: kind for kind in _ALL}
"""The archetypes that a population file can name."""


def archetype_named(name: str) -> Archetype:
    """Return the archetype with a name.

    Raises:
        FieldValueError: If there is no such archetype.
    """
    if name not in ARCHETYPES:
        raise FieldValueError(f"archetype must be one of {', '.join(ARCHETYPES)}, got {name!r}")
    return ARCHETYPES[name]
