"""Runs that are kept in a folder: begun, resumed from a checkpoint, and replayed from a log.

Anything can be run that goes on in rounds and describes itself as plain data: see `Runnable` and
`RunOptions`.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.runs._assigned import ModelAssignment
    from prism.runs._config import check_config, digest, read_reasoner, require_writable
    from prism.runs._folder import RunFolder
    from prism.runs._makers import make_reasoner
    from prism.runs._options import (
        DeciderOptions,
        ModelOptions,
        PolicyOptions,
        ReasonerOptions,
        ReplayOptions,
        WriterOptions,
    )
    from prism.runs._rounds import LiveTable, RoundFrames
    from prism.runs._runnable import Runnable, RunOptions, RunResults
    from prism.runs._running import Observer, Outcome, begin, replay, resume
    from prism.runs._status import RunState, RunStatus, find_runs, run_status
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DeciderOptions",
    "LiveTable",
    "ModelAssignment",
    "ModelOptions",
    "Observer",
    "Outcome",
    "PolicyOptions",
    "ReasonerOptions",
    "ReplayOptions",
    "RoundFrames",
    "RunFolder",
    "RunOptions",
    "RunResults",
    "RunState",
    "RunStatus",
    "Runnable",
    "WriterOptions",
    "begin",
    "check_config",
    "digest",
    "find_runs",
    "make_reasoner",
    "read_reasoner",
    "replay",
    "require_writable",
    "resume",
    "run_status",
]
