"""Statecharts for LLM-driven agents.

The most used names are here, and are loaded on first use::

    from prism import Agent, Run, Statechart, Transition, World, during, measure

Everything else is in the subpackages, for example ``from prism.statechart import
social_media_chart``.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names
from prism._version import __version__

if TYPE_CHECKING:
    from prism.llm import Model
    from prism.reasoner import Reasoner
    from prism.statechart import Statechart, Transition
    from prism.worlds import Agent, Run, World, during, measure, replay, resume, treatment
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Agent",
    "Model",
    "Reasoner",
    "Run",
    "Statechart",
    "Transition",
    "World",
    "__version__",
    "during",
    "measure",
    "replay",
    "resume",
    "treatment",
]
