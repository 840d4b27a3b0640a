"""Kinds of users."""

import pytest

from prism.agents import ARCHETYPES, SocialAgent
from prism.errors import FieldValueError
from prism.statechart import AgentState


def test_proportions_follow_participation_inequality() -> None:
    """The archetypes are lurkers, contributors and superusers, in proportions 90-9-1."""
    assert {name: kind.share for name, kind in ARCHETYPES.items()} == {
        "lurker": 0.90,
        "contributor": 0.09,
        "superuser": 0.01,
    }


def test_more_active_archetypes_have_lower_thresholds() -> None:
    """From lurker to superuser both thresholds fall, and the inclination to write rises."""
    kinds = list(ARCHETYPES.values())
    engagement = [kind.engagement_threshold for kind in kinds]
    patience = [kind.timeout_threshold for kind in kinds]
    writing = [kind.inclinations[AgentState.COMPOSING.value] for kind in kinds]
    assert engagement == sorted(set(engagement), reverse=True)
    assert patience == sorted(set(patience), reverse=True)
    assert writing == sorted(set(writing))


@pytest.mark.parametrize("name", ARCHETYPES)
def test_every_archetype_makes_a_valid_agent(name: str) -> None:
    """Every archetype can be named, and its thresholds and inclinations are valid for an agent."""
    kind = ARCHETYPES[name]
    agent = SocialAgent("a", archetype=name)
    assert kind.name == name
    assert agent.archetype is kind
    assert (agent.engagement_threshold, agent.timeout_threshold) == (
        kind.engagement_threshold,
        kind.timeout_threshold,
    )
    assert set(kind.inclinations) <= set(AgentState)


def test_an_unknown_archetype_is_refused_with_the_known_ones() -> None:
    """An unknown name raises an error that lists the known ones."""
    with pytest.raises(
        FieldValueError,
        match="archetype must be one of lurker, contributor, superuser, got 'Lurker'",
    ):
        SocialAgent("a", archetype="Lurker")
