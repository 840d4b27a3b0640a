"""An agent that thinks, executes and pages: a finite working memory, and an unbounded storage.

`CognitiveAgent` runs a cycle at a time inside an application, with a `Config` and a `Memory`.
`prism.worlds.Run` takes the file of a configuration for a run of its own, which is kept, resumed
and repeated.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.programs.thinking._actions import ActionRefusedError, ActionResult, action
    from prism.programs.thinking._agent import CognitiveAgent, CognitiveState, cognitive_chart
    from prism.programs.thinking._config import (
        Config,
        Iterate,
        Limit,
        Paging,
        ThinkingLog,
    )
    from prism.programs.thinking._cycle import CognitiveResults, Cycle
    from prism.programs.thinking._memory import Match, Memory
    from prism.programs.thinking._paging import Paged
    from prism.reasoner._words import TokenCounter, count_tokens
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ActionRefusedError",
    "ActionResult",
    "CognitiveAgent",
    "CognitiveResults",
    "CognitiveState",
    "Config",
    "Cycle",
    "Iterate",
    "Limit",
    "Match",
    "Memory",
    "Paged",
    "Paging",
    "ThinkingLog",
    "TokenCounter",
    "action",
    "cognitive_chart",
    "count_tokens",
]
