"""Worlds of a researcher's own: agents of any charts, what they share, and how they act.

A world's class declares its parameters, its state, its steps, measures and treatments; `Run` runs
it, and `WorldRun` is a run that `prism.runs` keeps, resumes and replays.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names
from prism.runs._agent_loop import Lent
from prism.worlds._agent import Agent, Message, Thing
from prism.worlds._asking import Decider, Remembering
from prism.worlds._fields import one_of, param, state, uniform, whole
from prism.worlds._guest import Guest, Participant
from prism.worlds._loop import Loop, Run
from prism.worlds._networks import (
    Network,
    Space,
    from_edges,
    grid,
    random_graph,
    ring,
    scale_free,
    small_world,
)
from prism.worlds._options import WorldRun
from prism.worlds._people import AgentTable
from prism.worlds._results import WorldResults, WorldRound
from prism.worlds._treatments import SetParameters, SharedTreatment, SwitchModel, Treatment
from prism.worlds._world import World, during, measure, treatment

if TYPE_CHECKING:  # a rehearsal starts processes, which no run does
    from prism.worlds._rehearse import Finding, rehearse
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Agent",
    "AgentTable",
    "Decider",
    "Finding",
    "Guest",
    "Lent",
    "Loop",
    "Message",
    "Network",
    "Participant",
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
    "WorldRun",
    "during",
    "from_edges",
    "grid",
    "measure",
    "one_of",
    "param",
    "random_graph",
    "rehearse",
    "ring",
    "scale_free",
    "small_world",
    "state",
    "treatment",
    "uniform",
    "whole",
]
