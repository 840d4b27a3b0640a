"""Kinds of users."""

import pytest

from prism.agents import ARCHETYPES, SocialAgent
from prism.errors import FieldValueError


def test_proportions_follow_participation_inequality() -> None:
    """The archetypes are lurkers, contributors and superusers, in proportions 90-9-1."""
    assert {name: kind.share for name, kind in ARCHETYPES.items()} == {
        "lurker": 0.90,
        "contributor": 0.09,
        "superuser": 0.01,
    }


def test_an_unknown_archetype_is_refused_with_the_known_ones() -> None:
    """An unknown name raises an error that lists the known ones."""
    with pytest.raises(
        FieldValueError,
        match="archetype must be one of lurker, contributor, superuser, got 'Lurker'",
    ):
        SocialAgent("a", archetype="Lurker")
