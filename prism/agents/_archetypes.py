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


LURKER = Archetype(
    "lurker",
    engagement_threshold=0.7,
    timeout_threshold=8,
    share=0.90,
    inclinations={"scrolling": 2.5, "engaging_like": 0.0, "composing": -1.0},
)
CONTRIBUTOR = Archetype(
    "contributor",
    engagement_threshold=0.5,
    timeout_threshold=5,
    share=0.09,
    inclinations={"scrolling": 1.5, "engaging_like": 0.5, "composing": 1.0},
)
SUPERUSER = Archetype(
    "superuser",
    engagement_threshold=0.3,
    timeout_threshold=3,
    share=0.01,
    inclinations={"scrolling": 0.5, "engaging_like": 0.5, "composing": 2.0},
)

ARCHETYPES: Mapping[str, Archetype] = {kind.name: kind for kind in (LURKER, CONTRIBUTOR, SUPERUSER)}
"""The archetypes that a population file can name."""


def archetype_named(name: str, archetypes: Mapping[str, Archetype] = ARCHETYPES) -> Archetype:
    """Return the archetype with a name.

    Raises:
        FieldValueError: If there is no such archetype.
    """
    if name not in archetypes:
        raise FieldValueError(f"archetype must be one of {', '.join(archetypes)}, got {name!r}")
    return archetypes[name]
