"""An agent that thinks, executes and pages: a finite working memory, and an unbounded storage.

`CognitiveAgent` runs a cycle at a time inside an application, with a `Config` and a `Memory`.
`prism.worlds.Run` takes the file of a configuration for a run of its own, which is kept, resumed
and repeated.
"""

from prism.programs.thinking._actions import ActionRefusedError, ActionResult, action
from prism.programs.thinking._agent import CognitiveAgent
from prism.programs.thinking._config import (
    AvailableActions,
    Config,
    Iterate,
    Limit,
    StateDescription,
    ThinkingLog,
)
from prism.programs.thinking._cycle import CognitiveState, Cycle, cognitive_chart
from prism.programs.thinking._memory import Memory
from prism.programs.thinking._prompts import Paged
from prism.programs.thinking._search import Match

__all__ = [
    "ActionRefusedError",
    "ActionResult",
    "AvailableActions",
    "CognitiveAgent",
    "CognitiveState",
    "Config",
    "Cycle",
    "Iterate",
    "Limit",
    "Match",
    "Memory",
    "Paged",
    "StateDescription",
    "ThinkingLog",
    "action",
    "cognitive_chart",
]
