"""Statecharts for LLM-driven agents.

Importing this package defines nothing but the version; take what you need from its rooms, for
example ``from prism.statechart import Statechart, social_media_chart``.
"""

__version__ = "0.1.0"
