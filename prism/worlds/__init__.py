"""Worlds of a researcher's own: agents of any charts, what they share, and how they act.

A world's class declares its parameters, its state, its steps, measures and treatments; `Run` runs
it, and `WorldRun` is a run that `prism.runs` keeps, resumes and replays.
"""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from prism.worlds._rehearse import Finding, rehearse

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

# A rehearsal starts processes and looks for clocks and generators, which no run does.
if not TYPE_CHECKING:

    def __getattr__(name):
        """Return what rehearses a world, which is loaded when it is asked for."""
        if name not in ("Finding", "rehearse"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from prism.worlds import _rehearse

        return getattr(_rehearse, name)

    def __dir__():
        return sorted({*globals(), *__all__})
