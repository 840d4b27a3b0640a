"""Whole simulations: posts, feeds, rounds and results."""

from prism.simulation.composing import Composer, TemplateComposer
from prism.simulation.posts import Draft, Network, Post
from prism.simulation.results import Activity, Cascade, Results, RoundSummary
from prism.simulation.simulation import Simulation

__all__ = [
    "Activity",
    "Cascade",
    "Composer",
    "Draft",
    "Network",
    "Post",
    "Results",
    "RoundSummary",
    "Simulation",
    "TemplateComposer",
]
