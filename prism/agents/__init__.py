"""Agents: the social agent, the mixin for classes that exist already, and populations."""

from prism.agents.archetypes import ARCHETYPES, Archetype
from prism.agents.mixin import StatechartMixin
from prism.agents.personas import load_population, load_posts
from prism.agents.population import Population, SeedPost, opening_posts, synthetic_population
from prism.agents.social_agent import SocialAgent

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
