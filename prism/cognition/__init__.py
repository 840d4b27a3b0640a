"""An agent that thinks, executes and pages: a finite working memory, and an unbounded storage.

`CognitiveAgent` runs a cycle at a time inside an application, with a `Config` and a `Memory`.
`prism.worlds.Run` takes the file of a configuration for a run of its own, which is kept, resumed
and repeated.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.cognition._actions import ActionRefusedError, ActionResult, action
    from prism.cognition._agent import CognitiveAgent
    from prism.cognition._chart import CognitiveState, cognitive_chart
    from prism.cognition._config import Config, ConfigFileError, ConfigProblem
    from prism.cognition._cycle import CognitiveResults, Cycle
    from prism.cognition._memory._memory import Memory
    from prism.cognition._memory._search import Match
    from prism.cognition._paging import Paged
    from prism.cognition._settings import Iterate, Limit, Paging, StorageLimits, ThinkingLog
    from prism.reasoner._tokens import TokenCounter, count_tokens
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ActionRefusedError",
    "ActionResult",
    "CognitiveAgent",
    "CognitiveResults",
    "CognitiveState",
    "Config",
    "ConfigFileError",
    "ConfigProblem",
    "Cycle",
    "Iterate",
    "Limit",
    "Match",
    "Memory",
    "Paged",
    "Paging",
    "StorageLimits",
    "ThinkingLog",
    "TokenCounter",
    "action",
    "cognitive_chart",
    "count_tokens",
]
