"""Runs that are kept in a folder: begun, and resumed and replayed by their journals.

What is run is a `prism.worlds.Run`.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.runs.folder import RunFolder
    from prism.runs.observing import Observer
    from prism.runs.options import PolicyOptions, WriterOptions
    from prism.runs.running import Outcome
    from prism.runs.status import RunState, RunStatus, find_runs, run_status
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Observer",
    "Outcome",
    "PolicyOptions",
    "RunFolder",
    "RunState",
    "RunStatus",
    "WriterOptions",
    "find_runs",
    "run_status",
]
