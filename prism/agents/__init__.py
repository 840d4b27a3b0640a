"""Agents: the social agent, the mixin for existing classes, and populations."""

from prism.agents._mixin import StatechartMixin
from prism.agents._population import (
    Population,
    SeedPost,
    load_population,
    load_posts,
    opening_posts,
    synthetic_population,
)
from prism.agents.social_agent import ARCHETYPES, Archetype, SocialAgent

__all__ = [
    "ARCHETYPES",
    "Archetype",
    "Population",
    "SeedPost",
    "SocialAgent",
    "StatechartMixin",
    "load_population",
    "load_posts",
    "opening_posts",
    "synthetic_population",
]
