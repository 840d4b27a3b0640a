"""Worlds of your own: agents with any charts, what they share, and how they act.

A world's class declares its parameters, state, steps, measures and treatments. A `Run` carries it
out.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names
from prism.runs._lent import Lent
from prism.worlds._agent import Agent, Message, Thing
from prism.worlds._agent_set import AgentSet
from prism.worlds._asking import Decider, Remembering
from prism.worlds._drawn import (
    beta,
    binomial,
    draw,
    exponential,
    gamma,
    lognormal,
    normal,
    one_of,
    poisson,
    uniform,
    whole,
)
from prism.worlds._fields import param, state
from prism.worlds._guest import Guest
from prism.worlds._networks import (
    Network,
    from_edges,
    grid,
    lattice,
    random_graph,
    ring,
    scale_free,
    small_world,
)
from prism.worlds._people import AgentTable
from prism.worlds._pictures import Look, picture
from prism.worlds._results import WorldResults, WorldRound
from prism.worlds._run import Run, replay, resume
from prism.worlds._spaces import Plane, Space
from prism.worlds._treatments import SetParameters, SharedTreatment, SwitchModel, Treatment
from prism.worlds._world import World, during, measure, treatment

if TYPE_CHECKING:  # a rehearsal starts processes, which no run does
    from prism.worlds._rehearse import Finding, rehearse
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Agent",
    "AgentSet",
    "AgentTable",
    "Decider",
    "Finding",
    "Guest",
    "Lent",
    "Look",
    "Message",
    "Network",
    "Plane",
    "Remembering",
    "Run",
    "SetParameters",
    "SharedTreatment",
    "Space",
    "SwitchModel",
    "Thing",
    "Treatment",
    "World",
    "WorldResults",
    "WorldRound",
    "beta",
    "binomial",
    "draw",
    "during",
    "exponential",
    "from_edges",
    "gamma",
    "grid",
    "lattice",
    "lognormal",
    "measure",
    "normal",
    "one_of",
    "param",
    "picture",
    "poisson",
    "random_graph",
    "rehearse",
    "replay",
    "resume",
    "ring",
    "scale_free",
    "small_world",
    "state",
    "treatment",
    "uniform",
    "whole",
]
